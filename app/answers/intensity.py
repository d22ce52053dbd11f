"""Which grid intensity each hour of each fleet's zone had, by the providers that are configured (design section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from app import units
from app.accounting.periods import Period
from app.accounting.terms import GridHours, HourlyPart
from app.answers.terms import DatedTerms
from app.config import Config
from app.store.grid import grid_stamp, hourly_factors, whole_hours
from app.store.hourly_grid import HourlyGrid
from app.store.reader import Reader

Place = tuple[int, str | None]
_WORDS = {"provider": "(basis not said)"}


@dataclass(frozen=True)
class Intensity:
    """grid: what the store weighs by. zones: of each slot and fleet; sources: of each zone its basis and its teller."""

    grid: HourlyGrid
    zones: Mapping[Place, str]
    sources: Mapping[str, tuple[str, str]]

    def hours_of(self, row: Mapping[str, Any]) -> GridHours | None:
        """Of a row of use that was weighed; None where no hour of its zone is known."""
        found = self.sources.get(self.zones[row["position"], row["fleet"]])
        if found is None:
            return None
        basis, source = found
        used, rest = (
            HourlyPart(row[f"{part}_live_j"], row[f"{part}_live_s"], row[f"{part}_weighed_j"], row[f"{part}_weighed_s"])
            for part in ("used", "rest")
        )
        return GridHours(used, rest, row["estimated_grid_j"], row["forecast_grid_j"], basis, source)


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
        lambda: _one_basis(hourly_factors(reader, *asked, providers=providers)),
    )
    if factors.is_empty():
        return None
    return Intensity(HourlyGrid.of(zones, factors), zones, _sources(factors))


def _one_basis(known: pl.DataFrame) -> pl.DataFrame:
    """Of each zone the hours of the basis that most of its hours have: two are never added."""
    counted = known.group_by("zone", "basis").len().sort("zone", "len", "basis", descending=[False, True, False])
    return known.join(counted.unique("zone", keep="first", maintain_order=True), on=["zone", "basis"], how="semi")


def _sources(factors: pl.DataFrame) -> dict[str, tuple[str, str]]:
    """E.g. DE -> (lifecycle, "DE by the hour, 312 g/kWh lifecycle on average, electricity_maps, known 2026-12-02
    04:15Z")."""
    told = factors.group_by("zone", "basis").agg(
        pl.col("provider").unique().sort(), pl.col("g_per_kwh").mean(), pl.col("known_at").max()
    )
    return {
        zone: (
            basis,
            f"{zone} by the hour, {mean:.0f} g/kWh {_WORDS.get(basis, basis)} on average, {' + '.join(providers)}, "
            f"known {known_at.astimezone(UTC):%Y-%m-%d %H:%M}Z",
        )
        for zone, basis, providers, mean, known_at in told.iter_rows()
    }
