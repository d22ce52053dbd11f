"""A demand: workload classes with their SLOs, fleets on offer, and how to solve. The schema of demand.toml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from app.errors import DemandError
from app.validation import GramsPerKwh, Number, Pue, Strict, Usd, Whole, describe
from collectors.benchmark.run import LatencyMetric

Name = Annotated[str, Field(min_length=1, max_length=100)]
NonNegative = Annotated[Number, Field(ge=0)]
Policy = Literal["allow", "penalise", "refuse"]
Sources = Literal["both", "live", "runs"]
MOST_REPLICAS = 10_000_000  # beyond it a solver's integers are no longer exact


class Slo(Strict):
    """At least `percentile` % of requests have `metric` at or under `max_ms`."""

    metric: LatencyMetric
    percentile: Annotated[Number, Field(gt=0, le=100)]
    max_ms: Annotated[Number, Field(gt=0)]

    @property
    def label(self) -> str:
        """E.g. "p99 TTFT <= 100 ms"."""
        return f"p{self.percentile:g} {self.metric.upper()} <= {self.max_ms:g} ms"


class WorkloadClass(Strict):
    """Traffic for one model. prompt_tokens and generated_tokens: means per request."""

    name: Name
    model: Name
    requests_per_s: NonNegative
    prompt_tokens: NonNegative
    generated_tokens: NonNegative
    slo: tuple[Slo, ...] = ()
    fleets: tuple[str, ...] | None = None

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


class Running(Strict):
    """Replicas of one shape that run on a fleet today."""

    model: Name
    gpus_per_replica: Annotated[Whole, Field(ge=1)]
    replicas: Annotated[Whole, Field(ge=0, le=MOST_REPLICAS)]


class FleetOffer(Strict):
    """GPUs on offer. g_per_kwh wins over zone; without either the fleet's grams are unknown, not 0.

    usd_per_gpu_hour: None is for the caller to look up. usd_per_kwh: electricity that its owner pays on top, per
    kWh of the GPUs' energy x pue. price_source, g_source: where the price and g_per_kwh are from.
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
    embodied_g_per_gpu_hour: Annotated[Number, Field(ge=0, le=1e6)] | None = None
    embodied_policy: Literal["full", "sunk"] = "full"
    marginal_g_per_kwh: GramsPerKwh | None = None
    today: tuple[Running, ...] = ()
    g_source: Annotated[str, Field(min_length=1, max_length=2000)] | None = None


class SolveOptions(Strict):
    """gap: relative distance from the proven bound at which the solver may stop; 0 asks for the exact optimum.

    sources: what options are made of, live load, benchmark runs or both.
    """

    carbon_usd_per_t: Usd = 0.0
    max_utilisation: Annotated[Number, Field(gt=0, le=1)] = 0.8
    small_samples: Policy = "allow"
    gap: Annotated[Number, Field(ge=0, lt=1)] = 0.001
    sources: Sources = "both"


class Demand(Strict):
    classes: Annotated[tuple[WorkloadClass, ...], Field(alias="class", min_length=1)]
    fleets: Annotated[tuple[FleetOffer, ...], Field(alias="fleet", min_length=1)]
    solve: SolveOptions = SolveOptions()

    @model_validator(mode="after")
    def _names_agree(self) -> Demand:
        fleet_names = [fleet.name for fleet in self.fleets]
        for what, names in (("class", [one.name for one in self.classes]), ("fleet", fleet_names)):
            doubled = {name for name in names if names.count(name) > 1}
            if doubled:
                raise ValueError(f"{what} names that differ ({', '.join(sorted(doubled))} appears twice)")
        for one in self.classes:
            unknown = set(one.fleets or ()) - set(fleet_names)
            if unknown:
                listed = ", ".join(sorted(unknown))
                raise ValueError(f"class {one.name!r} to list fleets among {', '.join(fleet_names)} (not {listed})")
        return self


def parse_demand(content: Mapping[str, Any], where: str) -> Demand:
    """The demand in a TOML or JSON mapping. Raises DemandError with one line per finding; `where` names the source."""
    try:
        return Demand.model_validate(dict(content))
    except ValidationError as problem:
        raise DemandError(describe(problem, where)) from None
