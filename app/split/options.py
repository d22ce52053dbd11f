"""Options: a fleet running one operating point; and which of them a class may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app import units
from app.errors import DemandError
from app.split.demand import Demand, FleetOffer, Policy, WorkloadClass
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

    def g_per_h(self, power_w: float | None) -> float | None:
        """Operational grams per hour of an IT power, x PUE; None when power or intensity is unknown."""
        if power_w is None or self.g_per_kwh is None:
            return None
        return units.kw(power_w) * self.offer.pue * self.g_per_kwh


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
        """Before electricity."""
        return self.fleet.usd_per_gpu_hour * self.point.gpus

    def usable_tokens_per_s(self, max_utilisation: float) -> float:
        return max_utilisation * self.point.tokens_per_s

    def usd_per_mtok(self, max_utilisation: float) -> float:
        """$/Mtok of a replica loaded to `max_utilisation`: what the option costs when it is well filled."""
        hourly = self.usd_per_replica_hour + self.fleet.electricity_usd_per_h(self.point.power_w(max_utilisation))
        return hourly / units.mtok(units.per_hour(self.usable_tokens_per_s(max_utilisation)))

    def g_per_mtok(self, max_utilisation: float) -> float | None:
        """g/Mtok of a replica loaded to `max_utilisation`; None when power or intensity is unknown."""
        grams = self.fleet.g_per_h(self.point.power_w(max_utilisation))
        return None if grams is None else grams / units.mtok(units.per_hour(self.usable_tokens_per_s(max_utilisation)))


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
            failure = _failure(one, option, demand.solve.small_samples)
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


def _failure(one: WorkloadClass, option: Option, policy: Policy) -> Exclusion | None:
    fleet = option.fleet
    if one.fleets is not None and fleet.name not in one.fleets:
        return Exclusion(option, one.name, f"class {one.name} may only use {', '.join(one.fleets) or 'no fleet'}")
    if fleet.offer.model is not None and not same_model(fleet.offer.model, option.point.model):
        return Exclusion(option, one.name, f"fleet {fleet.name} serves only {fleet.offer.model}")
    if fleet.offer.max_gpus is not None and fleet.offer.max_gpus < option.point.gpus:
        return Exclusion(option, one.name, f"needs {option.point.gpus} GPUs, fleet has {fleet.offer.max_gpus}")
    if option.point.tokens_per_s == 0:
        return Exclusion(option, one.name, "the run made no tokens")
    return _slo_failure(one, option, policy)


def _slo_failure(one: WorkloadClass, option: Option, policy: Policy) -> Exclusion | None:
    for slo in one.slo:
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
