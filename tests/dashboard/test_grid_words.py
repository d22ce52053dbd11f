"""The line that says where grid intensities of now are from: live, kept or by the table, each with its age."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.answers.grid import grid_now
from app.config import Config
from app.dashboard.grid_words import grid_now_words
from app.store.database import Store
from app.store.grid import append_points
from app.store.source_states import GridState, write_state
from tests.grid_points import value

NOW = datetime(2026, 2, 3, 12, 30, tzinfo=UTC)
NOON_DAYS_AGO = NOW - timedelta(days=5, minutes=30)
CONFIG = Config.model_validate(
    {"grid": [{"provider": "electricity_maps", "zones": {"DE": "DE"}, "key_env": "NO_SUCH_TOKEN"}]}
)


def words(store: Store, *zones: str) -> str:
    said = grid_now_words(list(grid_now(store, CONFIG, [CONFIG.grid_factor(zone) for zone in zones], NOW, None)))
    assert said.startswith("Grid now: ")
    return said.removeprefix("Grid now: ")


def state(store: Store, answered_minutes_ago: float, **more: Any) -> None:
    answered_at = NOW - timedelta(minutes=answered_minutes_ago)
    write_state(store, GridState("electricity_maps", "DE", asked_at=NOW, answered_at=answered_at, **more))


@pytest.fixture
def known(store: Store) -> Store:
    """An hour at 321 g/kWh that ended half an hour ago."""
    append_points(store, [value(NOW - timedelta(minutes=90), 60, 321)])
    return store


def test_a_live_zone_says_how_old_its_answer_and_its_value_are(known: Store) -> None:
    state(known, 5)
    assert words(known, "DE") == "DE: 321 g/kWh, live, Electricity Maps, 5 min old, of the time up to 30 min ago"


def test_a_value_of_this_very_hour_is_told_without_its_end(store: Store) -> None:
    append_points(store, [value(NOW - timedelta(minutes=30), 60, 321, fetched_at=NOW)])
    state(store, 5)
    assert words(store, "DE") == "DE: 321 g/kWh, live, Electricity Maps, 5 min old"


def test_a_kept_value_says_its_age_and_why(known: Store) -> None:
    state(known, 180, problem="HTTP 500: not now", problem_kind="failed")
    assert words(known, "DE") == (
        "DE: 321 g/kWh, cached, Electricity Maps, 3 h old, of the time up to 30 min ago, because Electricity "
        "Maps: HTTP 500: not now; hours that it has not told count by the yearly average"
    )


def test_the_table_says_its_year_and_why(store: Store) -> None:
    state(store, 5)
    assert words(store, "DE", "EU27") == (
        "DE: 330 g/kWh, yearly average of 2025, because Electricity Maps: no value of the last day; "
        "EU27: 213 g/kWh, yearly average of 2024, because no provider of wattmix.toml is asked for the average of this "
        "zone"
    )


def test_a_provider_that_is_gone_for_days_leaves_the_table_and_says_since_when(store: Store) -> None:
    append_points(store, [value(NOON_DAYS_AGO, 60, 321)])
    state(store, 5 * 24 * 60, problem="HTTP 503: not now", problem_kind="failed")
    assert words(store, "DE") == (
        "DE: 330 g/kWh, yearly average of 2025, because Electricity Maps has not answered for 5 d: HTTP 503: not now"
    )


def test_a_provider_without_its_key_leaves_the_table_and_says_what_it_lacks(store: Store) -> None:
    lacking = GridState("electricity_maps", "DE", problem="$NO_SUCH_TOKEN is not set (key_env)", problem_kind="absent")
    write_state(store, lacking)
    assert words(store, "DE") == (
        "DE: 330 g/kWh, yearly average of 2025, because Electricity Maps: $NO_SUCH_TOKEN is not set (key_env)"
    )


def test_a_zone_that_no_table_has_is_not_known() -> None:
    current = {
        "from": "table",
        "is_fallback": False,
        "g_per_kwh": None,
        "year": None,
        "why": "no grid intensity for zone 'Atlantis'",
    }
    said = grid_now_words([{"zone": "Atlantis", "current": current}])
    assert said == "Grid now: Atlantis: not known, because no grid intensity for zone 'Atlantis'"
