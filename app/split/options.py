"""Options: a fleet running one operating point; and which of them a class may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app import units
from app.errors import DemandError
from app.split.demand import CarbonSignal, Demand, FleetOffer, Policy, Slo, SolveOptions, WorkloadClass
from app.split.point import Flag, OperatingPoint, is_small_sample


@dataclass(frozen=True)
class Fleet:
    """An offer with what was looked up for it.

    gpu_label: the card's short name. kind: enterprise, consumer or any word.
    g_per_kwh: None when unknown, and `carbon_label` says why.
    """

    offer: FleetOffer
    gpu_label: str
    kind: str
    g_per_kwh: float | None
    carbon_label: str

    @property
    def name(self) -> str:
        return self.offer.name

    @property
    def usd_per_gpu_hour(self) -> float:
        """Before electricity. Raises DemandError where the offer has no price."""
        if self.offer.usd_per_gpu_hour is None:
            raise DemandError(f"fleet {self.name}: no price is known; accepted: `usd_per_gpu_hour`")
        return self.offer.usd_per_gpu_hour

    def electricity_usd_per_h(self, power_w: float | None) -> float:
        """What comes on top for an IT power, x PUE; 0 where it is in the price."""
        if self.offer.usd_per_kwh == 0:
            return 0.0
        if power_w is None:
            raise DemandError(f"fleet {self.name}: `usd_per_kwh` needs its watts, and they are unknown")
        return units.kw(power_w) * self.offer.pue * self.offer.usd_per_kwh

    def g_per_h(self, power_w: float | None, signal: CarbonSignal = "average") -> float | None:
        """Operational grams per hour of an IT power, x PUE; None when power or intensity is unknown."""
        g_per_kwh = self.g_per_kwh if signal == "average" else self.offer.marginal_g_per_kwh
        if power_w is None or g_per_kwh is None:
            return None
        return units.kw(power_w) * self.offer.pue * g_per_kwh

    @property
    def embodied_g_per_gpu_hour(self) -> float | None:
        """By the fleet's policy; None when unknown."""
        return 0.0 if self.offer.embodied_policy == "sunk" else self.offer.embodied_g_per_gpu_hour

    @property
    def embodied_label(self) -> str:
        if self.offer.embodied_policy == "sunk":
            return "0, made already (sunk)"
        each, source = self.offer.embodied_g_per_gpu_hour, self.offer.embodied_source or "user"
        return "not known: no price or cap counts it" if each is None else f"{each:g} g per GPU-hour ({source})"


@dataclass(frozen=True)
class Option:
    """A pool of like replicas. occurrence: 1 for the first run of this shape, 2 for its repeat, ..."""

    fleet: Fleet
    point: OperatingPoint
    occurrence: int = 1

    @property
    def label(self) -> str:
        """E.g. "rtx4090: 2x RTX 4090 at 16 req/s", or "... at 15.8 req/s, live"."""
        load = "all at once" if self.point.qps is None else f"at {self.point.qps:g} req/s"
        if self.point.source == "live":
            load = f"at {self.point.qps or 0:.3g} req/s, live"
        repeat = f" (run {self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.fleet.name}: {self.point.gpus}x {self.fleet.gpu_label} {load}{repeat}"

    @property
    def usd_per_replica_hour(self) -> float:
        """Of a replica on order, before electricity: a spot replica is paid while it is there."""
        return self.fleet.usd_per_gpu_hour * self.point.gpus * self.fleet.offer.availability

    @property
    def embodied_g_per_replica_hour(self) -> float | None:
        each = self.fleet.embodied_g_per_gpu_hour
        return None if each is None else each * self.point.gpus * self.fleet.offer.availability

    def power_w(self, utilisation: float) -> float | None:
        """IT power of a replica on order, over the time; utilisation: of its throughput while it is there."""
        power_w = self.point.power_w(utilisation)
        return None if power_w is None else power_w * self.fleet.offer.availability

    @property
    def load_w(self) -> float:
        """W above idle of a filled replica; 0 where the power is unknown."""
        idle_w, loaded_w = self.point.idle_w, self.point.loaded_w
        return 0.0 if idle_w is None or loaded_w is None else loaded_w - idle_w

    def load_of(self, one: WorkloadClass) -> float:
        """The class's whole demand in replicas that are there all the time and filled to their throughput."""
        return one.tokens_per_s / self.point.tokens_per_s_for(one)

    def usable_replicas(self, max_utilisation: float) -> float:
        """What a replica on order carries, in replicas that are there all the time and filled."""
        return max_utilisation * self.fleet.offer.availability

    def usable_tokens_per_s(self, max_utilisation: float) -> float:
        return self.usable_replicas(max_utilisation) * self.point.tokens_per_s


@dataclass(frozen=True)
class Exclusion:
    """Why a class may not use an option. gap: failing value over its limit, for finding the nearest miss."""

    option: Option
    class_name: str
    reason: str
    gap: float | None = None


@dataclass(frozen=True)
class Admission:
    """For each class, its options (in canonical order) and what is out, with the failing number."""

    options: tuple[Option, ...]
    admissible: dict[str, tuple[int, ...]]
    flags: dict[tuple[str, int], tuple[Flag, ...]]
    excluded: tuple[Exclusion, ...]


def same_model(wanted: str, measured: str) -> bool:
    """Whether a model name means a run's model: in full, or without the organisation (`org/model` = `model`)."""
    if "/" in wanted:
        return wanted.casefold() == measured.casefold()
    return wanted.casefold() == measured.rsplit("/", 1)[-1].casefold()


def admit(demand: Demand, options: Sequence[Option]) -> Admission:
    """Sort the options canonically and test each against each class of its model (design section 5, first bullet)."""
    relevant = [o for o in options if any(same_model(one.model, o.point.model) for one in demand.classes)]
    ordered = tuple(sorted(relevant, key=_canonical))
    admissible: dict[str, tuple[int, ...]] = {}
    flags: dict[tuple[str, int], tuple[Flag, ...]] = {}
    excluded: list[Exclusion] = []
    for one in demand.classes:
        fitting: list[int] = []
        for index, option in enumerate(ordered):
            if not same_model(one.model, option.point.model):
                continue
            failure = _failure(one, option, demand.solve)
            if failure:
                excluded.append(failure)
                continue
            fitting.append(index)
            flags[one.name, index] = tuple(option.point.flags(one))
        admissible[one.name] = tuple(fitting)
    return Admission(ordered, admissible, flags, tuple(excluded))


def _canonical(option: Option) -> tuple[str, int, float, str, str]:
    """Fleet name first: the order in which ties are broken. It does not depend on the order of the input."""
    point = option.point
    return (option.fleet.name, point.gpus, point.qps or float("inf"), point.model, point.point_id)


def _failure(one: WorkloadClass, option: Option, solve: SolveOptions) -> Exclusion | None:
    said = _barred(one, option) or _unusable(option, solve)
    return Exclusion(option, one.name, said) if said else slo_failure(one, one.slo, option, solve.small_samples)


def _barred(one: WorkloadClass, option: Option) -> str | None:
    """By which limit of the demand the class may not go to this fleet, or the option is none of it."""
    fleet = option.fleet
    if one.fleets is not None and fleet.name not in one.fleets:
        return f"class {one.name} may only use {', '.join(one.fleets) or 'no fleet'}"
    if not in_zones(one.zones, fleet):
        where = f"in {fleet.offer.zone}" if fleet.offer.zone else "in no zone that is told"
        return f"class {one.name} may only use zones {', '.join(one.zones or ()) or '(none)'}, {fleet.name} is {where}"
    if fleet.offer.model is not None and not same_model(fleet.offer.model, option.point.model):
        return f"fleet {fleet.name} serves only {fleet.offer.model}"
    if fleet.offer.max_gpus is not None and fleet.offer.max_gpus < option.point.gpus:
        return f"needs {option.point.gpus} GPUs, fleet has {fleet.offer.max_gpus}"
    return None


def in_zones(zones: tuple[str, ...] | None, fleet: Fleet) -> bool:
    return zones is None or (fleet.offer.zone or "").casefold() in {zone.casefold() for zone in zones}


def _unusable(option: Option, solve: SolveOptions) -> str | None:
    """What of the option is unknown, without which it cannot be planned with."""
    if option.point.tokens_per_s == 0:
        return "the run made no tokens"
    power_w = option.point.power_w(solve.max_utilisation)
    if power_w is None and solve.max_watts is not None:
        return "its power is unknown, and `max_watts` is set"
    if option.fleet.g_per_h(power_w, solve.carbon_signal) is not None:
        return None
    if solve.max_g_per_hour is not None:
        return f"its {solve.carbon_signal} grams are unknown, and `max_g_per_hour` is set"
    if solve.carbon_usd_per_t > 0 and solve.carbon_signal == "marginal":
        return "its marginal grams are unknown, and they are priced"
    return None


def slo_failure(one: WorkloadClass, limits: Sequence[Slo], option: Option, policy: Policy) -> Exclusion | None:
    """The first of `limits` that the option was not measured to hold."""
    for slo in limits:
        n = option.point.n
        if policy == "refuse" and is_small_sample(n, slo.percentile):
            return Exclusion(option, one.name, f"small sample: {n} requests cannot show a p{slo.percentile:g}")
        value, name = option.point.slo_value_ms(slo, policy)
        if value is None:
            return Exclusion(option, one.name, f"{name} was not measured")
        if value > slo.max_ms:
            reason = option.point.slo_reason(slo, value, name)
            return Exclusion(option, one.name, reason, value / slo.max_ms)
    return None
