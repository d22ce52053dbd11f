"""An engine's HTTP server: its metrics page, and the model and version that some tell beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from collectors.engine.page import TABLES, PageError, read_page, recognise
from collectors.engine.reading import EngineReading
from collectors.engine.scrape import BOUNDS, Bounds, ScrapeError, fetch_json, fetch_page
from collectors.engine.targets import EngineTarget
from collectors.samples import EngineKind

ASK_AGAIN_S = 60.0
_SAME_START_US = 1_000_000
_MAX_MODEL, _MAX_VERSION = 200, 100
# Where a kind of engine tells its version, and under which name.
_VERSIONS: dict[EngineKind, tuple[str, str]] = {
    "vllm": ("/version", "version"),
    "tgi": ("/info", "version"),
    "llama_cpp": ("/props", "build_info"),
}


class Moment(NamedTuple):
    """t_us: the node's clock, UTC microseconds. mono_s: seconds by a clock that is never set."""

    t_us: int
    mono_s: float


@dataclass(frozen=True)
class Look:
    """What one fetch gave: the page's readings, or the reason in words why there is no page.

    model: of engines that the page does not name; None where the server does not tell. is_new: the process is another
    one than at the last page. refused: nothing listens at the address.
    """

    at: Moment
    readings: tuple[EngineReading, ...] = ()
    kind: EngineKind | None = None
    model: str | None = None
    is_new: bool = False
    reason: str | None = None
    refused: bool = False


class EngineServer:
    """Looks at one page; by one thread at a time. A look takes three times the bound at most.

    kind, model: as known from before. now: both clocks.
    """

    def __init__(
        self,
        target: EngineTarget,
        *,
        kind: EngineKind | None = None,
        model: str | None = None,
        now: Callable[[], Moment],
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._target = target
        self._kind = target.kind or kind
        self._model = target.model or model
        self._version: str | None = None
        self._now = now
        self._bounds = bounds
        self._started_us: int | None = None
        self._refused = False
        self._ask_at_s: float | None = 0.0  # None: nothing left to ask

    def look(self) -> Look:
        """Fetch and read the page; whatever the server does, this returns."""
        try:
            text = fetch_page(self._target.url, self._bounds)
        except ScrapeError as problem:
            self._refused |= problem.is_refused
            return Look(self._now(), kind=self._kind, reason=self._why(problem), refused=problem.is_refused)
        at = self._now()
        try:
            readings = self._read(text)
        except PageError as problem:
            return Look(at, kind=self._kind, reason=f"not read: {problem}")
        is_new = self._is_new(readings)
        if is_new:
            self._model, self._version, self._ask_at_s = self._target.model, None, 0.0
        if self._ask_at_s is not None and at.mono_s >= self._ask_at_s:
            self._ask(at, needs_model=any(reading.model is None for reading in readings))
        versioned = tuple(replace(reading, version=reading.version or self._version) for reading in readings)
        return Look(at, versioned, self._kind, self._model, is_new)

    def _read(self, text: str) -> Sequence[EngineReading]:
        # A port that was found may serve another kind of engine today: its page says which.
        kind = self._target.kind or recognise(text) or (None if text.strip() else self._kind)
        readings = read_page(text, kind)
        self._kind = kind
        return readings

    def _is_new(self, readings: Sequence[EngineReading]) -> bool:
        """Whether another process answers than at the last page, as far as can be told."""
        before_us, refused = self._started_us, self._refused
        self._refused = False
        self._started_us = next((reading.started_us for reading in readings if reading.started_us), before_us)
        if before_us is None or self._started_us is None:
            return refused
        return refused or abs(self._started_us - before_us) > _SAME_START_US

    def _ask(self, at: Moment, *, needs_model: bool) -> None:
        """Once per process; for a model that is not told again and again, as a server may tell it once it is ready."""
        if self._version is None and self._kind in _VERSIONS:
            self._version = told_version(self._target.url, self._kind, self._bounds)
        if needs_model and self._target.model is None:
            self._model = told_model(self._target.url, self._bounds) or self._model
        self._ask_at_s = at.mono_s + ASK_AGAIN_S if needs_model and self._model is None else None

    def _why(self, problem: ScrapeError) -> str:
        if not problem.is_down:
            return f"not read: {problem}"
        name = TABLES[self._kind].name if self._kind else "an engine"
        return f"down: {problem}; is {name} running on port {self._target.port}?"


def told_model(url: str, bounds: Bounds = BOUNDS) -> str | None:
    """The one model that the server of `url` names; None when it names none, several, or what is no name."""
    try:
        answer = fetch_json(url, "/v1/models", bounds)
        names = [one["id"] for one in answer["data"]]
    except (ScrapeError, LookupError, TypeError):
        return None
    return _name(names[0], _MAX_MODEL) if len(names) == 1 else None


def told_version(url: str, kind: EngineKind, bounds: Bounds = BOUNDS) -> str | None:
    """The engine's version; None when it does not tell."""
    path, name = _VERSIONS[kind]
    try:
        return _name(fetch_json(url, path, bounds)[name], _MAX_VERSION)
    except (ScrapeError, LookupError, TypeError):
        return None


def _name(value: object, longest: int) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= longest and value.isprintable() else None
