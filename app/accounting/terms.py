"""What counts for a GPU while no fact changes: its price, its electricity, its grid. The rows that are priced by it."""

from __future__ import annotations

from dataclasses import dataclass

from app.accounting.carbon import EmbodiedCarbon, GridFactor, MarketFactor
from app.accounting.figure import Method


@dataclass(frozen=True)
class Terms:
    """Of one card in one fleet.

    usd_per_gpu_hour: before electricity; None for `reason`, e.g. "no price for X". is_owned: hours in which the GPU is
    off are paid, too, and so is electricity: usd_per_kwh; None for `no_tariff`. in_service: of owned ones, whether they
    are. host_w: the host's power per GPU. billing_increment_s: a stretch of rented hours is rounded up to it; 0: it is
    not. market: what the supplier discloses; None without a supplier factor. embodied: of making the card; None:
    nothing is known of it.
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
    in_service: bool = True
    market: MarketFactor | None = None
    embodied: EmbodiedCarbon | None = None


@dataclass(frozen=True, slots=True)
class HourlyPart:
    """Joules of GPUs and their seconds in hours whose grid intensity is known, and the same times g/kWh.

    bases: of these intensities: lifecycle, direct or provider (who does not say).
    """

    j: float
    s: float
    weighed_j: float
    weighed_s: float
    bases: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GridHours:
    """Hours of use whose grid intensity is known, with an engine at work (used) and without (rest).

    estimated_j, forecast_j: of their joules, those whose intensity is estimated or forecast. sources: who told them of
    which zone, for each basis.
    """

    used: HourlyPart
    rest: HourlyPart
    estimated_j: float
    forecast_j: float
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GpuUse:
    """What GPUs of one card and replica type did: sums over them and over the time of one Terms.

    allocated: whether an engine was on them. used_s: of provisioned_s, seconds in which one worked. known_j,
    interpolated_j, estimated_j: measured, across gaps, and filled in; unknown_s: seconds that could not be. idle_j: of
    all three, while no engine worked. shared: engines split them by a rule. grid_hours: of them, what falls in hours
    whose grid intensity is known; for the rest the grid of the terms counts.
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
    grid_hours: GridHours | None = None
