"""Joules: energy of a window, and how many tokens it made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app import units
from app.accounting.figure import Figure, Method, missing

# What an energy takes in: the GPUs; the host with them; the site with its cooling (design section 4).
Boundary = Literal["gpu", "it", "site"]


# Below this measured share, energy and what follows from it is missing (design section 4, Energy).
LEAST_COVERAGE = 0.5


@dataclass(frozen=True)
class MeteredEnergy:
    """What was measured of one GPU (or a share of it) over a period; sums of its minutes.

    measured_j: by counter or power integral, in covered_s seconds; interpolated_j: counter differences across gaps, in
    bridged_s seconds; provisioned_s: seconds the GPU was there.
    """

    measured_j: float
    interpolated_j: float
    covered_s: float
    bridged_s: float
    provisioned_s: float

    def energy_j(self, gpu: str) -> Figure:
        """Energy of all provisioned seconds: those without one count at this GPU's mean power of the period.

        Missing when nothing was measured at all. Source: design section 4, Energy.
        """
        known_s = self.covered_s + self.bridged_s
        if self.provisioned_s <= 0:
            return Figure(0.0, "J", "measured")
        if known_s <= 0:
            return missing("J", "measured", f"no energy was measured on {gpu}")
        known_j = self.measured_j + self.interpolated_j
        unknown_s = max(self.provisioned_s - known_s, 0.0)
        # A share of a second is what the arithmetic of minutes leaves over, not a gap.
        method: Method = "estimated" if unknown_s > 1e-3 else "interpolated" if self.bridged_s > 1e-3 else "measured"
        return Figure(known_j + known_j / known_s * unknown_s, "J", method)


def coverage(parts: Sequence[MeteredEnergy]) -> float | None:
    """Seconds with a measured energy over seconds the GPUs were there; None when there were none."""
    provisioned_s = sum(part.provisioned_s for part in parts)
    return min(sum(part.covered_s for part in parts) / provisioned_s, 1.0) if provisioned_s > 0 else None


def covered_enough(energy_j: Figure, share: float | None) -> Figure:
    """`energy_j` with its coverage; missing below LEAST_COVERAGE."""
    if energy_j.value is not None and share is not None and share < LEAST_COVERAGE:
        return missing("J", energy_j.method, f"energy was measured {share:.0%} of the time, below {LEAST_COVERAGE:.0%}")
    return replace(energy_j, coverage=share)


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
