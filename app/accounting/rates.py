"""Figures of a moment: counts over the seconds they cover, and what they cost and draw per hour and second."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from app import units
from app.accounting.cost import Rate, window_cost_usd
from app.accounting.energy import LEAST_COVERAGE, site_energy_j, tokens_per_joule
from app.accounting.figure import Figure, missing, weakest
from app.accounting.tokens import per_mtok


def per_second(count: int | None, seconds: float | None, unit: str, reason: str) -> Figure:
    """`count` over the seconds it covers; missing for `reason` when there is no count."""
    if count is None or not seconds:
        return missing(unit, "measured", reason)
    return Figure(count / seconds, unit, "measured")


def sum_of_known(parts: Iterable[Figure], unit: str, nothing: str) -> Figure:
    """The sum of the parts that have a value; its coverage is their share.

    Missing when none has, with the first part's reason, or `nothing` without parts.
    """
    parts = list(parts)
    known = [part for part in parts if part.value is not None]
    if not known:
        return missing(unit, weakest(part.method for part in parts), str(parts[0].reason) if parts else nothing)
    value = sum(part.value for part in known if part.value is not None)
    return Figure(value, unit, weakest(part.method for part in known), coverage=len(known) / len(parts))


def mean_power_w(energy_j: float | None, covered_s: float | None, window_s: float) -> Figure:
    """Mean power over the seconds of a window that were measured; missing when those are less than half of it."""
    if energy_j is None or not covered_s:
        return missing("W", "measured", "no energy was measured")
    share = min(covered_s / window_s, 1.0)
    if share < LEAST_COVERAGE:
        return missing("W", "measured", f"energy was measured {share:.0%} of the time, below {LEAST_COVERAGE:.0%}")
    return Figure(energy_j / covered_s, "W", "measured", coverage=share)


def gpu_usd_per_hour(rate: Rate, power_w: Figure, pue: float) -> Figure:
    """What one GPU costs an hour: its rate, and for an owned one its electricity of the moment (x PUE)."""
    hourly = power_w
    if power_w.value is not None:
        hourly = replace(power_w, value=units.joules(power_w.value, units.SECONDS_PER_HOUR), unit="J")
    cost = window_cost_usd(rate, 1, units.SECONDS_PER_HOUR, site_energy_j(hourly, pue))
    if cost.value is None:
        return missing("USD/h", cost.method, str(cost.reason))
    is_metered = rate.tariff_usd_per_kwh is not None
    return Figure(cost.value, "USD/h", weakest((rate.method, power_w.method)) if is_metered else rate.method)


def tokens_per_joule_now(tokens_per_s: Figure, power_w: Figure) -> Figure:
    """Tokens a second over joules a second, of the same GPUs and window."""
    found = tokens_per_joule(power_w, tokens_per_s)
    return replace(found, method=weakest((tokens_per_s.method, power_w.method)))


def usd_per_mtok_now(usd_per_hour: Figure, tokens_per_s: Figure) -> Figure:
    """USD an hour over the tokens of an hour at this pace."""
    per_hour = tokens_per_s
    if tokens_per_s.value is not None:
        per_hour = replace(tokens_per_s, value=units.per_hour(tokens_per_s.value))
    found = per_mtok(usd_per_hour, per_hour, "USD/Mtok")
    return replace(found, method=weakest((usd_per_hour.method, tokens_per_s.method)))
