"""Use of GPUs weighed by the grid intensity of the hour in which it was: sums from which grams are made later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

import polars as pl

from app.store.exact import whole_steps
from app.store.gpu_rollup import HOUR_US
from collectors.grid.point import Basis

PARTS = ("used", "rest")
BASES: tuple[Basis, ...] = get_args(Basis)
# Of the hours whose intensity is known: joules and seconds in which an engine worked (used) or none did (rest), and the
# same times g/kWh. estimated_grid_j, forecast_grid_j: of these joules, those whose intensity is no measured one.
# used_direct_s, ...: of these seconds, those whose intensity is of that basis.
WEIGHED = (
    "used_live_j", "rest_live_j", "used_live_s", "rest_live_s", "used_weighed_j", "rest_weighed_j", "used_weighed_s",
    "rest_weighed_s", "estimated_grid_j", "forecast_grid_j",
    *(f"{part}_{basis}_s" for part in PARTS for basis in BASES),
)  # fmt: skip


@dataclass(frozen=True)
class HourlyGrid:
    """zones: a row per position and fleet: its zone. factors: a row per zone and hour_us: g_per_kwh, method, basis."""

    zones: pl.DataFrame
    factors: pl.DataFrame

    @classmethod
    def of(cls, zones: Mapping[tuple[int, str | None], str], factors: pl.DataFrame) -> HourlyGrid:
        rows = [(position, fleet, zone) for (position, fleet), zone in zones.items()]
        schema = {"position": pl.Int64, "fleet": pl.String, "zone": pl.String}
        return cls(pl.DataFrame(rows, schema=schema, orient="row"), factors)

    def edges_us(self) -> Iterable[int]:
        """Where an hour whose intensity is known begins or ends."""
        starts = self.factors["hour_us"].unique().to_list()
        return {edge for start in starts for edge in (start, start + HOUR_US)}

    def weigh(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with a position, a fleet and a piece_us, none of which reaches over an edge, with WEIGHED."""
        hour_us = pl.col("piece_us") // HOUR_US * HOUR_US
        dated = rows.with_columns(hour_us.alias("hour_us"))
        zoned = dated.join(self.zones, on=["position", "fleet"], how="left", nulls_equal=True)
        found = zoned.join(
            self.factors.select("zone", "hour_us", "g_per_kwh", "method", "basis"), on=["zone", "hour_us"], how="left"
        )
        all_j = pl.sum_horizontal("known_j", "interpolated_j", "estimated_j")
        rest_j = pl.when(pl.col("used_s") > 0).then("idle_j").otherwise(all_j)
        is_live, factor = pl.col("g_per_kwh").is_not_null(), pl.col("g_per_kwh").fill_null(0.0)
        sums = {
            "used_live_j": all_j - rest_j,
            "rest_live_j": rest_j,
            "used_live_s": pl.col("used_s"),
            "rest_live_s": pl.col("provisioned_s") - pl.col("used_s"),
        }
        live = {name: pl.when(is_live).then(value).otherwise(0.0) for name, value in sums.items()}
        weighed = {name.replace("live", "weighed"): whole_steps(value * factor, name) for name, value in sums.items()}
        doubted = {
            f"{method}_grid_j": pl.when(pl.col("method") == method).then(all_j).otherwise(0.0)
            for method in ("estimated", "forecast")
        }
        based = {
            f"{part}_{basis}_s": pl.when(pl.col("basis") == basis).then(sums[f"{part}_live_s"]).otherwise(0.0)
            for part in PARTS
            for basis in BASES
        }
        told = found.with_columns(**live, **weighed, **doubted, **based)
        return told.drop("hour_us", "zone", "g_per_kwh", "method", "basis")
