"""The answer to a demand: the numbers of a solution, in the shape that page, API and command line show."""

from __future__ import annotations

from dataclasses import dataclass

from app import units
from app.split.demand import Demand, WorkloadClass
from app.split.options import Admission, Exclusion, Option
from app.split.solve import Solution

GAP_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Share:
    """Part of a class that goes to an option. tokens_per_s: its load there."""

    class_name: str
    option: Option
    share: float
    tokens_per_s: float
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Pool:
    """Replicas of one option. utilisation: load over measured throughput, 0 to 1. power_w: IT power under this load."""

    option: Option
    count: int
    tokens_per_s: float
    utilisation: float
    usd_per_hour: float
    power_w: float | None
    g_per_hour: float | None


@dataclass(frozen=True)
class SplitAnswer:
    """status optimal: everything below is set. status infeasible: `reason` says why, the pools are empty.
    status feasible: the solver's time ran out further from the proven optimum than was asked; `gap` says how far.

    power_w is the GPUs' power without host or PUE; g_per_hour is operational, x PUE; None for the reasons in
    `missing`. objective_usd_per_hour adds the carbon price. limits: GPU limits that the answer has reached.
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

    @property
    def usd_per_mtok(self) -> float | None:
        """None without load: `no tokens`."""
        return self._per_mtok(self.usd_per_hour)

    @property
    def g_per_mtok(self) -> float | None:
        return self._per_mtok(self.g_per_hour)

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
        _pool(option, count, sum(share.tokens_per_s for share in shares if share.option == option))
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
        power_w=_sum_or_none([pool.power_w for pool in pools]),
        g_per_hour=_sum_or_none([pool.g_per_hour for pool in pools]),
        objective_usd_per_hour=solution.objective,
        bound_usd_per_hour=solution.bound,
        gap=solution.gap,
        limits=_limits(demand, admission, pools),
        missing=_missing(pools),
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
        )
        for (name, index), share in solution.shares.items()
    )


def _pool(option: Option, count: int, tokens_per_s: float) -> Pool:
    point = option.point
    utilisation = tokens_per_s / (count * point.tokens_per_s)
    each_w = point.power_w(utilisation)
    power_w = None if each_w is None else count * each_w
    return Pool(
        option=option,
        count=count,
        tokens_per_s=tokens_per_s,
        utilisation=utilisation,
        usd_per_hour=count * option.usd_per_replica_hour + option.fleet.electricity_usd_per_h(power_w),
        power_w=power_w,
        g_per_hour=option.fleet.g_per_h(power_w),
    )


def _sum_or_none(parts: list[float | None]) -> float | None:
    """The sum, or None when any part is missing: a partial sum would pass for the whole."""
    return None if any(part is None for part in parts) else sum(part for part in parts if part is not None)


def _limits(demand: Demand, admission: Admission, pools: tuple[Pool, ...]) -> tuple[str, ...]:
    """Fleets on which not one more admissible replica fits."""
    found = []
    for fleet in demand.fleets:
        used = sum(pool.count * pool.option.point.gpus for pool in pools if pool.option.fleet.name == fleet.name)
        sizes = [
            admission.options[index].point.gpus
            for indices in admission.admissible.values()
            for index in indices
            if admission.options[index].fleet.name == fleet.name
        ]
        if fleet.max_gpus is not None and sizes and fleet.max_gpus - used < min(sizes):
            some = f"{used} of {fleet.max_gpus} GPUs of {fleet.name} are in use and no further replica fits"
            found.append(f"all {used} GPUs of {fleet.name} are in use" if used == fleet.max_gpus else some)
    return tuple(found)


def _missing(pools: tuple[Pool, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for pool in pools:
        if pool.power_w is None:
            found[f"no power is known for {pool.option.point.gpu_name}"] = None
        if pool.option.fleet.g_per_kwh is None:
            found[f"fleet {pool.option.fleet.name}: {pool.option.fleet.carbon_label}"] = None
    return tuple(found)
