"""Grams of CO2e: operational carbon of an energy, with the factor that made it."""

from __future__ import annotations

from dataclasses import dataclass

from app import units
from app.accounting.figure import Figure, Method, missing


@dataclass(frozen=True)
class GridFactor:
    """Carbon of one kWh in a zone. basis: lifecycle or direct; factors of different bases are never compared.

    g_per_kwh None means unknown, for `reason`.
    """

    zone: str
    g_per_kwh: float | None
    basis: str
    year: int | None
    method: Method
    source: str
    reason: str | None = None

    @property
    def label(self) -> str:
        """E.g. "EU27 2024 average, 213 g/kWh lifecycle (default)"."""
        if self.g_per_kwh is None:
            return f"{self.zone}: {self.reason}"
        year = f" {self.year} average" if self.year else ""
        return f"{self.zone}{year}, {self.g_per_kwh:g} g/kWh {self.basis} ({self.method})"


def operational_g(site_energy_j: Figure, factor: GridFactor) -> Figure:
    """Operational carbon = E_site x I, location-based (design section 4, Carbon; ISO/IEC 21031 for the product)."""
    if site_energy_j.value is None:
        return missing("g", site_energy_j.method, str(site_energy_j.reason))
    if factor.g_per_kwh is None:
        return missing("g", factor.method, factor.reason or f"no grid factor for {factor.zone}")
    # Measured energy times a yearly average is not a measurement of carbon.
    method: Method = factor.method if site_energy_j.method == "measured" else site_energy_j.method
    return Figure(units.kwh(site_energy_j.value) * factor.g_per_kwh, "g", method, coverage=site_energy_j.coverage)
