"""What counts for a GPU while no fact changes: its price, its electricity, its grid. The rows that are priced by it."""

from __future__ import annotations

from dataclasses import dataclass

from app.accounting.carbon import GridFactor
from app.accounting.figure import Method


@dataclass(frozen=True)
class Terms:
    """Of one card in one fleet.

    usd_per_gpu_hour: before electricity; None for `reason`, e.g. "no price for X". is_owned: hours in which the GPU is
    off are paid, too, and so is electricity: usd_per_kwh; None for `no_tariff`. host_w: the host's power per GPU.
    billing_increment_s: a stretch of rented hours is rounded up to it; 0: it is not.
    """

    usd_per_gpu_hour: float | None
    method: Method
    source: str
    grid: GridFactor
    pue: float = 1.0
    host_w: float = 0.0
    reason: str | None = None
    is_owned: bool = False
    usd_per_kwh: float | None = None
    no_tariff: str | None = None
    billing_increment_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GpuUse:
    """What GPUs of one card and replica type did: sums over them and over the time of one Terms.

    allocated: whether an engine was on them. used_s: of provisioned_s, seconds in which one worked. known_j,
    interpolated_j, estimated_j: measured, across gaps, and filled in; unknown_s: seconds that could not be. idle_j: of
    all three, while no engine worked. shared: engines split them by a rule.
    """

    allocated: bool
    provisioned_s: float
    used_s: float = 0.0
    known_j: float = 0.0
    interpolated_j: float = 0.0
    estimated_j: float = 0.0
    unknown_s: float = 0.0
    idle_j: float = 0.0
    covered_s: float = 0.0
    bridged_s: float = 0.0
    throttled_s: float = 0.0
    shared: bool = False
    simulated: bool = False
