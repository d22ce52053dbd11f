"""One line of an account: what a fleet did for a model in a period, over one set of denominators (design law 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.accounting.figure import Figure, Method
from app.accounting.latency import Quantile


@dataclass(frozen=True)
class Period:
    """[start, end) in UTC. label: how a person names it, e.g. a local day or the local start of an hour."""

    start: datetime
    end: datetime
    label: str


@dataclass(frozen=True)
class AccountLine:
    """fleet None: GPUs that no fleet claims; model None: GPUs with no engine on them (unallocated).

    energy_j and carbon_g are those of `boundary`; ttft: percentile -> quantile of all first tokens of the period;
    coverage: seconds with a measured energy over seconds the GPUs were there; method: the weakest of the line's own.
    """

    period: Period
    fleet: str | None
    model: str | None
    boundary: str
    basis: str
    gpu_hours: Figure
    prompt_tokens: Figure
    cached_tokens: Figure
    generated_tokens: Figure
    requests: Figure
    failed_requests: Figure
    energy_j: Figure
    cost_usd: Figure
    usd_per_mtok: Figure
    tokens_per_joule: Figure
    carbon_g: Figure
    g_per_mtok: Figure
    ttft: Mapping[float, Quantile]
    coverage: float | None
    method: Method
    price_source: str
    grid: str
