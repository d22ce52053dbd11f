"""How far each input may move before another split is best, and what that would cost: ranges and a tornado chart.

The answer stays while every pool keeps its number of replicas and the same fleets carry more than 1% of the tokens.
The ends are found by bisection to 0.2% of the value, at gap 0; at most 26 solves per input. Within a range found so the
answer could in theory change and change back: for prices, grams and SLOs it cannot (the set of prices at which a split
is best has no holes, and a split that is best among more options is best among fewer), for rates and throughput only
where power costs money. Source: design section 5.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.errors import DemandError
from app.split.answer import SplitAnswer
from app.split.case import Case
from app.split.demand import Demand
from app.split.inputs import Input
from app.split.options import Option

LEAST_SHARE = 0.01
PRECISION = 0.002
STEPS = 12
TORNADO = (0.8, 1.25)

Signature = tuple[frozenset[tuple[str, str, int]], frozenset[str]]


@dataclass(frozen=True)
class Bar:
    """objective_usd_per_hour: None where nothing is feasible."""

    factor: float
    value: float
    objective_usd_per_hour: float | None


@dataclass(frozen=True)
class InputRange:
    """The answer stays from low to high. is_open: it still did at that end of what was looked at.

    reason: why there is no range. bars: what is minimised, with the input at 0.8 and 1.25 times its value.
    """

    input: Input
    low: float | None = None
    high: float | None = None
    low_is_open: bool = False
    high_is_open: bool = False
    bars: tuple[Bar, ...] = ()
    solves: int = 0
    reason: str | None = None

    @property
    def text(self) -> str:
        one = self.input
        if self.low is None or self.high is None:
            return f"{one.label}: no range, {self.reason}."
        unit = f" {one.unit}" if one.unit else ""
        span = f"from {self.low:.4g} to {self.high:.4g}{unit}"
        if one.is_idle:
            return f"{one.label}: it does not bear on the answer."
        if self.low_is_open and self.high_is_open:
            return f"{one.label}: the answer stays, {span} (looked at no further)."
        further = {(True, False): " (and lower)", (False, True): " (and higher)"}
        return f"{one.label}: the answer stays {span}{further.get((self.low_is_open, self.high_is_open), '')}."


def signature(answer: SplitAnswer) -> Signature | None:
    """What has to stay: replicas by pool, and the fleets with more than 1% of the tokens. None when infeasible."""
    if answer.usd_per_hour is None:
        return None
    replicas = frozenset((p.option.fleet.name, p.option.point.point_id, p.count) for p in answer.pools)
    return replicas, fleets_in_use(answer)


def fleets_in_use(answer: SplitAnswer) -> frozenset[str]:
    """Those with more than 1% of the tokens."""
    carried: dict[str, float] = {}
    for share in answer.shares:
        name = share.option.fleet.name
        carried[name] = carried.get(name, 0.0) + share.tokens_per_s
    return frozenset(name for name, rate in carried.items() if rate > LEAST_SHARE * answer.tokens_per_s)


def exact_answer(demand: Demand, options: Sequence[Option]) -> SplitAnswer:
    """At gap 0: what has to stay."""
    return Case.of(demand, options).with_solve(gap=0.0).answer()


def robustness(base: SplitAnswer, moved: Iterable[Input]) -> Iterator[InputRange]:
    """A range for each input, one by one as they are found; none where nothing is feasible.

    base: the exact answer of the demand that the inputs are of.
    """
    if signature(base) is not None:
        yield from (_Search(one, base).range() for one in moved)


class _Search:
    """The search of one input; `solves` counts."""

    def __init__(self, one: Input, base: SplitAnswer) -> None:
        self._input = one
        self._base = base
        self._wanted = signature(base)
        self._answers: dict[float, SplitAnswer | None] = {one.value: base}

    def range(self) -> InputRange:
        one = self._input
        if one.reason:
            return InputRange(one, reason=one.reason)
        if one.is_idle:
            bars = tuple(Bar(f, f * one.value, self._base.objective_usd_per_hour) for f in TORNADO)
            return InputRange(one, one.low, one.high, True, True, bars)
        if one.slo:
            low, high = self._lowest_slo(*one.slo), self._highest_slo(*one.slo)
        else:
            low, high = self._end(one.low), self._end(one.high)
        bars = tuple(self._bar(factor) for factor in TORNADO) if one.value else ()
        solves = len(self._answers) - 1
        return InputRange(one, low, high, low <= one.low, high >= one.high, bars, solves)

    def _at(self, value: float) -> SplitAnswer | None:
        if value not in self._answers:
            try:
                self._answers[value] = self._input.changed(value).answer()
            except DemandError:  # more replicas than can be counted
                self._answers[value] = None
        return self._answers[value]

    def _stays(self, value: float) -> bool:
        answer = self._at(value)
        return answer is not None and signature(answer) == self._wanted

    def _end(self, outside: float) -> float:
        """The last value on the way to `outside` at which the answer was seen to stay."""
        if self._stays(outside):
            return outside
        inside = self._input.value
        for _ in range(STEPS):
            if abs(outside - inside) <= PRECISION * abs(inside):
                break
            middle = math.sqrt(inside * outside) if inside > 0 else (inside + outside) / 2
            if self._stays(middle):
                inside = middle
            else:
                outside = middle
        return inside

    def _lowest_slo(self, name: str, number: int) -> float:
        """The highest value of the options in use: while these hold the limit, nothing cheaper has come in."""
        case = self._input.case
        slo, policy = case.workload(name).slo[number], case.demand.solve.small_samples
        used = [share.option.point for share in self._base.shares if share.class_name == name]
        values = [point.slo_value_ms(slo, policy)[0] for point in used]
        return max([self._input.low, *(value for value in values if value is not None)])

    def _highest_slo(self, name: str, number: int) -> float:
        """The first measured value that lets a better split in; beyond it the answer is another one."""
        values = self._input.case.slo_values_ms(name, number)
        coming = [value for value in values if self._input.value < value < self._input.high]
        first = bisect.bisect_left(coming, True, key=lambda value: not self._stays(value))
        return coming[first] if first < len(coming) else self._input.high

    def _bar(self, factor: float) -> Bar:
        value = max(self._input.low, min(factor * self._input.value, self._input.high))
        answer = self._at(value)
        return Bar(factor, value, answer.objective_usd_per_hour if answer else None)
