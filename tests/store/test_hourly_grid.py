"""Use weighed by the intensity of its hour."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from app.store.accounts import use_rows
from app.store.database import Store
from app.store.hourly_grid import WEIGHED, HourlyGrid
from app.store.moment import moment
from tests.batches import HOUR, MINUTE, T0
from tests.store.test_accounts import KNOWN, hours, join_fleet
from tests.store.test_accounts import two_fleets as two_fleets

FACTORS = pl.DataFrame(
    [
        ("DE", T0, 100.0, "measured", "lifecycle"),
        ("DE", T0 + HOUR, 300.0, "forecast", "direct"),
        ("FR", T0, 20.0, "estimated", "provider"),
    ],
    schema={"zone": pl.String, "hour_us": pl.Int64, "g_per_kwh": pl.Float64, "method": pl.String, "basis": pl.String},
    orient="row",
)
GRID = HourlyGrid.of({(0, "big"): "DE", (0, "small"): "FR", (0, "new"): "FR"}, FACTORS)


def weighed(store: Store, **only: Any) -> dict[tuple[Any, ...], dict[str, float]]:
    rows = use_rows(store, [hours(0, 2)], "none", KNOWN, grid=GRID, **only)
    return {(row["fleet"], row["allocated"]): {name: row[name] for name in WEIGHED} for row in rows}


def test_joules_and_seconds_count_by_the_intensity_of_their_hour(two_fleets: Store) -> None:
    """big used 2.16 MJ in 7200 s of the first hour and drew as much in the second without an engine; small's engine
    0.72 MJ an hour, of which only the first has an intensity."""
    found = weighed(two_fleets)
    nothing = dict.fromkeys(WEIGHED, 0.0)
    assert found["big", True] == pytest.approx(
        nothing | {"used_live_j": 2.16e6, "used_live_s": 7200, "used_weighed_j": 2.16e8, "used_weighed_s": 7.2e5,
                   "used_lifecycle_s": 7200}
    )  # fmt: skip
    assert found["big", False] == pytest.approx(
        nothing | {"rest_live_j": 2.16e6, "rest_live_s": 7200, "rest_weighed_j": 6.48e8, "rest_weighed_s": 2.16e6,
                   "forecast_grid_j": 2.16e6, "rest_direct_s": 7200}
    )  # fmt: skip
    assert found["small", True] == pytest.approx(
        nothing | {"used_live_j": 0.72e6, "used_live_s": 3600, "used_weighed_j": 1.44e7, "used_weighed_s": 7.2e4,
                   "estimated_grid_j": 0.72e6, "used_provider_s": 3600}
    )  # fmt: skip


def test_a_fleet_change_within_an_hour_changes_the_zone(two_fleets: Store) -> None:
    """37 of the first hour's 60 minutes at 600 W are DE's, 23 FR's."""
    join_fleet(two_fleets, "node-7", "new", since_us=T0 + 37 * MINUTE)
    found = weighed(two_fleets)
    assert found["big", True]["used_weighed_j"] == pytest.approx(37 * 36_000 * 100)
    assert found["new", True]["used_weighed_j"] == pytest.approx(23 * 36_000 * 20)


def test_other_sums_do_not_change(two_fleets: Store) -> None:
    for by in ("none", "gpu", "node", "label:team"):
        plain = use_rows(two_fleets, [hours(0, 2)], by, KNOWN)
        with moment(two_fleets) as reader:
            rows = use_rows(reader, [hours(0, 2)], by, KNOWN, grid=GRID)
        assert [{name: row[name] for name in plain[0]} for row in rows] == [
            {name: pytest.approx(value) if isinstance(value, float) else value for name, value in row.items()}
            for row in plain
        ]
