"""Leaves alone what failed: 30 s after the first failure, doubling to an hour, until the first success."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from collectors.http.problem import SourceProblem

FIRST_S = 30.0
LONGEST_S = 3600.0
MOST_KEYS = 2_000


@dataclass(frozen=True)
class _Failure:
    until_s: float
    next_s: float
    problem: SourceProblem


class Cooldown:
    """By key. now_s: of a clock that is never set."""

    def __init__(self) -> None:
        self._failures: OrderedDict[Hashable, _Failure] = OrderedDict()

    def failed(self, key: Hashable, problem: SourceProblem, now_s: float) -> None:
        """A provider's own Retry-After counts where it is longer."""
        before = self._failures.pop(key, None)
        pause_s = before.next_s if before else FIRST_S
        until_s = now_s + max(pause_s, problem.retry_after_s or 0.0)
        self._failures[key] = _Failure(until_s, min(pause_s * 2, LONGEST_S), problem)
        while len(self._failures) > MOST_KEYS:
            self._failures.popitem(last=False)

    def succeeded(self, key: Hashable) -> None:
        self._failures.pop(key, None)

    def problem(self, key: Hashable, now_s: float) -> SourceProblem | None:
        """What went wrong the last time, while that is not long enough ago; None where asking is fine."""
        failure = self._failures.get(key)
        if failure is None or now_s >= failure.until_s:
            return None
        return failure.problem.cooling(failure.until_s - now_s)
