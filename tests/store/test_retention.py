"""Raw samples go after days or past a size, minutes after months, hours never; what was rolled up stays right."""

from __future__ import annotations

from typing import Any

import pytest

from app.store.database import Store
from app.store.retention import delete_expired, raw_days_within
from app.store.rollup import roll_up
from tests.batches import DAY, HOUR, MINUTE, SECOND, T0, Clock, batch, count, put, seconds, writing

NOW = T0 + 10 * DAY


def settle(store: Store, *, oldest_raw_us: int = 0, oldest_minute_us: int = 0) -> None:
    while roll_up(store, NOW, oldest_raw_us=oldest_raw_us, oldest_minute_us=oldest_minute_us):
        pass


def a_minute_a_day(store: Store, days: int = 10) -> None:
    """A minute of 18 kJ at the start of each day before NOW, with a host row, a process and a bridge; rolled up."""
    with writing(store, Clock(NOW)) as taking:
        for day in range(days):
            start = T0 + day * DAY
            gap = {"t_us": start + 3 * MINUTE, "dt_us": 2 * MINUTE, "energy_method": "bridged", "energy_mj": 1_000}
            put(taking, batch(day + 1, rows=[*seconds(start, 60), gap], host=[{"t_us": start + SECOND}],
                              processes=[{"t_us": start + SECOND, "pid": 1}]))  # fmt: skip
    settle(store)


def rows(store: Store, table: str) -> list[dict[str, Any]]:
    return list(store.query(f"SELECT * FROM {table} ORDER BY ALL").iter_rows(named=True))


def test_raw_goes_after_days_and_minutes_after_theirs_and_hours_never(store: Store) -> None:
    a_minute_a_day(store)
    hours = rows(store, "gpu_hour")
    assert (count(store, "gpu_sample"), count(store, "gpu_minute"), len(hours)) == (600, 30, 10)
    # NOW is day 10: raw of day 8 and 9 is younger than 2.5 days, minutes of day 5 to 9 younger than 5.5
    oldest = delete_expired(store, NOW, raw_days=2.5, minute_days=5.5)
    assert oldest == NOW - 2.5 * DAY
    assert {table: count(store, table) for table in ("gpu_sample", "gpu_bridge", "host_sample", "process_sample")} == {
        "gpu_sample": 120, "gpu_bridge": 2, "host_sample": 2, "process_sample": 2,
    }  # fmt: skip
    assert store.query("SELECT min(minute_us) AS us FROM gpu_minute")["us"][0] == T0 + 5 * DAY
    assert count(store, "gpu_minute") == 15
    assert rows(store, "gpu_hour") == hours
    # ten minutes of 60 x 300 J by the counter and ten bridges of 1 J
    assert sum(row["counter_j"] for row in hours) == pytest.approx(180_000)
    assert sum(row["interpolated_j"] for row in hours) == pytest.approx(10)


def test_retention_twice_is_retention_once(store: Store) -> None:
    a_minute_a_day(store)
    delete_expired(store, NOW, raw_days=3, minute_days=6)
    before = [rows(store, table) for table in ("gpu_sample", "gpu_minute", "gpu_hour")]
    delete_expired(store, NOW, raw_days=3, minute_days=6)
    assert [rows(store, table) for table in ("gpu_sample", "gpu_minute", "gpu_hour")] == before


def test_the_age_is_cut_at_a_whole_minute_so_that_a_kept_minute_is_whole(store: Store) -> None:
    with writing(store, Clock(NOW)) as taking:
        put(taking, batch(1, rows=seconds(NOW - DAY - 5 * MINUTE, 600)))
    settle(store)
    oldest = delete_expired(store, NOW + 30 * SECOND, raw_days=1, minute_days=90)
    assert oldest == NOW - DAY
    # NOW - 1 day is a whole minute: its last second is gone, the next minute's first is there
    assert store.query("SELECT min(t_us) AS us FROM gpu_sample")["us"][0] == NOW - DAY + SECOND
    assert count(store, "gpu_sample") == 300


def test_rollups_are_still_right_after_raw_is_gone(store: Store) -> None:
    """Late data in a kept minute is added; a minute that lost its raw keeps what it had."""
    a_minute_a_day(store)
    before = {row["minute_us"]: row["counter_j"] for row in rows(store, "gpu_minute")}
    oldest = delete_expired(store, NOW, raw_days=2.5, minute_days=90)
    late = [
        {"t_us": T0 + 7 * DAY + 30 * SECOND, "energy_mj": 5_000},
        {"t_us": T0 + 9 * DAY + 30 * SECOND, "energy_mj": 5_000},
    ]
    with writing(store, Clock(NOW)) as taking:  # it still takes 30 days
        for sequence, row in enumerate(late, 11):
            put(taking, batch(sequence, rows=[row]))
    settle(store, oldest_raw_us=oldest)
    after = {row["minute_us"]: row["counter_j"] for row in rows(store, "gpu_minute")}
    assert after == before | {T0 + 9 * DAY: pytest.approx(before[T0 + 9 * DAY] + 5.0)}
    hours = {row["hour_us"]: row["counter_j"] for row in rows(store, "gpu_hour")}
    assert hours == {T0 + day * DAY: pytest.approx(18_005 if day == 9 else 18_000) for day in range(10)}


def test_minutes_that_wait_for_their_rollup_keep_their_raw_samples(store: Store) -> None:
    """As its docstring says: else their energy is in no rollup and lost."""
    with writing(store, Clock(NOW)) as taking:
        put(taking, batch(1, rows=seconds(T0, 60)))
    delete_expired(store, NOW, raw_days=2.5, minute_days=90)
    settle(store)
    assert sum(row["counter_j"] for row in rows(store, "gpu_minute")) == pytest.approx(18_000)


# By size


def size_gb(store: Store) -> float:
    store._connection.execute("CHECKPOINT")
    return float(store.query("SELECT used_blocks * block_size / 1e9 AS gb FROM pragma_database_size()")["gb"][0])


def fill(store: Store, first_us: int, until_us: int, step_us: int) -> None:
    """Raw samples of GPU 1 that compress badly."""
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO gpu_sample (gpu_id, t_us, dt_us, energy_mj, energy_method, integral_mj, power_instant_mw) "
            "SELECT 1, t, 1000000, (random() * 2e9)::INT, 0, (random() * 2e9)::INT, (random() * 2e9)::INT "
            "FROM range($1, $2, $3) AS r(t)",
            [first_us, until_us, step_us],
        )


def test_without_a_limit_or_below_it_all_days_are_kept(store: Store) -> None:
    fill(store, NOW - 7 * DAY, NOW, MINUTE)
    assert raw_days_within(store, raw_days=7, max_gb=None) == 7
    assert raw_days_within(store, raw_days=7, max_gb=size_gb(store) * 1.01) == 7


def test_a_file_of_twice_its_limit_keeps_half_of_its_days(store: Store) -> None:
    fill(store, NOW - 7 * DAY, NOW, 2 * SECOND)
    assert raw_days_within(store, raw_days=7, max_gb=size_gb(store) / 2) == pytest.approx(3.5, rel=1e-4)


def test_at_least_an_hour_of_raw_samples_is_kept(store: Store) -> None:
    fill(store, NOW - DAY, NOW, 10 * SECOND)
    size_gb(store)
    assert raw_days_within(store, raw_days=7, max_gb=1e-9) == 1 / 24


@pytest.mark.parametrize("days_there", [7, 2])
def test_a_file_past_its_limit_shrinks_below_it(store: Store, days_there: int) -> None:
    """Also when it holds fewer days than raw_days allows: a fast-growing store reaches its size long before its age."""
    fill(store, NOW - days_there * DAY, NOW, days_there * DAY // 1_200_000)
    limit = size_gb(store) * 0.6
    for _ in range(3):
        days = raw_days_within(store, raw_days=7, max_gb=limit)
        delete_expired(store, NOW, raw_days=days, minute_days=90)
        size_gb(store)
    # whole row groups go: a fifth of leeway
    assert size_gb(store) < limit * 1.2
    assert store.query("SELECT max(t_us) AS us FROM gpu_sample")["us"][0] > NOW - HOUR
