"""Grams of CO2e: of an energy, by a grid's or a supplier's factor; and of making a GPU, spread over its life."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

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


@dataclass(frozen=True)
class MarketFactor:
    """Carbon of one kWh as its supplier discloses it: market-based, beside the grid's and never added to it."""

    g_per_kwh: float
    source: str

    @cached_property
    def label(self) -> str:
        """E.g. "20 g/kWh (supplier's disclosure 2025)"."""
        return f"{self.g_per_kwh:g} g/kWh ({self.source})"


# pcf: the vendor's product carbon footprint; boavizta: a bottom-up estimate, several times as much for the same board.
EmbodiedMethod = Literal["pcf", "boavizta", "user"]
# Of the two tables, the one with figures for data centre and consumer cards alike: one method for a whole comparison.
COMPARABLE_METHOD: Final = "boavizta"
# sunk: the card was made anyway and counts 0; an assumption, and shown as one.
EmbodiedPolicy = Literal["full", "sunk"]
SUNK: EmbodiedPolicy = "sunk"
EMBODIED_LIFE_YEARS = 4.0


@dataclass(frozen=True)
class Spread:
    """The least and the most of all that is known, and what was chosen."""

    low: float
    central: float
    high: float


@dataclass(frozen=True)
class EmbodiedCarbon:
    """Of making one GPU, spread evenly over the hours of life_years. kg None: unknown, for `reason`."""

    kg: Spread | None
    whose: EmbodiedMethod
    method: Method
    life_years: float = EMBODIED_LIFE_YEARS
    policy: EmbodiedPolicy = "full"
    reason: str | None = None

    @cached_property
    def g_per_gpu_hour(self) -> Spread | None:
        """Grams of one hour = kg x 1000 / (life_years x 8760) (design section 4, Carbon; SCI's TE x TiR / EL)."""
        if self.policy == SUNK:
            return Spread(0.0, 0.0, 0.0)
        if self.kg is None:
            return None
        hours = self.life_years * units.HOURS_PER_YEAR
        return Spread(*(units.grams(kg) / hours for kg in (self.kg.low, self.kg.central, self.kg.high)))

    @cached_property
    def label(self) -> str:
        """E.g. "boavizta 575.1 kg a GPU (164 to 575.1) over 4 years (default)"."""
        if self.policy == SUNK:
            return f"{SUNK}: made anyway, counts 0"
        if self.kg is None:
            return str(self.reason)
        spread = "" if self.kg.low == self.kg.high else f" ({self.kg.low:g} to {self.kg.high:g})"
        return f"{self.whose} {self.kg.central:g} kg a GPU{spread} over {self.life_years:g} years ({self.method})"


def operational_g(site_energy_j: Figure, factor: GridFactor) -> Figure:
    """Operational carbon = E_site x I, location-based (design section 4, Carbon; ISO/IEC 21031 for the product)."""
    if site_energy_j.value is None:
        return missing("g", site_energy_j.method, str(site_energy_j.reason))
    if factor.g_per_kwh is None:
        return missing("g", factor.method, factor.reason or f"no grid factor for {factor.zone}")
    # Measured energy times a yearly average is not a measurement of carbon.
    method: Method = factor.method if site_energy_j.method == "measured" else site_energy_j.method
    return Figure(units.kwh(site_energy_j.value) * factor.g_per_kwh, "g", method, coverage=site_energy_j.coverage)
