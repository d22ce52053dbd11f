"""Superseded forecasts go; every figure that an account can ask for stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.store.database import Store
from app.store.grid import append_points, forecast, hourly_factors, latest
from app.store.grid_retention import delete_superseded_forecasts
from tests.store.test_grid import NOON, ahead, minutes, point, us

# An hour of a forecast is two halves; what is known comes in quarters of an hour.
HALF, QUARTER = 30, 15
EARLIEST, LAST = -4, 4


def rows(store: Store) -> list[tuple[float, float]]:
    """(minutes after noon, g/kWh) of what is kept."""
    found = store.query("SELECT start_us, g_per_kwh FROM grid_point ORDER BY start_us, known_at").iter_rows()
    return [((start - us(NOON)) / 60e6, grams) for start, grams in found]


def issued(at_min: float, grams: float, known_min: float, issued_min: float | None = None) -> Any:
    """A forecast of half an hour."""
    return ahead(at_min, HALF, grams, issued_min, fetched_at=NOON + minutes(known_min))


def test_of_older_forecasts_the_last_before_the_hour_and_those_since_are_kept(store: Store) -> None:
    """Of the half hour from 15:30, told at 12:00, 13:00, 14:45, 15:10 and 16:00: the last one before its hour began,
    the one while it ran, and the one after it."""
    known = (0, 60, 165, 190, 240)
    for number, at in enumerate(known):
        append_points(store, [issued(210, 100 + number, at)])
    assert delete_superseded_forecasts(store, NOON + timedelta(days=1)) == 2
    assert rows(store) == [(210, 102), (210, 103), (210, 104)]
    assert delete_superseded_forecasts(store, NOON + timedelta(days=1)) == 0


def test_young_forecasts_and_actual_values_are_kept(store: Store) -> None:
    for number, at in enumerate((0, 60, 120, 180)):
        append_points(store, [issued(600, 100 + number, at), point(0, 60, 10 + number, fetched_at=NOON + minutes(at))])
    assert delete_superseded_forecasts(store, NOON - minutes(1)) == 0
    # of those known by 13:30 the later one; the two after it are young
    assert delete_superseded_forecasts(store, NOON + minutes(90)) == 1
    assert [grams for at, grams in rows(store) if at == 600] == [101, 102, 103]
    assert [grams for at, grams in rows(store) if at == 0] == [10, 11, 12, 13]


def test_one_that_was_issued_before_another_that_came_first_goes(store: Store) -> None:
    """It never counted."""
    append_points(store, [issued(600, 100, 60, issued_min=30)])
    append_points(store, [issued(600, 70, 120, issued_min=0)])
    assert delete_superseded_forecasts(store, NOON + timedelta(days=1)) == 1
    assert rows(store) == [(600, 100)]


def test_zones_providers_and_stretches_supersede_only_themselves(store: Store) -> None:
    first = [issued(600, 1, 0), issued(630, 2, 0), ahead(600, 60, 3, fetched_at=NOON)]
    apart: list[dict[str, Any]] = [{"zone": "FR"}, {"provider": "b"}, {"kind": "marginal"}, {"basis": "direct"}]
    others = [ahead(600, HALF, 4, fetched_at=NOON + minutes(1), **more) for more in apart]
    append_points(store, [*first, *others])
    assert delete_superseded_forecasts(store, NOON + timedelta(days=1)) == 0


told = st.tuples(
    st.integers(-1, 1),  # half hours after noon at which a stretch begins
    st.sampled_from([1, 1, 2]),  # half hours that it lasts
    st.one_of(st.none(), st.integers(0, 500)),
    st.sampled_from([True, True, False]),  # a forecast
    st.one_of(st.none(), st.none(), st.integers(2 * EARLIEST, 2 * LAST)),  # quarters after noon at which it was issued
    st.integers(1, 2),  # quarters until the next is known
)


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Store]:
    """A store of the same points from which nothing is deleted."""
    made = Store.open(tmp_path / "whole.duckdb")
    yield made
    made.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(
    said=st.lists(told, min_size=8, max_size=12),
    later=st.lists(told, max_size=3),
    before=st.integers(-2, 2 * LAST),
    quarters=st.sets(st.integers(-4, 2 * LAST), min_size=4, max_size=6),
)
def test_no_figure_that_can_be_asked_for_changes(
    store: Store, whole: Store, said: list[Any], later: list[Any], before: int, quarters: set[int]
) -> None:
    """By the latest knowledge, and by any from `before` on, of any time; by an older one, of the hours that had begun.

    Also once more is told, the same words again among it.
    """
    kept_from = NOON + QUARTER * minutes(before)
    asked = [None, kept_from, *(NOON + QUARTER * minutes(number) for number in sorted(quarters))]
    for one in (store, whole):
        with one.transaction() as connection:
            connection.execute("DELETE FROM grid_point")
        last = _tell(one, said, 2 * EARLIEST)
    count = len(rows(store))
    assert delete_superseded_forecasts(store, kept_from) == count - len(rows(store))
    for known_at in asked:
        assert _figures(store, known_at, kept_from) == _figures(whole, known_at, kept_from)
    for one in (store, whole):
        _tell(one, [*said[:2], *later], max(last, before) + 1)
    assert _figures(store, None, kept_from) == _figures(whole, None, kept_from)


def _tell(store: Store, said: list[Any], quarter: int) -> int:
    """Each known by so many quarters of an hour after the one before, from `quarter` on; when the last one was."""
    for start, length, grams, is_forecast, issue, pause in said:
        quarter += pause
        known_at = NOON + QUARTER * minutes(quarter)
        if is_forecast:
            issued_min = None if issue is None else QUARTER * issue
            append_points(store, [ahead(HALF * start, HALF * length, grams or 0, issued_min, fetched_at=known_at)])
        else:
            append_points(store, [point(HALF * start, HALF * length, grams, fetched_at=known_at)])
    return quarter


def _figures(store: Store, known_at: datetime | None, kept_from: datetime) -> list[Any]:
    """What is known of all of the time; by a knowledge before `kept_from`, of the hours that had begun by then."""
    start, end = us(NOON + HALF * minutes(EARLIEST)), us(NOON + HALF * minutes(LAST + 4))
    if known_at is None or known_at >= kept_from:
        now = us(known_at or kept_from)
        return [
            frame.to_dicts()
            for frame in (
                hourly_factors(store, ["DE"], start, end, known_at),
                forecast(store, ["DE"], start, end, known_at),
                latest(store, ["DE"], start, now, known_at),
            )
        ]
    had_begun = us(known_at)
    if had_begun <= start:
        return []
    return [
        hourly_factors(store, ["DE"], start, had_begun, known_at).to_dicts(),
        latest(store, ["DE"], start, had_begun, known_at).to_dicts(),
    ]
