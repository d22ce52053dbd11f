"""Joules: energy of a window, and how many tokens it made."""

from __future__ import annotations

from typing import Literal

from app import units
from app.accounting.figure import Figure, missing

# What an energy takes in: the GPUs; the host with them; the site with its cooling (design section 4).
Boundary = Literal["gpu", "it", "site"]


# Below this measured share, energy and what follows from it is missing (design section 4, Energy).
LEAST_COVERAGE = 0.5


def tdp_energy_j(tdp_w: float | None, gpu_count: int, window_s: float, gpu_name: str) -> Figure:
    """Energy if every GPU drew its TDP for the whole window: a ceiling for planning, labelled `tdp_estimate`.

    Source: AIBC 2025 section 2.4 computes energy this way. Boundary: GPU only.
    """
    if tdp_w is None:
        return missing("J", "tdp_estimate", f"no TDP for {gpu_name}")
    return Figure(units.joules(tdp_w * gpu_count, window_s), "J", "tdp_estimate")


def site_energy_j(it_energy_j: Figure, pue: float) -> Figure:
    """E_site = E_it x PUE (design section 4)."""
    if it_energy_j.value is None:
        return it_energy_j
    return Figure(it_energy_j.value * pue, "J", it_energy_j.method, coverage=it_energy_j.coverage)


def joules_per_token(energy_j: Figure, tokens: Figure) -> Figure:
    """Energy of one token; missing when the energy or the tokens are."""
    if energy_j.value is None or tokens.value is None:
        return missing("J/token", energy_j.method, str(energy_j.reason or tokens.reason))
    if tokens.value == 0:
        return missing("J/token", energy_j.method, "no tokens")
    return Figure(energy_j.value / tokens.value, "J/token", energy_j.method, coverage=energy_j.coverage)


def tokens_per_joule(energy_j: Figure, tokens: Figure) -> Figure:
    """Tokens made with one joule; missing when the energy or the tokens are."""
    if energy_j.value is None or tokens.value is None:
        return missing("tokens/J", energy_j.method, str(energy_j.reason or tokens.reason))
    if energy_j.value == 0:
        return missing("tokens/J", energy_j.method, "no energy")
    return Figure(tokens.value / energy_j.value, "tokens/J", energy_j.method, coverage=energy_j.coverage)


def tokens_per_kwh(energy_j: Figure, tokens: Figure) -> Figure:
    """Tokens made with one kWh, the study's unit (table 3)."""
    if energy_j.value is None or tokens.value is None:
        return missing("tokens/kWh", energy_j.method, str(energy_j.reason or tokens.reason))
    if energy_j.value == 0:
        return missing("tokens/kWh", energy_j.method, "no energy")
    return Figure(tokens.value / units.kwh(energy_j.value), "tokens/kWh", energy_j.method, coverage=energy_j.coverage)
