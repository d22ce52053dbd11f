"""When simulated events begin and end."""

from __future__ import annotations

import numpy as np
import pytest

from app.simulator.recurring import Recurring, covered_s
from tests.simulator.wires import DAY_S, of_the_day

RESTART = Recurring(DAY_S, 9 * 3600 + 30 * 60, 90)
NIGHT = Recurring(DAY_S, 22 * 3600 + 30 * 60, 5 * 3600 + 40 * 60)


def minute(hour: int, minute: int) -> int:
    return of_the_day(hour, minute) // 60


def test_ninety_seconds_take_one_minute_and_half_of_the_next() -> None:
    minutes = np.array([minute(9, 29), minute(9, 30), minute(9, 31), minute(9, 32)])
    assert RESTART.covered_s(minutes).tolist() == [0, 60, 30, 0]


def test_a_night_goes_past_midnight() -> None:
    # 22:30 + 5:40 = 04:10
    minutes = np.array([minute(22, 29), minute(22, 30), minute(0, 0), minute(4, 9), minute(4, 10)])
    assert NIGHT.covered_s(minutes).tolist() == [0, 60, 60, 60, 0]
    assert NIGHT.active(of_the_day(4, 9, 59))
    assert not NIGHT.active(of_the_day(4, 10))


def test_of_events_that_overlap_the_longer_counts() -> None:
    other = Recurring(3600, 30 * 60, 120)
    minutes = np.array([minute(9, 30), minute(9, 31), minute(9, 32)])
    assert covered_s((RESTART, other), minutes).tolist() == [60, 60, 0]
    assert covered_s((), minutes).tolist() == [0, 0, 0]


def test_begins_are_counted_and_found() -> None:
    begin = of_the_day(9, 30)
    assert RESTART.begins(begin) == RESTART.begins(begin - 1) + 1 == RESTART.begins(begin + 100)
    assert RESTART.last_begin_s(begin - 1) == begin - DAY_S
    assert RESTART.begins_within(begin - DAY_S, begin + DAY_S) == [begin]
    assert RESTART.begins_within(begin, begin + 5) == []


@pytest.mark.parametrize("values", [(3601, 0, 60), (3600, 30, 60), (3600, 0, 62)])
def test_an_event_off_the_grid_is_refused(values: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="begins with a minute"):
        Recurring(*values)
