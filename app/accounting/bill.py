"""The bill of a group of GPUs: dollars, joules and grams, each as used + idle + unallocated (design section 4).

Rows of use are added under the terms of their time, so a change of price, tariff or PUE splits the sums where it
happens. Nothing is divided here; the whole is always the sum of its parts (design law 9).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from app import units
from app.accounting.energy import LEAST_COVERAGE, Boundary
from app.accounting.figure import Figure, Method, missing, weakest
from app.accounting.terms import GpuUse, Terms

Part = Literal["used", "idle", "unallocated"]
PARTS: tuple[Part, ...] = ("used", "idle", "unallocated")
View = Literal["bill", "used", "idle", "unallocated"]
VIEWS: tuple[View, ...] = ("bill", *PARTS)
# Seconds that the arithmetic of sums leaves over are not a gap.
_SLACK_S = 1e-3
_NO_ENERGY = "no energy was measured"


@dataclass(slots=True)
class Sums:
    """One part's amounts. no_usd, no_grams: why a sum is not known; the first reason counts."""

    usd: float = 0.0
    gpu_j: float = 0.0
    it_j: float = 0.0
    site_j: float = 0.0
    grams: float = 0.0
    no_usd: str | None = None
    no_grams: str | None = None

    def joules(self, boundary: Boundary) -> float:
        return self.gpu_j if boundary == "gpu" else self.it_j if boundary == "it" else self.site_j


@dataclass(slots=True)
class Bill:
    """Sums of a group. boundary: what its joules take in; grams are always of the site.

    working_usd: of what is used, what the replicas would have needed at their best sustained rate; the rest of it is
    slack. off_s, added_s: seconds that were paid while GPUs were not there: owned ones, and by billing increments.
    """

    boundary: Boundary
    used: Sums = field(default_factory=Sums)
    idle: Sums = field(default_factory=Sums)
    unallocated: Sums = field(default_factory=Sums)
    working_usd: float = 0.0
    no_working: str | None = None
    provisioned_s: float = 0.0
    used_s: float = 0.0
    off_s: float = 0.0
    added_s: float = 0.0
    covered_s: float = 0.0
    bridged_s: float = 0.0
    throttled_s: float = 0.0
    unknown_s: float = 0.0
    known_j: float = 0.0
    estimated_j: float = 0.0
    simulated_s: float = 0.0
    shared: bool = False
    has_host: bool = False
    has_tariff: bool = False
    # Seconds and joules by how their energy is known: all of a simulated GPU's are simulated.
    energy_s: dict[str, float] = field(default_factory=dict)
    energy_j: dict[str, float] = field(default_factory=dict)
    # Seconds by how their price is known, joules by how their grid factor is.
    priced_s: dict[Method | None, float] = field(default_factory=dict)
    grid_j: dict[Method, float] = field(default_factory=dict)
    price_sources: set[str] = field(default_factory=set)
    grids: set[str] = field(default_factory=set)

    def add(self, use: GpuUse, terms: Terms, working_share: float | None, no_share: str | None = None) -> None:
        """Take over what GPUs did. working_share: see working_usd; None for the reason no_share."""
        total_j = use.known_j + use.interpolated_j + use.estimated_j
        idle_j = use.idle_j if use.used_s else total_j
        used_usd = self.used.usd
        if use.used_s:
            self._put(self.used, use.used_s, total_j - idle_j, terms)
        self._put(self.idle if use.allocated else self.unallocated, use.provisioned_s - use.used_s, idle_j, terms)
        if use.used_s and working_share is None:
            self.no_working = self.no_working or no_share
        else:
            self.working_usd += (self.used.usd - used_usd) * (working_share or 0.0)
        self._note(use, terms, total_j)

    def add_off(self, seconds: float, terms: Terms) -> None:
        """Take over hours of owned GPUs that were paid and not there: no engine was on them."""
        self.off_s += seconds
        self._pay(self.unallocated, seconds, 0.0, terms)
        self._note_price(seconds, terms)

    def add_rounding(self, seconds: float, terms: Terms) -> None:
        """Take over what a billing increment adds to the end of a stretch: it is paid and idle."""
        self.added_s += seconds
        self._pay(self.idle, seconds, 0.0, terms)
        self._note_price(seconds, terms)

    def usd(self, view: View = "bill") -> Figure:
        """What is paid for the part."""
        reason = next((part.no_usd for part in self._parts(view) if part.no_usd), None)
        method = self.cost_method
        if reason is not None:
            return missing("USD", method, reason)
        return Figure(sum(part.usd for part in self._parts(view)), "USD", method, coverage=self._cost_coverage)

    def working(self) -> Figure:
        used = self.used.no_usd or self.no_working
        method = weakest((self.cost_method, "estimated"))
        return missing("USD", method, used) if used else Figure(self.working_usd, "USD", method)

    def slack(self) -> Figure:
        working = self.working()
        if working.value is None:
            return working
        return Figure(self.used.usd - working.value, "USD", working.method)

    def joules(self, view: View = "bill", boundary: Boundary | None = None) -> Figure:
        """Energy of the part, within the boundary; missing where less than half of the time was measured."""
        within = boundary or self.boundary
        value = sum(part.joules(within) for part in self._parts(view))
        return self._physical("J", value, self._energy_method(within), None)

    def grams(self, view: View = "bill") -> Figure:
        """Operational carbon of the part's site energy, location-based."""
        reason = next((part.no_grams for part in self._parts(view) if part.no_grams), None)
        method = weakest((self.energy_method, *self.grid_j))
        return self._physical("gCO2e", sum(part.grams for part in self._parts(view)), method, reason)

    @property
    def coverage(self) -> float | None:
        """Seconds with a measured energy over seconds for which the GPUs were there; None when there were none."""
        return min(self.covered_s / self.provisioned_s, 1.0) if self.provisioned_s > 0 else None

    @property
    def split_method(self) -> Method:
        """How the parts of this group are told from others': engines of one GPU share it by a rule."""
        return weakest(("simulated" if self.simulated_s else "measured", "estimated" if self.shared else "measured"))

    @property
    def energy_method(self) -> Method:
        return self._energy_method(self.boundary)

    def _energy_method(self, boundary: Boundary) -> Method:
        filled: Method = "interpolated" if self.bridged_s > _SLACK_S else "measured"
        if self.estimated_j > 1e-9 * self.known_j:
            filled = "estimated"
        host: Method = "user" if self.has_host and boundary != "gpu" else "measured"
        return weakest((filled, host, self.split_method))

    @property
    def cost_method(self) -> Method:
        prices = [method for method in self.priced_s if method is not None]
        return weakest((*prices, self.energy_method if self.has_tariff else self.split_method))

    @property
    def _cost_coverage(self) -> float | None:
        return self.coverage if self.has_tariff else None

    def _parts(self, view: View) -> tuple[Sums, ...]:
        if view == "bill":
            return self.used, self.idle, self.unallocated
        return (self.used if view == "used" else self.idle if view == "idle" else self.unallocated,)

    def _physical(self, unit: str, value: float, method: Method, reason: str | None) -> Figure:
        share = self.coverage
        if self.unknown_s > _SLACK_S:
            hours = f"{units.hours(self.unknown_s):.3g} of {units.hours(self.provisioned_s):.3g} GPU-hours"
            reason = f"{_NO_ENERGY} for {hours}"
        if share is not None and share < LEAST_COVERAGE:
            reason = f"energy was measured {share:.0%} of the time, below {LEAST_COVERAGE:.0%}"
        return missing(unit, method, reason) if reason else Figure(value, unit, method, coverage=share)

    def _put(self, part: Sums, seconds: float, gpu_j: float, terms: Terms) -> None:
        it_j = gpu_j + terms.host_w * seconds
        site_j = it_j * terms.pue
        part.gpu_j += gpu_j
        part.it_j += it_j
        part.site_j += site_j
        if terms.grid.g_per_kwh is None:
            part.no_grams = part.no_grams or terms.grid.reason or f"no grid factor for {terms.grid.zone}"
        else:
            part.grams += units.kwh(site_j) * terms.grid.g_per_kwh
        self._pay(part, seconds, site_j, terms)

    def _pay(self, part: Sums, seconds: float, site_j: float, terms: Terms) -> None:
        if terms.usd_per_gpu_hour is None:
            part.no_usd = part.no_usd or terms.reason or "no price"
            return
        part.usd += terms.usd_per_gpu_hour * units.hours(seconds)
        if not terms.is_owned:
            return
        if terms.usd_per_kwh is not None:
            part.usd += units.kwh(site_j) * terms.usd_per_kwh
        elif site_j:
            part.no_usd = part.no_usd or terms.no_tariff or "no tariff"

    def _note(self, use: GpuUse, terms: Terms, total_j: float) -> None:
        self.provisioned_s += use.provisioned_s
        self.used_s += use.used_s
        self.covered_s += use.covered_s
        self.bridged_s += use.bridged_s
        self.throttled_s += use.throttled_s
        self.known_j += use.known_j
        self.estimated_j += use.estimated_j
        self.simulated_s += use.provisioned_s if use.simulated else 0.0
        self.shared = self.shared or use.shared
        self.has_host = self.has_host or terms.host_w > 0
        self.has_tariff = self.has_tariff or terms.usd_per_kwh is not None
        self._note_known(use, total_j)
        self._note_unknown(use, terms)
        self._note_price(use.provisioned_s, terms)
        grid = terms.grid
        self.grid_j[grid.method] = self.grid_j.get(grid.method, 0.0) + total_j * terms.pue
        self.grids.add(f"{grid.label}, PUE {terms.pue:g}")

    def _note_known(self, use: GpuUse, total_j: float) -> None:
        filled_s = use.provisioned_s - use.covered_s - use.bridged_s - use.unknown_s
        seconds = {
            "measured": use.covered_s, "interpolated": use.bridged_s, "estimated": max(filled_s, 0.0),
            "missing": use.unknown_s,
        }  # fmt: skip
        joules = {"measured": use.known_j, "interpolated": use.interpolated_j, "estimated": use.estimated_j}
        if use.simulated:
            seconds, joules = {"simulated": use.provisioned_s}, {"simulated": total_j}
        for into, told in ((self.energy_s, seconds), (self.energy_j, joules)):
            for name, value in told.items():
                into[name] = into.get(name, 0.0) + value

    def _note_unknown(self, use: GpuUse, terms: Terms) -> None:
        self.unknown_s += use.unknown_s
        if terms.is_owned and use.unknown_s > _SLACK_S:
            for part in (self.used, self.idle) if use.allocated else (self.unallocated,):
                part.no_usd = part.no_usd or f"electricity not known: {_NO_ENERGY}"

    def _note_price(self, seconds: float, terms: Terms) -> None:
        method = None if terms.usd_per_gpu_hour is None else terms.method
        self.priced_s[method] = self.priced_s.get(method, 0.0) + seconds
        self.price_sources.add(terms.source)
