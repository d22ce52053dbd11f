"""What one part of a bill adds up to: dollars, joules and grams; what is not known of one leaves the others known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app import units
from app.accounting.carbon import EmbodiedMethod
from app.accounting.energy import Boundary
from app.accounting.terms import HourlyPart, Terms

EmbodiedEnd = Literal["low", "central", "high"]
NO_SUPPLIER_FACTOR = "no supplier factor"
NO_EMBODIED = "no embodied carbon is known"
_ROUNDING = 1e-9


@dataclass(slots=True)
class Sums:
    """One part's amounts. no_*: why a sum is not known; the first reason counts.

    grams: of the grid's factors, bases: which kinds of them are in it. market_g: of the suppliers' factors. embodied_g,
    with its least and its most: of making the cards, embodied_whose: by whose figures.
    """

    usd: float = 0.0
    gpu_j: float = 0.0
    it_j: float = 0.0
    site_j: float = 0.0
    grams: float = 0.0
    market_g: float = 0.0
    embodied_low_g: float = 0.0
    embodied_g: float = 0.0
    embodied_high_g: float = 0.0
    bases: frozenset[str] = frozenset()
    embodied_whose: frozenset[EmbodiedMethod] = frozenset()
    no_usd: str | None = None
    no_grams: str | None = None
    no_market: str | None = None
    no_embodied: str | None = None

    def joules(self, boundary: Boundary) -> float:
        return self.gpu_j if boundary == "gpu" else self.it_j if boundary == "it" else self.site_j

    def embodied(self, end: EmbodiedEnd) -> float:
        return self.embodied_low_g if end == "low" else self.embodied_high_g if end == "high" else self.embodied_g

    def take(self, seconds: float, gpu_j: float, terms: Terms, hourly: HourlyPart | None = None) -> None:
        """Take over energy of GPUs that were there, with its carbon and its price.

        hourly: of it, what is in hours whose intensity is known.
        """
        it_j = gpu_j + terms.host_w * seconds
        site_j = it_j * terms.pue
        self.gpu_j += gpu_j
        self.it_j += it_j
        self.site_j += site_j
        if hourly is not None and hourly.j + hourly.s > 0:
            self.grams += units.kwh((hourly.weighed_j + terms.host_w * hourly.weighed_s) * terms.pue)
            self.bases |= hourly.bases
            told_j = (hourly.j + terms.host_w * hourly.s) * terms.pue
            if (untold_j := left_over(site_j, told_j)) != 0:
                self._emit(untold_j, terms)
        elif hourly is None or site_j:
            self._emit(site_j, terms)
        self._emit_by_market(site_j, terms)
        self.amortise(seconds, terms)
        self.pay(seconds, site_j, terms)

    def pay(self, seconds: float, site_j: float, terms: Terms) -> None:
        """Take over what hours cost, and for owned GPUs their electricity."""
        if terms.usd_per_gpu_hour is None:
            self.no_usd = self.no_usd or terms.reason or "no price"
            return
        self.usd += terms.usd_per_gpu_hour * units.hours(seconds)
        if not terms.is_owned:
            return
        if terms.usd_per_kwh is not None:
            self.usd += units.kwh(site_j) * terms.usd_per_kwh
        elif site_j:
            self.no_usd = self.no_usd or terms.no_tariff or "no tariff"

    def amortise(self, seconds: float, terms: Terms) -> None:
        """Take over so much of what making the cards emitted; owned ones carry it from in-service to retirement."""
        if not seconds or not terms.in_service:
            return
        embodied = terms.embodied
        hourly = None if embodied is None else embodied.g_per_gpu_hour
        if embodied is None or hourly is None:
            self.no_embodied = self.no_embodied or (embodied and embodied.reason) or NO_EMBODIED
            return
        hours = units.hours(seconds)
        self.embodied_low_g += hourly.low * hours
        self.embodied_g += hourly.central * hours
        self.embodied_high_g += hourly.high * hours
        if embodied.policy == "full" and embodied.whose not in self.embodied_whose:
            self.embodied_whose |= {embodied.whose}

    def _emit(self, site_j: float, terms: Terms) -> None:
        """By the yearly value of the zone."""
        grid = terms.grid
        if grid.g_per_kwh is None:
            self.no_grams = self.no_grams or grid.reason or f"no grid factor for {grid.zone}"
        elif site_j:
            self.grams += units.kwh(site_j) * grid.g_per_kwh
            if grid.basis not in self.bases:
                self.bases |= {grid.basis}

    def _emit_by_market(self, site_j: float, terms: Terms) -> None:
        if terms.market is not None:
            self.market_g += units.kwh(site_j) * terms.market.g_per_kwh
        elif site_j:
            self.no_market = self.no_market or NO_SUPPLIER_FACTOR


def left_over(whole: float, part: float) -> float:
    """What of a sum is not in its part; what arithmetic alone leaves over is nothing."""
    rest = whole - part
    return rest if abs(rest) > _ROUNDING * abs(whole) else 0.0
