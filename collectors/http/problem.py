"""Why a provider gave nothing usable, in words a person can act on. No text here ever holds a key."""

from __future__ import annotations

from typing import Literal

ProblemKind = Literal[
    "no_access", "not_found", "rate_limited", "refused", "failed", "unreachable", "timed_out", "malformed", "empty",
    "no_recent_data",
]  # fmt: skip

ADVICE: dict[ProblemKind, str] = {
    "no_access": "check the key, and whether its plan covers this zone and this question",
    "not_found": "check the zone's name as this provider spells it, and base_url",
    "rate_limited": "ask less often, or take a larger plan",
    "refused": "check the zone and base_url; the provider may have changed its interface",
    "failed": "the provider is at fault; it is asked again later",
    "unreachable": "check the network, a proxy and base_url",
    "timed_out": "it is asked again later; check the network if this stays",
    "malformed": "check base_url; the provider may have changed its interface",
    "empty": "the provider has nothing for this zone and time; it is asked again later",
    "no_recent_data": "the provider has gaps for this zone; it is asked again later",
}
# What concerns every question to the same host, and not only this one.
OF_THE_HOST: frozenset[ProblemKind] = frozenset({"rate_limited", "unreachable", "timed_out"})
# What concerns this very stretch of time, and not the next one that is asked for.
OF_THE_TIME: frozenset[ProblemKind] = frozenset({"empty", "no_recent_data"})


class SourceProblem(Exception):
    """A provider gave nothing usable: `str(problem)` says what, where and what to do.

    kind: for code. provider, where: who was asked, and for what at which address. what: what happened. advice: what
    to do. status: of the HTTP answer, None without one. retry_after_s: when the provider, or the cool-down, lets us
    ask again. in_cool_down: the provider was not asked now; `what` is of the last time.
    """

    def __init__(
        self,
        kind: ProblemKind,
        what: str,
        *,
        provider: str,
        where: str,
        advice: str | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
        in_cool_down: bool = False,
    ) -> None:
        self.kind = kind
        self.what = what
        self.provider = provider
        self.where = where
        self.advice = ADVICE[kind] if advice is None else advice
        self.status = status
        self.retry_after_s = retry_after_s
        self.in_cool_down = in_cool_down
        super().__init__(f"{provider}, {where}: {what}; {self.advice}")

    def cooling(self, left_s: float) -> SourceProblem:
        """The same problem, as it is told while the provider is left alone for another `left_s` seconds."""
        return SourceProblem(
            self.kind, f"{self.what} (not asked again for {left_s:.0f} s)", provider=self.provider, where=self.where,
            advice=self.advice, status=self.status, retry_after_s=left_s, in_cool_down=True,
        )  # fmt: skip


class UnusableAnswer(Exception):
    """An answer arrived but holds nothing usable; raised by the parsers, which know neither address nor provider."""

    def __init__(self, what: str, kind: ProblemKind = "malformed", advice: str | None = None) -> None:
        super().__init__(what)
        self.kind = kind
        self.advice = advice
