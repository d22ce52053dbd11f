"""Which grid intensity each hour of each fleet's zone had, by the providers that are configured (design section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from app import units
from app.accounting.periods import Period
from app.accounting.terms import GridHours, HourlyPart
from app.answers.terms import DatedTerms
from app.config import Config
from app.formatting import utc_clock
from app.store.grid import grid_stamp, hourly_factors, whole_hours
from app.store.hourly_grid import PARTS, HourlyGrid
from app.store.reader import Reader
from collectors.grid.registry import provider_said

Place = tuple[int, str | None]
# Less is what the arithmetic of sums leaves over.
_LEAST_S = 1e-6
_WORDS = {"provider": "(basis not said)"}


@dataclass(frozen=True)
class Intensity:
    """grid: what the store weighs by. zones: of each slot and fleet; sources: of each zone and basis its tellers."""

    grid: HourlyGrid
    zones: Mapping[Place, str]
    sources: Mapping[str, Mapping[str, str]]

    def hours_of(self, row: Mapping[str, Any]) -> GridHours | None:
        """Of a row of use that was weighed; None where no hour of its zone is known."""
        told = self.sources.get(self.zones[row["position"], row["fleet"]])
        if told is None:
            return None
        used, rest = (
            HourlyPart(
                row[f"{part}_live_j"], row[f"{part}_live_s"], row[f"{part}_weighed_j"], row[f"{part}_weighed_s"],
                frozenset(basis for basis in told if row[f"{part}_{basis}_s"] > _LEAST_S),
            )
            for part in PARTS
        )  # fmt: skip
        sources = tuple(source for basis, source in told.items() if basis in used.bases | rest.bases)
        return GridHours(used, rest, row["estimated_grid_j"], row["forecast_grid_j"], sources)


def intensity_of(
    reader: Reader,
    config: Config,
    dated: DatedTerms,
    places: Sequence[tuple[int, int]],
    fleets: Sequence[str | None],
    periods: Sequence[Period],
    known_at: datetime | None,
) -> Intensity | None:
    """None where no hour of any zone is known. places: period and state of each slot."""
    stamp = grid_stamp(reader)
    if not stamp[0]:
        return None
    zones = {
        (slot, fleet): dated.grid(state, fleet).zone
        for slot, (_, state) in enumerate(places)
        for fleet in {None, *fleets}
    }
    hours = whole_hours(units.us_of_moment(periods[0].start), units.us_of_moment(periods[-1].end))
    asked, providers = (tuple(sorted(set(zones.values()))), *hours, known_at), config.grid_providers()
    factors = reader.once(
        ("intensity", asked, repr(providers), stamp),
        lambda: hourly_factors(reader, *asked, providers=providers),
    )
    if factors.is_empty():
        return None
    return Intensity(HourlyGrid.of(zones, factors), zones, _sources(factors))


def _sources(factors: pl.DataFrame) -> dict[str, dict[str, str]]:
    """E.g. DE -> lifecycle -> "DE by the hour, 312 g/kWh lifecycle on average, Electricity Maps, known
    2026-12-02 04:15Z"."""
    told = factors.group_by("zone", "basis").agg(
        pl.col("provider").unique().sort(), pl.col("g_per_kwh").mean(), pl.col("known_at").max()
    )
    found: dict[str, dict[str, str]] = {}
    for zone, basis, providers, mean, known_at in told.sort("zone", "basis").iter_rows():
        found.setdefault(zone, {})[basis] = (
            f"{zone} by the hour, {mean:.0f} g/kWh {_WORDS.get(basis, basis)} on average, "
            f"{' + '.join(map(provider_said, providers))}, known {utc_clock(known_at)}"
        )
    return found
