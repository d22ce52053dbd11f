"""How much a split saves against a baseline, given that throughputs were sampled and prices have a range.

Both splits stay as they are: the same shares on the same points. For a throughput that turns out otherwise the replicas
are rounded up again, and for other prices both are billed again. The interval has the least and the greatest saving of
all corners: each fleet's price low or high, each point's throughput low, as measured, or high. A fleet's price and a
point's throughput are the same in both splits, so what both use cancels out.

Sampling error, 95%:
* a run of n finished requests: 1.96 / sqrt(n). Completions in a fixed time are at most as irregular as a Poisson
  process, of which a count n has the standard deviation sqrt(n); engines that batch are more regular. Equal requests
  are assumed; where completions come regularly, the same bound holds for request sizes that vary by up to their mean.
* a live point of m minutes within a bin of load [low, high): 1.96 x (high - low) / 2 / sqrt(m) over its throughput. No
  spread within an interval is above half its width (Popoviciu); minutes are taken as independent.
Not included: another workload than the one measured, latencies, tokens and rates of the demand (see robustness).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.split.answer import Pool, SplitAnswer
from app.split.demand import Demand
from app.split.options import Option
from app.split.point import OperatingPoint

Z_95 = 1.96
_ROUNDING = 1e-9
# USD per GPU-hour of a fleet, lowest and highest.
PriceRanges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class SavingInterval:
    """$/h. includes: what was varied. short: fleets on which the split would no longer fit at a low throughput."""

    saving: float
    low: float
    high: float
    includes: tuple[str, ...]
    short: tuple[str, ...]

    @property
    def text(self) -> str:
        """E.g. "Saves $7.50/h, $5.10 to $9.00 with 95% of the sampling error and list prices." """
        return (
            f"Saves {_usd(self.saving)}/h; {_usd(self.low)} to {_usd(self.high)}/h with {' and '.join(self.includes)}."
            + "".join(f" {one}." for one in self.short)
        )


def saving_interval(
    demand: Demand, answer: SplitAnswer, baseline: SplitAnswer, prices: PriceRanges | None = None
) -> SavingInterval | None:
    """None when either is infeasible. prices: of fleets whose price has a range."""
    if answer.usd_per_hour is None or baseline.usd_per_hour is None:
        return None
    prices = prices or {}
    mine, theirs = _Loads(demand, answer), _Loads(demand, baseline)
    by_fleet: dict[str, list[Option]] = {}
    for option in (theirs.options | mine.options).values():
        by_fleet.setdefault(option.fleet.name, []).append(option)
    spans = [_fleet_span(mine, theirs, found, prices) for found in by_fleet.values()]
    return SavingInterval(
        saving=baseline.usd_per_hour - answer.usd_per_hour,
        low=sum(low for low, _ in spans),
        high=sum(high for _, high in spans),
        includes=tuple(_includes([*answer.pools, *baseline.pools], prices)),
        short=tuple(mine.short()),
    )


def throughput_error(point: OperatingPoint) -> float | None:
    """Relative half-width of the 95% interval of its tokens/s; None when nothing is known of its sample."""
    if point.window is not None:
        if point.window.minutes < 1 or point.tokens_per_s <= 0:
            return None
        half = (point.window.high_tokens_per_s - point.window.low_tokens_per_s) / 2
        return Z_95 * half / math.sqrt(point.window.minutes) / point.tokens_per_s
    return Z_95 / math.sqrt(point.n) if point.n > 0 else None


def _factors(point: OperatingPoint) -> tuple[float, float, float]:
    """Of its throughput: low, as measured, high. Low is 1/high, which stays above 0 for the smallest sample."""
    error = throughput_error(point) or 0.0
    return 1 / (1 + error), 1.0, 1 + error


class _Loads:
    """What a split puts on each option, so that it can be billed again at other throughputs and prices."""

    def __init__(self, demand: Demand, answer: SplitAnswer) -> None:
        classes = {one.name: one for one in demand.classes}
        self._demand = demand
        self._counts = {_key(pool.option): pool.count for pool in answer.pools}
        self._loads: dict[tuple[str, str], float] = {}
        self.options = {_key(pool.option): pool.option for pool in answer.pools}
        for share in answer.shares:
            load = share.share * share.option.load_of(classes[share.class_name])
            self._loads[_key(share.option)] = self._loads.get(_key(share.option), 0.0) + load

    def replicas(self, option: Option, factor: float) -> int:
        """As they are for the throughput measured, rounded up again for another one; spares are kept."""
        if factor == 1:
            return self._counts[_key(option)]
        each = factor * option.usable_replicas(self._demand.solve.max_utilisation)
        carrying = self._loads.get(_key(option), 0.0) / each
        return math.ceil(carrying - _ROUNDING) + (option.fleet.offer.spare_replicas if carrying else 0)

    def usd_per_hour(self, option: Option, factor: float, price_factor: float) -> float:
        if _key(option) not in self._counts:
            return 0.0
        replicas, idle_w = self.replicas(option, factor), option.power_w(0.0)
        load_w = option.load_w * self._loads.get(_key(option), 0.0) / factor
        power_w = None if idle_w is None else replicas * idle_w + load_w
        return replicas * option.usd_per_replica_hour * price_factor + option.fleet.electricity_usd_per_h(power_w)

    def short(self) -> Iterator[str]:
        """Fleets that have too few GPUs when every point is as slow as its sample allows."""
        for offer in self._demand.fleets:
            mine = [option for option in self.options.values() if option.fleet.name == offer.name]
            taken = sum(self.replicas(option, _factors(option.point)[0]) * option.point.gpus for option in mine)
            if offer.max_gpus is not None and taken > offer.max_gpus:
                yield f"At the lowest throughputs it would need {taken} GPUs of {offer.name}, of {offer.max_gpus}"


def _key(option: Option) -> tuple[str, str]:
    return option.fleet.name, option.point.point_id


def _fleet_span(mine: _Loads, theirs: _Loads, options: Sequence[Option], prices: PriceRanges) -> tuple[float, float]:
    """(least, greatest) part of the saving that a fleet has: over its price, and for each over each point's speed."""
    fleet = options[0].fleet
    now = fleet.usd_per_gpu_hour
    spans = []
    for price in {1.0, *(price / now for price in prices.get(fleet.name, ()) if now > 0)}:
        parts = [
            [theirs.usd_per_hour(one, factor, price) - mine.usd_per_hour(one, factor, price)
             for factor in _factors(one.point)]
            for one in options
        ]  # fmt: skip
        spans.append((sum(min(part) for part in parts), sum(max(part) for part in parts)))
    return min(low for low, _ in spans), max(high for _, high in spans)


def _includes(pools: Sequence[Pool], prices: PriceRanges) -> Iterator[str]:
    errors = [
        throughput_error(point) for point in {pool.option.point.point_id: pool.option.point for pool in pools}.values()
    ]
    known = [error for error in errors if error is not None]
    if known:
        least, most = f"{min(known):.1%}", f"{max(known):.1%}"
        span = least if least == most else f"{least} to {most}"
        yield f"the sampling error of throughputs (95%, +{span})"
    if len(known) < len(errors):
        yield "no error of points whose sample is not known"
    names = {pool.option.fleet.name for pool in pools}
    ranged = [f"{name} at ${low:.4g} to ${high:.4g}" for name, (low, high) in sorted(prices.items()) if name in names]
    yield f"list prices of the cards ({', '.join(ranged)} per GPU-hour)" if ranged else "no range of prices"


def _usd(value: float) -> str:
    return f"-${-value:,.2f}" if value < 0 else f"${value:,.2f}"
