"""Asks providers: within bounds, from a cache while that is fresh, never again too soon after a failure.

A failure comes with what was last known, if that is not too old: then the answer says its age and the problem.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote, quote_plus

from collectors.http.access import OPEN, Access
from collectors.http.address import origin
from collectors.http.cooldown import Cooldown
from collectors.http.problem import OF_THE_HOST, OF_THE_TIME, ProblemKind, SourceProblem, UnusableAnswer
from collectors.http.status import Reply, json_of, printable, problem_of, retry_after_s
from collectors.http.transport import BOUNDS, Bounds, NoReply, Transport

T = TypeVar("T")
MOST_KEPT = 500
_HIDDEN = "[key]"
# So much of a key's beginning tells nothing yet.
_TOLD = 5


@dataclass(frozen=True)
class Ask:
    """One question. about: in words, such as `zone DE, latest`; also what is left alone together after a failure.

    fresh_s: how long an answer is used without asking again. stale_s: how old an answer may be to stand in when
    asking fails. body: what is posted as JSON; None: a GET. advice: where that of `ADVICE` does not fit.
    """

    provider: str
    base_url: str
    path: str
    about: str
    params: Mapping[str, str] = field(default_factory=dict)
    access: Access = OPEN
    fresh_s: float = 0.0
    stale_s: float = 0.0
    body: Mapping[str, Any] | None = None
    advice: Mapping[ProblemKind, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.base_url.rstrip("/") + self.path

    @property
    def where(self) -> str:
        return f"{self.about} at {origin(self.base_url)}"

    @property
    def key(self) -> tuple[Any, ...]:
        return self.url, tuple(sorted(self.params.items())), self.access.identity, self.posted

    @property
    def posted(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body, sort_keys=True).encode()


@dataclass(frozen=True)
class Fetched(Generic[T]):
    """value: as the reader made it, at `fetched_at`. problem: why it is no newer; None when all is well."""

    value: T
    fetched_at: datetime
    age_s: float
    problem: SourceProblem | None = None


@dataclass(frozen=True)
class _Kept:
    value: Any
    fetched_at: datetime
    at_s: float


class Http:
    """utc_now: the clock on the wall; monotonic_s: one that is never set, in seconds. Thread-safe."""

    def __init__(
        self,
        *,
        bounds: Bounds = BOUNDS,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = Transport(bounds)
        self.utc_now = utc_now
        self._monotonic_s = monotonic_s
        self._cooldown = Cooldown()
        self._kept: OrderedDict[tuple[Any, ...], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ask: Ask, read: Callable[[Any, datetime], T]) -> Fetched[T]:
        """What `read` makes of the answer's JSON and the moment. Raises SourceProblem.

        read: raises UnusableAnswer where the answer is no good, which then counts as a failure.
        """
        now_s = self._monotonic_s()
        with self._lock:
            kept = self._kept.get(ask.key)
            problem = self._cooling(ask, now_s)
        if kept is not None and now_s - kept.at_s < ask.fresh_s:
            return _fetched(kept, now_s)
        if problem is None:
            got = self._get(ask, read)
            if not isinstance(got, SourceProblem):
                return got
            problem = got
        if kept is not None and now_s - kept.at_s <= ask.stale_s:
            return _fetched(kept, now_s, problem)
        raise problem

    def _get(self, ask: Ask, read: Callable[[Any, datetime], T]) -> Fetched[T] | SourceProblem:
        """Asks, and notes how that went. A problem is returned, so that no traceback leads to the request."""
        try:
            headers = ask.access.headers()
        except SourceProblem as refusal:
            return refusal  # of the login, which has a cool-down of its own
        outcome = self._exchange(ask, headers)
        if isinstance(outcome, Reply) and outcome.status == 401:
            try:
                if ask.access.renew():
                    outcome = self._exchange(ask, ask.access.headers())
            except SourceProblem as refusal:
                return refusal
        moment = self.utc_now()
        result = outcome if isinstance(outcome, SourceProblem) else self._read(ask, outcome, read, moment)
        with self._lock:
            return self._note(ask, result, moment)

    def _exchange(self, ask: Ask, headers: Mapping[str, str]) -> Reply | SourceProblem:
        if ask.body is not None:
            headers = {"Content-Type": "application/json", **headers}
        try:
            return self._transport.ask(ask.url, ask.params, headers, ask.posted)
        except NoReply as failure:
            kind, what = failure.kind, str(failure)
        return self._problem(ask, kind, what)

    def _read(
        self, ask: Ask, reply: Reply, read: Callable[[Any, datetime], T], moment: datetime
    ) -> tuple[T] | SourceProblem:
        refusal = problem_of(reply)
        if refusal is not None:
            wait_s = retry_after_s(reply.headers.get("Retry-After"), moment)
            return self._problem(ask, *refusal, status=reply.status, retry_after_s=wait_s)
        try:
            return (read(json_of(reply), moment),)
        except UnusableAnswer as unusable:
            kind, what, advice = unusable.kind, str(unusable), unusable.advice
        return self._problem(ask, kind, what, status=reply.status, advice=advice)

    def _note(self, ask: Ask, result: tuple[T] | SourceProblem, moment: datetime) -> Fetched[T] | SourceProblem:
        now_s = self._monotonic_s()
        of_host, of_place, of_time = _cool_keys(ask)
        if isinstance(result, SourceProblem):
            narrower = of_time if result.kind in OF_THE_TIME else of_place
            self._cooldown.failed(of_host if result.kind in OF_THE_HOST else narrower, result, now_s)
            return result
        for key in (of_host, of_place, of_time):
            self._cooldown.succeeded(key)
        if ask.fresh_s or ask.stale_s:
            self._kept.pop(ask.key, None)
            self._kept[ask.key] = _Kept(result[0], moment, now_s)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return Fetched(result[0], moment, 0.0)

    def _cooling(self, ask: Ask, now_s: float) -> SourceProblem | None:
        for key in _cool_keys(ask):
            problem = self._cooldown.problem(key, now_s)
            if problem is not None:
                return problem
        return None

    def _problem(self, ask: Ask, kind: ProblemKind, what: str, advice: str | None = None, **more: Any) -> SourceProblem:
        shown = scrubbed(what, ask.access.secrets())
        fitting = ask.advice.get(kind) if advice is None else advice
        return SourceProblem(kind, shown, provider=ask.provider, where=ask.where, advice=fitting, **more)


def _cool_keys(ask: Ask) -> tuple[Hashable, Hashable, Hashable]:
    """What is left alone: all of the host, this zone and kind of question, or only this very question."""
    account = (origin(ask.base_url), ask.access.identity)
    return account, (*account, ask.provider, ask.about), ask.key


def scrubbed(words: str, secrets: tuple[str, ...]) -> str:
    """`words` without the secrets, in whichever way an address or a quotation would spell them.

    What cuts a provider's words may cut a key, and a host's name loses its capitals: so beginnings are hidden as well.
    """
    spelled = {form for secret in filter(None, secrets) for form in _spellings(secret)}
    if not spelled:
        return printable(words)
    beginnings = sorted({form[: _TOLD + 1] for form in spelled}, key=len, reverse=True)
    beginning = re.compile("|".join(map(re.escape, beginnings)), re.IGNORECASE)
    kept = ""
    while found := beginning.search(words):
        shown = max(_common(words[found.start() :], form) for form in spelled)
        kept += words[: found.start()] + _HIDDEN
        words = words[max(found.end(), found.start() + shown) :]
    return printable(kept + words)


def _spellings(secret: str) -> set[str]:
    return {secret, repr(secret)[1:-1], quote(secret, safe=""), quote(secret), quote_plus(secret)}


def _common(words: str, secret: str) -> int:
    """How many letters both begin with."""
    pairs = zip(words.lower(), secret.lower(), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _fetched(kept: _Kept, now_s: float, problem: SourceProblem | None = None) -> Fetched[Any]:
    return Fetched(cast(Any, kept.value), kept.fetched_at, now_s - kept.at_s, problem)
