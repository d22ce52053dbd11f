"""The bill of a group of GPUs: dollars, joules and grams, each as used + idle + unallocated (design section 4).

Rows of use are added under the terms of their time, so a change of price, tariff or PUE splits the sums where it
happens. Nothing is divided here; the whole is always the sum of its parts (design law 9).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from app import units
from app.accounting.carbon import EmbodiedMethod
from app.accounting.energy import LEAST_COVERAGE, Boundary
from app.accounting.figure import Figure, Method, missing, weakest
from app.accounting.sums import EmbodiedEnd, Sums, left_over
from app.accounting.terms import GpuUse, GridHours, Terms

Part = Literal["used", "idle", "unallocated"]
PARTS: tuple[Part, ...] = ("used", "idle", "unallocated")
View = Literal["bill", "used", "idle", "unallocated"]
VIEWS: tuple[View, ...] = ("bill", *PARTS)
# Seconds that the arithmetic of sums leaves over are not a gap.
_SLACK_S = 1e-3
_NO_ENERGY = "no energy was measured"


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
    # Seconds by how the embodied carbon of their cards is known.
    embodied_s: dict[Method, float] = field(default_factory=dict)
    price_sources: set[str] = field(default_factory=set)
    grids: set[str] = field(default_factory=set)
    markets: set[str] = field(default_factory=set)
    embodieds: set[str] = field(default_factory=set)

    def add(self, use: GpuUse, terms: Terms, working_share: float | None, no_share: str | None = None) -> None:
        """Take over what GPUs did. working_share: see working_usd; None for the reason no_share."""
        total_j = use.known_j + use.interpolated_j + use.estimated_j
        idle_j = use.idle_j if use.used_s else total_j
        used_usd, hours = self.used.usd, use.grid_hours
        used, rest = (hours.used, hours.rest) if hours else (None, None)
        if use.used_s:
            self.used.take(use.used_s, total_j - idle_j, terms, used)
        unused = self.idle if use.allocated else self.unallocated
        unused.take(use.provisioned_s - use.used_s, idle_j, terms, rest)
        if use.used_s and working_share is None:
            self.no_working = self.no_working or no_share
        else:
            self.working_usd += (self.used.usd - used_usd) * (working_share or 0.0)
        self._note(use, terms, total_j)

    def add_off(self, seconds: float, terms: Terms) -> None:
        """Take over hours of owned GPUs that were paid and not there: no engine was on them."""
        self.off_s += seconds
        self.unallocated.pay(seconds, 0.0, terms)
        self.unallocated.amortise(seconds, terms)
        self._note_price(seconds, terms)
        self._note_embodied(seconds, terms)

    def add_rounding(self, seconds: float, terms: Terms) -> None:
        """Take over what a billing increment adds to the end of a stretch: it is paid and idle."""
        self.added_s += seconds
        self.idle.pay(seconds, 0.0, terms)
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
        """Operational carbon of the part's site energy, location-based; factors of two bases are never added."""
        parts = self._parts(view)
        reason = next((part.no_grams for part in parts if part.no_grams), None)
        # Who does not say what is in a factor is told as such, and not held against those who do.
        bases = sorted(self.bases(view) - {"provider"})
        if len(bases) > 1:
            reason = reason or f"grams of {' and '.join(bases)} factors are not added: look at fleets of one basis"
        method = weakest((self.energy_method, *self.grid_j))
        return self._physical("gCO2e", sum(part.grams for part in parts), method, reason)

    def market_grams(self, view: View = "bill") -> Figure:
        """Operational carbon of the same energy by the suppliers' factors; missing where one of them is."""
        parts = self._parts(view)
        reason = next((part.no_market for part in parts if part.no_market), None)
        method = weakest((self.energy_method, "user"))
        return self._physical("gCO2e", sum(part.market_g for part in parts), method, reason)

    def embodied(self, view: View = "bill", end: EmbodiedEnd = "central") -> Figure:
        """Carbon of making the cards, as much as falls on the part's hours.

        end: by the least, the chosen or the most of what is known. Two tables' figures are not added.
        """
        parts = self._parts(view)
        reason = next((part.no_embodied for part in parts if part.no_embodied), None)
        tables = sorted(frozenset[EmbodiedMethod]().union(*(part.embodied_whose for part in parts)) - {"user"})
        if len(tables) > 1:
            reason = reason or f"embodied figures of {' and '.join(tables)} are not added: choose one method"
        method = weakest((*self.embodied_s, self.split_method))
        if reason is not None:
            return missing("gCO2e", method, reason)
        return Figure(sum(part.embodied(end) for part in parts), "gCO2e", method)

    def bases(self, view: View = "bill") -> frozenset[str]:
        """Lifecycle, direct or both: of the grid factors of its grams."""
        return frozenset().union(*(part.bases for part in self._parts(view)))

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
        self._note_grid(use.grid_hours, terms, total_j)
        if terms.market is not None:
            self.markets.add(terms.market.label)
        self._note_embodied(use.provisioned_s, terms)

    def _note_grid(self, hours: GridHours | None, terms: Terms, total_j: float) -> None:
        """How the intensity of these joules is known, and by whom."""
        told: dict[Method, float] = {}
        if hours is not None and hours.used.j + hours.rest.j > 0:
            all_j = hours.used.j + hours.rest.j
            told = {"estimated": hours.estimated_j, "forecast": hours.forecast_j}
            told["measured"] = max(all_j - hours.estimated_j - hours.forecast_j, 0.0)
            self.grids |= {f"{source}, PUE {terms.pue:g}" for source in hours.sources}
        untold_j = left_over(total_j, sum(told.values()))
        if not told or untold_j > 0:
            told[terms.grid.method] = told.get(terms.grid.method, 0.0) + untold_j
            self.grids.add(f"{terms.grid.label}, PUE {terms.pue:g}")
        for method, joules in told.items():
            if joules or method == terms.grid.method:
                self.grid_j[method] = self.grid_j.get(method, 0.0) + joules * terms.pue

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

    def _note_embodied(self, seconds: float, terms: Terms) -> None:
        embodied = terms.embodied
        if embodied is None or not seconds or not terms.in_service:
            return
        self.embodied_s[embodied.method] = self.embodied_s.get(embodied.method, 0.0) + seconds
        self.embodieds.add(embodied.label)
