"""One line of a report: what a fleet did for a model in a period, over one set of denominators (design law 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.accounting.figure import Figure, Method
from app.accounting.latency import Quantile
from app.accounting.periods import Period


@dataclass(frozen=True)
class AccountLine:
    """fleet None: GPUs that no fleet claims; model None: GPUs with no engine on them (unallocated).

    figures: by name, see app/accounting/account.py; energy within `boundary`. ttft: percentile -> quantile of all first
    tokens of the period; coverage: seconds with a measured energy over seconds the GPUs were there; method: the weakest
    by which seconds, joules and tokens were got. carbon_basis: see app/accounting/carbon_line.py.
    """

    period: Period
    fleet: str | None
    model: str | None
    boundary: str
    basis: str
    figures: Mapping[str, Figure]
    ttft: Mapping[float, Quantile]
    coverage: float | None
    method: Method
    price_source: str
    grid: str
    carbon_basis: str
