"""Dollars: what GPU-hours cost under a price plan."""

from __future__ import annotations

from dataclasses import dataclass

from app import units
from app.accounting.figure import Figure, Method, missing


@dataclass(frozen=True)
class Rate:
    """Price of one GPU for one hour, without electricity for an owned GPU.

    usd_per_gpu_hour: None when no price is known; then `reason` says for what.
    tariff_usd_per_kwh: electricity the owner pays on top; None for rented GPUs, whose price includes it.
    source: where the price is from, with its date.
    """

    usd_per_gpu_hour: float | None
    method: Method
    source: str
    tariff_usd_per_kwh: float | None = None
    reason: str | None = None


def window_cost_usd(rate: Rate, gpu_count: int, window_s: float, site_energy_j: Figure) -> Figure:
    """Cost of `gpu_count` GPUs for `window_s` seconds, plus `site_energy_j` at the owner's tariff where one is set."""
    if rate.usd_per_gpu_hour is None:
        return missing("USD", rate.method, rate.reason or "no price")
    gpu_cost = rate.usd_per_gpu_hour * gpu_count * units.hours(window_s)
    if rate.tariff_usd_per_kwh is None:
        return Figure(gpu_cost, "USD", rate.method)
    if site_energy_j.value is None:
        return missing("USD", rate.method, f"electricity not known: {site_energy_j.reason}")
    return Figure(gpu_cost + units.kwh(site_energy_j.value) * rate.tariff_usd_per_kwh, "USD", "estimated")
