"""A demand: workload classes with their SLOs, fleets on offer, and how to solve. The schema of demand.toml."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from app import units
from app.errors import DemandError
from app.validation import GramsPerKwh, Number, Pue, Strict, Usd, Whole, describe
from collectors.benchmark.run import LatencyMetric

Name = Annotated[str, Field(min_length=1, max_length=100)]
NonNegative = Annotated[Number, Field(ge=0)]
Policy = Literal["allow", "penalise", "refuse"]
Sources = Literal["both", "live", "runs"]
CarbonSignal = Literal["average", "marginal"]
Cap = Annotated[Number, Field(ge=0, le=1e12)] | None
MOST_REPLICAS = 10_000_000  # beyond it a solver's integers are no longer exact


class Slo(Strict):
    """At least `percentile` % of requests have `metric` at or under `max_ms`."""

    metric: LatencyMetric
    percentile: Annotated[Number, Field(gt=0, le=100)]
    max_ms: Annotated[Number, Field(gt=0)]

    @property
    def name(self) -> str:
        """E.g. "p99 TTFT"."""
        return f"p{self.percentile:g} {self.metric.upper()}"

    @property
    def label(self) -> str:
        """E.g. "p99 TTFT <= 100 ms"."""
        return f"{self.name} <= {self.max_ms:g} ms"


class ShareLimit(Strict):
    """How much of a class a fleet has, 0 to 1 of its tokens: at least `min`, at most `max`."""

    fleet: str
    min: Annotated[Number, Field(ge=0, le=1)] = 0.0
    max: Annotated[Number, Field(ge=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _in_order(self) -> ShareLimit:
        if self.min > self.max:
            raise ValueError(f"min <= max (not {self.min:g} and {self.max:g})")
        return self


class WorkloadClass(Strict):
    """Traffic for one model. requests_per_s: to be carried, so of a rate that varies that of the busiest hour.
    prompt_tokens and generated_tokens: means per request.

    fleets, zones: the only ones it may use, None for any. deferrable: it may wait for a better hour of a plan.
    """

    name: Name
    model: Name
    requests_per_s: NonNegative
    prompt_tokens: NonNegative
    generated_tokens: NonNegative
    slo: tuple[Slo, ...] = ()
    fleets: tuple[str, ...] | None = None
    zones: tuple[Name, ...] | None = None
    share: tuple[ShareLimit, ...] = ()
    deferrable: bool = False

    @property
    def tokens_per_s(self) -> float:
        """Demand in total tokens per second."""
        return self.requests_per_s * (self.prompt_tokens + self.generated_tokens)

    @property
    def prompt_share(self) -> float:
        return self.prompt_tokens / (self.prompt_tokens + self.generated_tokens)

    @model_validator(mode="after")
    def _has_tokens(self) -> WorkloadClass:
        if self.prompt_tokens + self.generated_tokens <= 0:
            raise ValueError("prompt_tokens + generated_tokens > 0")
        return self

    @model_validator(mode="after")
    def _shares_fit(self) -> WorkloadClass:
        doubled = _doubled(limit.fleet for limit in self.share)
        if doubled:
            raise ValueError(f"one share limit per fleet ({', '.join(doubled)} appears twice)")
        least = sum(limit.min for limit in self.share)
        if least > 1 + 1e-9:
            raise ValueError(f"share minima that sum to at most 1 (not {least:g})")
        return self


class Running(Strict):
    """Replicas of one shape that run on a fleet today."""

    model: Name
    gpus_per_replica: Annotated[Whole, Field(ge=1)]
    replicas: Annotated[Whole, Field(ge=0, le=MOST_REPLICAS)]


class FleetOffer(Strict):
    """GPUs on offer. g_per_kwh wins over zone; without either the fleet's grams are unknown, not 0.

    usd_per_gpu_hour, embodied_g_per_gpu_hour: None is for the caller to look up. usd_per_kwh: electricity that its
    owner pays on top, per kWh of the GPUs' energy x pue. price_source, g_source, embodied_source: where the price,
    g_per_kwh and embodied grams are from. availability: of the time that a replica on order is there (spot): it
    carries, costs, draws and embodies that part. spare_replicas: that a pool in use has beyond those that carry its
    load. embodied_g_per_gpu_hour: of making the GPU; policy sunk counts it as 0. today: what runs now, against which
    switching is counted.
    """

    name: Name
    gpu: Name
    usd_per_gpu_hour: Usd | None = None
    usd_per_kwh: Usd = 0.0
    price_source: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    max_gpus: Annotated[Whole, Field(ge=0)] | None = None
    zone: str | None = None
    g_per_kwh: GramsPerKwh | None = None
    pue: Pue = 1.0
    model: Name | None = None
    kind: Name | None = None
    availability: Annotated[Number, Field(gt=0, le=1)] = 1.0
    spare_replicas: Annotated[Whole, Field(ge=0, le=1000)] = 0
    embodied_g_per_gpu_hour: Annotated[Number, Field(ge=0, le=1e6)] | None = None
    embodied_policy: Literal["full", "sunk"] = "full"
    embodied_source: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    marginal_g_per_kwh: GramsPerKwh | None = None
    today: tuple[Running, ...] = ()
    g_source: Annotated[str, Field(min_length=1, max_length=2000)] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> FleetOffer:
        if self.availability < 1 and self.spare_replicas:
            raise ValueError("availability < 1 or spare_replicas > 0, not both")
        doubled = _doubled(f"{one.model} on {one.gpus_per_replica} GPUs" for one in self.today)
        if doubled:
            raise ValueError(f"one entry of `today` per model and size ({', '.join(doubled)} appears twice)")
        return self


class SolveOptions(Strict):
    """gap: relative distance from the proven bound at which the solver may stop; 0 asks for the exact optimum.

    sources: what options are made of, live load, benchmark runs or both.
    carbon_signal: the grid intensity that the carbon price and max_g_per_hour count; what is reported stays average.
    max_watts: of the GPUs; max_usd_per_hour: without carbon price and switching; max_g_per_hour: with embodied grams.
    switch_usd_per_replica: for each replica started or stopped against today's, paid back over switch_hours.
    """

    carbon_usd_per_t: Usd = 0.0
    max_utilisation: Annotated[Number, Field(gt=0, le=1)] = 0.8
    small_samples: Policy = "allow"
    gap: Annotated[Number, Field(ge=0, lt=1)] = 0.001
    sources: Sources = "both"
    carbon_signal: CarbonSignal = "average"
    max_watts: Cap = None
    max_usd_per_hour: Cap = None
    max_g_per_hour: Cap = None
    switch_usd_per_replica: Usd = 0.0
    switch_hours: Annotated[Number, Field(gt=0, le=1e6)] = 24.0

    @property
    def switch_usd_per_hour(self) -> float:
        """$/h for each replica more or fewer than today."""
        return self.switch_usd_per_replica / self.switch_hours

    @property
    def usd_per_gram(self) -> float:
        """The carbon price."""
        return units.tonnes(self.carbon_usd_per_t)


class Demand(Strict):
    classes: Annotated[tuple[WorkloadClass, ...], Field(alias="class", min_length=1)]
    fleets: Annotated[tuple[FleetOffer, ...], Field(alias="fleet", min_length=1)]
    solve: SolveOptions = SolveOptions()

    @model_validator(mode="after")
    def _names_agree(self) -> Demand:
        fleet_names = [fleet.name for fleet in self.fleets]
        for what, names in (("class", [one.name for one in self.classes]), ("fleet", fleet_names)):
            doubled = _doubled(names)
            if doubled:
                raise ValueError(f"{what} names that differ ({', '.join(doubled)} appears twice)")
        for one in self.classes:
            for what, named in (("fleets", one.fleets or ()), ("shares", [limit.fleet for limit in one.share])):
                unknown = set(named) - set(fleet_names)
                if unknown:
                    listed = ", ".join(sorted(unknown))
                    raise ValueError(f"class {one.name!r} to list {what} among {', '.join(fleet_names)} (not {listed})")
        return self


def _doubled(names: Iterable[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if times > 1)


def parse_demand(content: Mapping[str, Any], where: str) -> Demand:
    """The demand in a TOML or JSON mapping. Raises DemandError with one line per finding; `where` names the source."""
    try:
        return Demand.model_validate(dict(content))
    except ValidationError as problem:
        raise DemandError(describe(problem, where)) from None
