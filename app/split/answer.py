"""The answer to a demand: the numbers of a solution, in the shape that page, API and command line show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app import units
from app.split.demand import Demand, WorkloadClass
from app.split.options import Admission, Exclusion, Option
from app.split.solve import Solution

GAP_TOLERANCE = 1e-6
BORDER = 1e-6


@dataclass(frozen=True)
class Held:
    """An SLO that a share holds. measured: what was held against it, e.g. "p99 TTFT (stands in for p95)"."""

    limit: str
    measured: str
    value_ms: float
    max_ms: float

    @property
    def margin(self) -> float:
        """How much of the limit is left, 0 to 1."""
        return 1 - self.value_ms / self.max_ms


@dataclass(frozen=True)
class Share:
    """Part of a class that goes to an option. tokens_per_s: its load there. held: its SLOs at the option's point."""

    class_name: str
    option: Option
    share: float
    tokens_per_s: float
    flags: tuple[str, ...]
    held: tuple[Held, ...] = ()


@dataclass(frozen=True)
class Pool:
    """Replicas of one option, `spares` of them beyond those that carry its load.

    utilisation: load over the measured throughput of all of them while they are there, 0 to 1. power_w: IT power under
    this load. g_per_hour: operational, by the average intensity.
    """

    option: Option
    count: int
    tokens_per_s: float
    utilisation: float
    usd_per_hour: float
    power_w: float | None
    g_per_hour: float | None
    embodied_g_per_hour: float | None = None
    spares: int = 0


@dataclass(frozen=True)
class Relaxation:
    """One limit of the demand that, moved from `given` to `needed`, makes it feasible; None for no limit at all.

    unit: GPUs, ms, W, USD/h, g/h, share; or fleet or zone, where `needed` is the name of one more to allow.
    usd_per_hour: what the answer then costs; objective_usd_per_hour: with carbon price and switching.
    """

    limit: str
    text: str
    unit: str
    given: float | None
    needed: float | str | None
    usd_per_hour: float
    objective_usd_per_hour: float


@dataclass(frozen=True)
class SplitAnswer:
    """status optimal: everything below is set. status infeasible: `reason` says why, the pools are empty.
    status feasible: the solver's time ran out further from the proven optimum than was asked; `gap` says how far.

    power_w is the GPUs' power without host or PUE; g_per_hour is operational, x PUE, by the average intensity; None for
    the reasons in `missing`. embodied_g_per_hour: None where a fleet's is not known. priced_g_per_hour: what the carbon
    price and the cap count: by the demand's carbon signal, with embodied grams. objective_usd_per_hour adds the carbon
    price and switching. limits: those that the answer has reached.
    conflict: of an infeasible demand the smallest set of limits that conflict; relaxation: the cheapest single one that
    makes it feasible, None when no single one does. Both only where they were looked for: see `recommend`.
    """

    status: str
    reason: str | None = None
    shares: tuple[Share, ...] = ()
    pools: tuple[Pool, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    tokens_per_s: float = 0.0
    usd_per_hour: float | None = None
    power_w: float | None = None
    g_per_hour: float | None = None
    objective_usd_per_hour: float | None = None
    bound_usd_per_hour: float | None = None
    gap: float | None = None
    limits: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    embodied_g_per_hour: float | None = None
    priced_g_per_hour: float | None = None
    switch_usd_per_hour: float | None = None
    conflict: tuple[str, ...] = ()
    relaxation: Relaxation | None = None

    @property
    def usd_per_mtok(self) -> float | None:
        """None without load: `no tokens`."""
        return self._per_mtok(self.usd_per_hour)

    @property
    def g_per_mtok(self) -> float | None:
        return self._per_mtok(self.g_per_hour)

    @property
    def embodied_g_per_mtok(self) -> float | None:
        return self._per_mtok(self.embodied_g_per_hour)

    @property
    def total_g_per_hour(self) -> float | None:
        """Operational and embodied; None when either is unknown."""
        return sum_or_none([self.g_per_hour, self.embodied_g_per_hour])

    @property
    def tokens_per_joule(self) -> float | None:
        return self.tokens_per_s / self.power_w if self.power_w else None

    def _per_mtok(self, per_hour: float | None) -> float | None:
        if per_hour is None or self.tokens_per_s == 0:
            return None
        return per_hour / units.mtok(units.per_hour(self.tokens_per_s))


def build_answer(demand: Demand, admission: Admission, solution: Solution) -> SplitAnswer:
    """The figures of `solution`, recomputed from its integers and shares rather than read off the solver."""
    shares = _shares(demand, admission, solution)
    pools = tuple(
        _pool(demand, option, count, [share for share in shares if share.option == option])
        for option, count in zip(admission.options, solution.replicas, strict=True)
        if count
    )
    return SplitAnswer(
        status="optimal" if solution.gap <= demand.solve.gap + GAP_TOLERANCE else "feasible",
        shares=shares,
        pools=pools,
        excluded=admission.excluded,
        tokens_per_s=sum(one.tokens_per_s for one in demand.classes),
        usd_per_hour=sum(pool.usd_per_hour for pool in pools),
        power_w=sum_or_none([pool.power_w for pool in pools]),
        g_per_hour=sum_or_none([pool.g_per_hour for pool in pools]),
        objective_usd_per_hour=solution.objective,
        bound_usd_per_hour=solution.bound,
        gap=solution.gap,
        limits=_limits(demand, admission, pools, shares),
        missing=_missing(pools),
        embodied_g_per_hour=sum_or_none([pool.embodied_g_per_hour for pool in pools]),
        priced_g_per_hour=_priced_g_per_hour(demand, pools),
        switch_usd_per_hour=demand.solve.switch_usd_per_hour * solution.switched,
    )


def _shares(demand: Demand, admission: Admission, solution: Solution) -> tuple[Share, ...]:
    classes: dict[str, WorkloadClass] = {one.name: one for one in demand.classes}
    return tuple(
        Share(
            class_name=name,
            option=admission.options[index],
            share=share,
            tokens_per_s=share * classes[name].tokens_per_s,
            flags=admission.flags[name, index],
            held=tuple(_held(demand, classes[name], admission.options[index])),
        )
        for (name, index), share in solution.shares.items()
    )


def _held(demand: Demand, one: WorkloadClass, option: Option) -> Iterator[Held]:
    for slo in one.slo:
        value_ms, measured = option.point.slo_value_ms(slo, demand.solve.small_samples)
        if value_ms is not None:
            yield Held(slo.label, measured, value_ms, slo.max_ms)


def _pool(demand: Demand, option: Option, count: int, shares: Sequence[Share]) -> Pool:
    classes = {one.name: one for one in demand.classes}
    load = sum(share.share * option.load_of(classes[share.class_name]) for share in shares)
    utilisation = load / (count * option.fleet.offer.availability)
    each_w, embodied = option.power_w(utilisation), option.embodied_g_per_replica_hour
    power_w = None if each_w is None else count * each_w
    return Pool(
        option=option,
        count=count,
        tokens_per_s=sum(share.tokens_per_s for share in shares),
        utilisation=utilisation,
        usd_per_hour=count * option.usd_per_replica_hour + option.fleet.electricity_usd_per_h(power_w),
        power_w=power_w,
        g_per_hour=option.fleet.g_per_h(power_w),
        embodied_g_per_hour=None if embodied is None else count * embodied,
        spares=min(count, option.fleet.offer.spare_replicas) if shares else 0,
    )


def _priced_g_per_hour(demand: Demand, pools: Sequence[Pool]) -> float | None:
    """Embodied grams that are not known are not priced."""
    operational = [pool.option.fleet.g_per_h(pool.power_w, demand.solve.carbon_signal) for pool in pools]
    embodied = sum(pool.embodied_g_per_hour or 0.0 for pool in pools)
    return sum_or_none([*operational, embodied])


def sum_or_none(parts: Sequence[float | None]) -> float | None:
    """The sum, or None when any part is missing: a partial sum would pass for the whole."""
    return None if any(part is None for part in parts) else sum(part for part in parts if part is not None)


def _limits(demand: Demand, admission: Admission, pools: Sequence[Pool], shares: Sequence[Share]) -> tuple[str, ...]:
    """The limits that are reached: not one more admissible replica fits, or a share is at its border."""
    usable = [
        admission.options[index] for index in sorted({i for found in admission.admissible.values() for i in found})
    ]
    return (
        *_full_fleets(demand, usable, pools),
        *_borders(demand, shares),
        *_full_caps(demand, usable, pools),
    )


def _full_fleets(demand: Demand, usable: Sequence[Option], pools: Sequence[Pool]) -> Iterator[str]:
    for fleet in demand.fleets:
        used = sum(pool.count * pool.option.point.gpus for pool in pools if pool.option.fleet.name == fleet.name)
        sizes = [option.point.gpus for option in usable if option.fleet.name == fleet.name]
        if fleet.max_gpus is not None and sizes and fleet.max_gpus - used < min(sizes):
            some = f"{used} of {fleet.max_gpus} GPUs of {fleet.name} are in use and no further replica fits"
            yield f"all {used} GPUs of {fleet.name} are in use" if used == fleet.max_gpus else some


def _borders(demand: Demand, shares: Sequence[Share]) -> Iterator[str]:
    for one in (one for one in demand.classes if one.tokens_per_s > 0):
        for limit in one.share:
            there = sum(
                share.share
                for share in shares
                if (share.class_name, share.option.fleet.name) == (one.name, limit.fleet)
            )
            if limit.min > 0 and there <= limit.min + BORDER:
                yield f"{limit.fleet} has no more of {one.name} than the {limit.min:.0%} that it must have"
            if limit.max < 1 and there >= limit.max - BORDER:
                yield f"{limit.fleet} has all of {one.name} that it may have ({limit.max:.0%})"


def _full_caps(demand: Demand, usable: Sequence[Option], pools: Sequence[Pool]) -> Iterator[str]:
    """Caps under which not one more replica fits, not even an idle one."""
    solve = demand.solve
    idle = [_pool(demand, option, 1, ()) for option in usable]

    def is_full(cap: float | None, used: float | None, each: Sequence[float | None]) -> bool:
        known = [value for value in each if value is not None]
        return cap is not None and used is not None and cap - used < min(known, default=0.0) + BORDER * cap

    usd = sum(pool.usd_per_hour for pool in pools)
    if is_full(solve.max_usd_per_hour, usd, [pool.usd_per_hour for pool in idle]):
        yield f"under ${solve.max_usd_per_hour:,.2f}/h no further replica fits"
    watts = sum_or_none([pool.power_w for pool in pools])
    if is_full(solve.max_watts, watts, [pool.power_w for pool in idle]):
        yield f"under {solve.max_watts:,.0f} W no further replica fits"
    grams = _priced_g_per_hour(demand, pools)
    if is_full(solve.max_g_per_hour, grams, [_priced_g_per_hour(demand, [pool]) for pool in idle]):
        yield f"under {solve.max_g_per_hour:,.0f} g/h no further replica fits"


def _missing(pools: Sequence[Pool]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for pool in pools:
        fleet = pool.option.fleet
        if pool.power_w is None:
            found[f"no power is known for {pool.option.point.gpu_name}"] = None
        if fleet.g_per_kwh is None:
            found[f"fleet {fleet.name}: {fleet.carbon_label}"] = None
    return tuple(found)
