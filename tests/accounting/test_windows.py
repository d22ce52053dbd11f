"""The best window of a forecast."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.windows import Stretch, best_window

T0 = datetime(2026, 12, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hours(*values: float, first: int = 0) -> list[Stretch]:
    return [Stretch(T0 + (first + n) * HOUR, T0 + (first + n + 1) * HOUR, value) for n, value in enumerate(values)]


def test_two_hours_of_six() -> None:
    """(100 + 120) / 2 = 110 of a mean of 210: 1 - 110 / 210."""
    found = best_window(hours(300, 250, 100, 120, 290, 200), 2 * HOUR)
    assert found is not None
    assert (found.start, found.end, found.g_per_kwh) == (T0 + 2 * HOUR, T0 + 4 * HOUR, pytest.approx(110))
    assert found.saved_share == pytest.approx(1 - 110 / 210)


def test_part_of_an_hour_where_that_is_less() -> None:
    """90 minutes: all of the 100 and half of the 120, (100 + 60) / 1.5."""
    found = best_window(hours(300, 100, 120), 1.5 * HOUR)
    assert found is not None
    assert (found.start, found.g_per_kwh) == (T0 + HOUR, pytest.approx(160 / 1.5))


def test_of_equal_windows_the_first() -> None:
    found = best_window(hours(100, 100, 100), HOUR)
    assert found is not None
    assert found.start == T0


def test_a_gap_is_not_bridged() -> None:
    forecast = [*hours(100), *hours(110, 400, first=2)]
    found = best_window(forecast, 2 * HOUR)
    assert found is not None
    assert (found.start, found.g_per_kwh) == (T0 + 2 * HOUR, pytest.approx(255))
    assert best_window(forecast, 3 * HOUR) is None
    assert best_window([], HOUR) is None


@given(values=st.lists(st.floats(0, 1000), min_size=1, max_size=20), quarters=st.integers(1, 40), at=st.integers(0, 80))
def test_no_window_is_better(values: list[float], quarters: int, at: int) -> None:
    """Any window that begins at any five minutes."""
    forecast, length = hours(*values), quarters * HOUR / 4
    found = best_window(forecast, length)
    start = T0 + at * HOUR / 12
    if found is None:
        assert length > len(values) * HOUR
    elif start + length <= forecast[-1].end:
        minutes = [values[(5 * at + n) // 60] for n in range(15 * quarters)]
        assert found.g_per_kwh <= sum(minutes) / len(minutes) + 1e-6
