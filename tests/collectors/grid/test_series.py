"""Each moment once, the newest word on it, the finest resolution."""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.grid.point import IntensityPoint
from collectors.grid.series import chunks, newest, step_of, tidy
from collectors.http.problem import UnusableAnswer
from tests.collectors.grid.test_point import POINT
from tests.collectors.http.clocks import NOW, utc

MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)


def at(start: str, minutes: int = 60, grams: float | None = 100.0, revised: str | None = None) -> IntensityPoint:
    begin = utc(start)
    return dataclasses.replace(
        POINT, start=begin, end=begin + timedelta(minutes=minutes), g_per_kwh=grams,
        reason=None if grams is not None else "a gap", revised_at=utc(revised) if revised else None,
    )  # fmt: skip


def told(points: tuple[IntensityPoint, ...]) -> list[tuple[str, str, float | None]]:
    return [(f"{point.start:%H:%M}", f"{point.end:%H:%M}", point.g_per_kwh) for point in points]


def test_the_value_that_was_revised_last_counts_whatever_its_place() -> None:
    old, new = at("08:00", grams=350, revised="10:00"), at("08:00", grams=361, revised="12:00")
    assert tidy([new, old]) == tidy([old, new]) == (new,)


def test_a_value_counts_more_than_a_gap_and_the_later_of_equals() -> None:
    assert told(tidy([at("08:00", grams=7), at("08:00", grams=None)])) == [("08:00", "09:00", 7)]
    assert told(tidy([at("08:00", grams=7), at("08:00", grams=8)])) == [("08:00", "09:00", 8)]


def test_points_outside_are_left_out_and_the_end_is_not_included() -> None:
    points = [at("11:00"), at("09:00"), at("10:00"), at("08:00")]
    assert told(tidy(points, utc("09:00"), utc("11:00"))) == [("09:00", "10:00", 100), ("10:00", "11:00", 100)]


def test_the_finer_counts_and_the_coarser_fills_what_it_leaves() -> None:
    points = [at("08:00", 60, 300), at("08:15", 15, 200), at("08:30", 15, 210), at("09:00", 60, 310)]
    assert told(tidy(points)) == [
        ("08:00", "08:15", 300), ("08:15", "08:30", 200), ("08:30", "08:45", 210), ("08:45", "09:00", 300),
        ("09:00", "10:00", 310),
    ]  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(0, 47), st.sampled_from([5, 15, 30, 60, 120])), max_size=30),
)
def test_no_moment_is_covered_twice_and_none_is_lost(stretches: list[tuple[int, int]]) -> None:
    points = [
        dataclasses.replace(POINT, start=begin, end=begin + timedelta(minutes=minutes))
        for slot, minutes in stretches
        for begin in [MIDNIGHT + timedelta(minutes=5 * slot)]
    ]
    kept = tidy(points)
    assert all(sooner.end <= later.start for sooner, later in pairwise(kept))
    covered = {slot + step for slot, minutes in stretches for step in range(minutes // 5)}
    assert sum((point.end - point.start) / timedelta(minutes=5) for point in kept) == len(covered)


def test_newest_is_the_value_that_covers_now_else_the_last_before_else_the_last_gap() -> None:
    assert newest([at("09:00", grams=1), at("10:00", grams=2), at("11:00", grams=3)], NOW).g_per_kwh == 2
    assert newest([at("09:00", grams=1), at("10:00", grams=None)], NOW).g_per_kwh == 1
    assert newest([at("10:00", grams=None)], NOW).reason == "a gap"


def test_newest_of_two_kinds_is_the_average_where_both_cover_now() -> None:
    average, marginal = at("10:00", grams=1), dataclasses.replace(at("10:05", 5, grams=2), kind="marginal")
    assert newest([average, marginal], NOW) == average
    ended = dataclasses.replace(at("09:00", grams=1))
    assert newest([ended, marginal], NOW) == marginal


def test_what_is_a_day_old_or_in_the_future_is_not_the_latest() -> None:
    with pytest.raises(UnusableAnswer, match="more than a day ago") as old:
        newest([at("10:00")], NOW + timedelta(days=2))
    assert old.value.kind == "no_recent_data"
    with pytest.raises(UnusableAnswer) as ahead:
        newest([at("11:00")], NOW)
    assert ahead.value.kind == "empty"


def test_a_long_range_is_cut_into_pieces_that_join_without_gap() -> None:
    pieces = chunks(MIDNIGHT, MIDNIGHT + timedelta(days=65), timedelta(days=30))
    assert [(stop - begin).days for begin, stop in pieces] == [30, 30, 5]
    assert all(sooner[1] == later[0] for sooner, later in pairwise(pieces))


@pytest.mark.parametrize("end", [MIDNIGHT, MIDNIGHT - timedelta(days=1), datetime(2027, 1, 1)])  # noqa: DTZ001
def test_a_range_that_is_none_is_refused(end: datetime) -> None:
    with pytest.raises(ValueError, match="a range has time zones"):
        chunks(MIDNIGHT, end, timedelta(days=1))


def test_the_step_is_the_smallest_distance() -> None:
    hour = timedelta(hours=1)
    assert step_of([utc("10:00"), utc("09:15"), utc("09:30"), utc("09:30")], hour) == timedelta(minutes=15)
    assert step_of([utc("10:00")], hour) == hour
    with pytest.raises(UnusableAnswer, match="only 1 s apart"):
        step_of([utc("10:00"), utc("10:00") + timedelta(seconds=1)], hour)


def test_a_month_of_two_resolutions_is_put_in_order_quickly() -> None:
    def every(step: timedelta, days: int) -> list[IntensityPoint]:
        starts = [MIDNIGHT + step * number for number in range(timedelta(days=days) // step)]
        return [dataclasses.replace(POINT, start=start, end=start + step) for start in starts]

    begun = time.process_time()
    kept = tidy([*every(timedelta(hours=1), 31), *every(timedelta(minutes=5), 30)])
    assert len(kept) == 8640 + 24  # the 31st day is coarse only
    assert time.process_time() - begun < 1.0
