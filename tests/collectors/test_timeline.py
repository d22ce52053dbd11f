"""Rows in time: whatever the clock does, no moment is told twice and no row is turned round."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.timeline import Series, Timeline
from tests.collectors.batches import SECOND, T0, gpu_rows

HOUR = 3600 * SECOND


def place_all(rows: list[tuple[int, int]]) -> list[tuple[int, int] | None]:
    series = Series()
    return [series.place(t_us, dt_us) for t_us, dt_us in rows]


def ticks(start_us: int, count: int) -> list[tuple[int, int]]:
    return [(start_us + (n + 1) * SECOND, SECOND) for n in range(count)]


def overlap_us(rows: list[tuple[int, int] | None]) -> int:
    spans = sorted((t_us - dt_us, t_us) for t_us, dt_us in filter(None, rows))
    return sum(max(0, end - begin) for (_, end), (begin, _) in pairwise(spans))


def test_rows_of_a_steady_clock_stay_as_they_are():
    rows = ticks(T0, 100)
    assert place_all(rows) == rows


def test_a_step_forward_leaves_a_gap():
    rows = ticks(T0, 5) + ticks(T0 + HOUR, 5)
    assert place_all(rows) == rows


def test_a_step_back_of_a_second_is_slewed_away_within_100_rows_and_no_row_is_lost():
    rows = ticks(T0, 5) + ticks(T0 + 4 * SECOND, 200)
    placed = place_all(rows)
    assert None not in placed
    assert overlap_us(placed) == 0
    shifted = [row for row in placed[5:105] if row is not None]
    assert {dt_us for _, dt_us in shifted} == {990_000}
    assert all(left == right[0] - right[1] for (left, _), right in pairwise(shifted))
    assert placed[105:] == rows[105:]


def test_jitter_of_microseconds_is_cut_off_the_row():
    assert place_all([(T0, SECOND), (T0 + SECOND - 3, SECOND)])[1] == (T0 + SECOND - 3, SECOND - 3)


def test_a_clock_that_was_hours_ahead_at_boot_loses_only_the_moments_told_twice():
    ahead = ticks(T0 + 2 * HOUR, 30)
    right = ticks(T0, 3 * 3600)
    placed = place_all(ahead + right)
    assert overlap_us(placed) == 0
    assert placed[:30] == ahead
    assert placed[30:].count(None) == 30
    assert placed[30 : 30 + 7200] == right[:7200]  # at once, at the right time


def test_a_step_forward_that_is_taken_back_loses_only_what_it_told():
    rows = ticks(T0, 100) + ticks(T0 + HOUR, 10) + ticks(T0 + 110 * SECOND, 4000)
    placed = place_all(rows)
    assert overlap_us(placed) == 0
    assert placed.count(None) == 10


def test_a_bridge_that_reaches_into_told_moments_is_cut_with_its_energy():
    placed = place_all([*ticks(T0, 100), (T0 + HOUR, HOUR)])
    assert placed[-1] == (T0 + HOUR, HOUR - 100 * SECOND)


steps = st.lists(
    st.tuples(st.integers(1, 40), st.sampled_from([0, 1, 3, 59, 61, 600, 7200, -1, -5, -59, -61, -600, -7200])),
    max_size=12,
)


@given(steps, st.integers(1, 2_000_000))
def test_whatever_the_clock_does_no_moment_is_told_twice(moves: list[tuple[int, int]], dt_us: int):
    clock, rows = T0, []
    for count, step_s in moves:
        for _ in range(count):
            clock += dt_us
            rows.append((clock, dt_us))
        clock += step_s * SECOND
    placed = place_all(rows)
    assert overlap_us(placed) == 0
    assert all(0 < row[1] <= dt_us for row in placed if row is not None)


@pytest.mark.parametrize("restart", [False, True])
def test_a_table_keeps_its_other_columns_and_the_place_survives_a_restart(restart: bool):
    timeline = Timeline()
    first, lost = timeline.place(gpu_rows([T0, T0 + 3 * HOUR]), ["a", "a"])
    assert (len(first), lost) == (2, 0)
    if restart:
        timeline = Timeline(timeline.state())
    table = gpu_rows([T0 + SECOND, T0 + 3 * HOUR, T0 + 3 * HOUR + SECOND])
    table.utilisation_pct[:] = [1, 2, 3]
    second, lost = timeline.place(table, ["a", "a", "b"])
    assert lost == 1
    assert second.utilisation_pct == [1, 3]
    assert second.t_us == [T0 + SECOND, T0 + 3 * HOUR + SECOND]
