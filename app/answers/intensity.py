"""Which grid intensity each hour of each fleet's zone had, by the providers that are configured (design section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from app.accounting.periods import Period
from app.accounting.terms import GridHours, HourlyPart
from app.answers.terms import DatedTerms
from app.config import Config
from app.errors import UnknownName
from app.store.gpu_rollup import HOUR_US
from app.store.grid import grid_stamp, hourly_factors
from app.store.hourly_grid import HourlyGrid
from app.store.moment import Moment
from app.store.names import Reader

Place = tuple[int, str | None]


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
        (slot, fleet): _name(config, dated.zone(state, fleet))
        for slot, (_, state) in enumerate(places)
        for fleet in {None, *fleets}
    }
    # Whole hours: the mean of one does not hang on what part of it is asked for.
    start_us, end_us = _us(periods[0].start) // HOUR_US * HOUR_US, -(-_us(periods[-1].end) // HOUR_US) * HOUR_US
    asked = (tuple(sorted(set(zones.values()))), start_us, end_us, known_at)
    factors = _once(reader, (*asked, stamp), lambda: one_basis(_known(reader, config, *asked)))
    if factors.is_empty():
        return None
    return Intensity(HourlyGrid.of(zones, factors), zones, _sources(factors))


def _known(
    reader: Reader, config: Config, zones: Sequence[str], start_us: int, end_us: int, known_at: datetime | None
) -> pl.DataFrame:
    return hourly_factors(reader, zones, start_us, end_us, known_at, providers=config.grid_providers())


def _once(reader: Reader, what: tuple[Any, ...], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """A moment knows it from an earlier one while no point was added."""
    return reader.once(("intensity", *what), make) if isinstance(reader, Moment) else make()


def _name(config: Config, zone: str) -> str:
    """As the tables call it: that of a cloud region is its grid's."""
    try:
        return config.grid_factor(zone).zone
    except UnknownName:
        return zone


def one_basis(known: pl.DataFrame) -> pl.DataFrame:
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


_WORDS = {"provider": "(basis not said)"}


def _us(moment: datetime) -> int:
    return int(moment.timestamp() * 1e6)
