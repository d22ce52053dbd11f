"""The hub's background work: rollups, fleets and retention; a job that fails is counted and tried again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import duckdb
import polars as pl
import pytest

from app.config import Config, StoreSettings
from app.hub import jobs as jobs_module
from app.hub.jobs import Jobs
from app.store.database import Store
from app.store.grid import append_points
from app.store.writer import SampleWriter
from tests.batches import DAY, HOUR, MINUTE, SECOND, T0, Clock, at, batch, count, put, seconds, wait_until, writing
from tests.grid_points import to_come

CONFIG = Config.model_validate({
    "store": {"raw_days": 7, "minute_days": 30},
    "fleet": [{"name": "cheap", "gpu": "*"}], "node": [{"match": "node-*", "fleet": "cheap"}],
})  # fmt: skip


@pytest.fixture
def clock() -> Clock:
    return Clock(T0 + 10 * DAY)


@pytest.fixture
def taking(store: Store, clock: Clock) -> Iterator[SampleWriter]:
    with writing(store, clock, raw_days=7) as made:
        yield made


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run when a test calls them, not in their thread."""
    monkeypatch.setattr(Jobs, "_run", lambda self: None)


def jobs(store: Store, writer: SampleWriter, clock: Clock, config: Config = CONFIG) -> Jobs:
    return Jobs(store, writer, config, now_us=lambda: clock.us)


def minutes_j(store: Store) -> dict[int, float]:
    return dict(store.query("SELECT minute_us, counter_j FROM gpu_minute ORDER BY minute_us").iter_rows())


def test_what_is_due_is_rolled_up_and_new_nodes_are_placed(
    store: Store, taking: SampleWriter, clock: Clock, by_hand: None
) -> None:
    rows = [*seconds(clock.us - 2 * MINUTE, 60), *seconds(clock.us - SECOND, 1)]
    put(taking, batch(1, rows=rows))
    made = jobs(store, taking, clock)
    made.roll_up_all()
    assert minutes_j(store) == {clock.us - 2 * MINUTE: pytest.approx(18_000.0)}
    assert made.waiting == 1  # the last minute has not settled
    assert store.query("SELECT fleet FROM node_fleet").rows() == [("cheap",)]
    clock.us += 2 * MINUTE
    made.roll_up_all()
    assert (made.waiting, len(minutes_j(store)), count(store, "node_fleet")) == (0, 2, 1)


def test_a_node_that_left_its_fleet_is_noted_once_not_at_each_rollup(
    store: Store, taking: SampleWriter, clock: Clock, by_hand: None
) -> None:
    put(taking, batch(1, rows=seconds(clock.us - 2 * MINUTE, 60)))
    jobs(store, taking, clock).roll_up_all()
    left = jobs(store, taking, clock, CONFIG.model_copy(update={"node": ()}))
    for _ in range(5):
        clock.us += 5 * SECOND
        left.roll_up_all()
    assert count(store, "node_fleet") == 2


def test_retention_rolls_up_before_it_deletes(store: Store, taking: SampleWriter, clock: Clock, by_hand: None) -> None:
    start = clock.us - 7 * DAY + HOUR
    put(taking, batch(1, rows=seconds(start, 60)))
    clock.us += 2 * HOUR  # now they are too old
    jobs(store, taking, clock).delete_expired()
    assert count(store, "gpu_sample") == 0
    assert minutes_j(store) == {start: pytest.approx(18_000.0)}


def test_retention_that_is_stopped_deletes_nothing_that_waits_for_its_rollup(
    store: Store, taking: SampleWriter, clock: Clock, by_hand: None
) -> None:
    """The hub stops while a backlog is rolled up: what is left of it must outlive the restart."""
    start = clock.us - 7 * DAY + HOUR
    put(taking, batch(1, rows=seconds(start, 60)))
    clock.us += 2 * HOUR
    stopped = jobs(store, taking, clock)
    stopped.close()
    stopped.delete_expired()
    jobs(store, taking, clock).delete_expired()
    assert minutes_j(store) == {start: pytest.approx(18_000.0)}


def test_retention_deletes_superseded_forecasts(
    store: Store, taking: SampleWriter, clock: Clock, by_hand: None
) -> None:
    """Of two that were known 14 and more days ago the later one stays; of younger ones both do."""
    now = at(clock.us)
    for days in (20, 15, 13, 1):
        known_at = now - timedelta(days=days)
        append_points(store, [to_come(now + timedelta(days=1), 60, days, known_at, issued_at=known_at)])
    jobs(store, taking, clock).delete_expired()
    assert store.query("SELECT g_per_kwh FROM grid_point ORDER BY known_at").rows() == [(15,), (13,), (1,)]
    jobs(store, taking, clock, CONFIG.model_copy(update={"store": StoreSettings(forecast_days=1)})).delete_expired()
    assert store.query("SELECT g_per_kwh FROM grid_point").rows() == [(1,)]


# Raw samples that went for the file's size


def days_with_a_minute_each(store: Store, taking: SampleWriter, clock: Clock) -> None:
    """A minute of 18 kJ a day, six days back."""
    for day in range(6, 0, -1):
        put(taking, batch(7 - day, rows=seconds(clock.us - day * DAY, 60)))


def late_sample(clock: Clock) -> list[dict[str, int]]:
    return [{"t_us": clock.us - 5 * DAY + 30 * SECOND, "energy_mj": 1_000}]


def test_fewer_days_by_size_are_fewer_days_for_late_rows_too(
    store: Store, taking: SampleWriter, clock: Clock, by_hand: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    days_with_a_minute_each(store, taking, clock)
    monkeypatch.setattr(jobs_module, "raw_days_within", lambda *_, **__: 3.0)
    jobs(store, taking, clock).delete_expired()
    assert (taking.raw_days, count(store, "gpu_sample")) == (3.0, 180)
    assert put(taking, batch(9, rows=late_sample(clock))).late_rows == 1


def test_late_data_does_not_shrink_minutes_whose_raw_went_for_the_size_when_the_file_is_small_again(
    store: Store, taking: SampleWriter, clock: Clock, by_hand: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 3: a bucket is rebuilt only while all its raw samples still exist."""
    days_with_a_minute_each(store, taking, clock)
    made = jobs(store, taking, clock)
    for days in (3.0, 7.0):  # past the size: four days go. An hour later the file is below it
        monkeypatch.setattr(jobs_module, "raw_days_within", lambda *_, kept=days, **__: kept)
        made.delete_expired()
    before = minutes_j(store)
    put(taking, batch(9, rows=late_sample(clock)))
    made.roll_up_all()
    assert minutes_j(store)[clock.us - 5 * DAY] >= before[clock.us - 5 * DAY]


def test_late_data_does_not_shrink_minutes_whose_raw_went_for_the_size_before_a_restart(
    store: Store, clock: Clock, by_hand: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub restarts with raw_days of wattmix.toml, though raw samples of fewer days are there."""
    with writing(store, clock, raw_days=7) as taking:
        days_with_a_minute_each(store, taking, clock)
        monkeypatch.setattr(jobs_module, "raw_days_within", lambda *_, **__: 3.0)
        jobs(store, taking, clock).delete_expired()
    before = minutes_j(store)
    with writing(store, clock, raw_days=7) as taking:
        put(taking, batch(9, rows=late_sample(clock)))
        jobs(store, taking, clock).roll_up_all()
    assert minutes_j(store)[clock.us - 5 * DAY] >= before[clock.us - 5 * DAY]


# Failures


@pytest.mark.parametrize(
    "problem", [duckdb.IOException("No space left"), pl.exceptions.ComputeError("frame"), RuntimeError("bug")], ids=repr
)
def test_a_job_that_fails_is_counted_told_and_tried_again(
    store: Store, taking: SampleWriter, clock: Clock, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, problem: Exception, by_hand: None,
) -> None:  # fmt: skip
    """Whatever failed: the thread of the jobs goes on, or nothing is rolled up until the hub is restarted."""

    def fail(*_: object, **__: object) -> int:
        raise problem

    put(taking, batch(1, rows=seconds(clock.us - 2 * MINUTE, 60)))
    made = jobs(store, taking, clock)
    with monkeypatch.context() as patched:
        patched.setattr(jobs_module, "roll_up", fail)
        made._attempt(made.roll_up_all)
    assert made.errors == 1
    assert str(problem) in caplog.text
    made._attempt(made.roll_up_all)
    assert (made.errors, len(minutes_j(store))) == (1, 1)


def test_the_thread_rolls_up_by_itself_and_ends_when_closed(store: Store, taking: SampleWriter, clock: Clock) -> None:
    put(taking, batch(1, rows=seconds(clock.us - 2 * MINUTE, 60)))
    made = jobs(store, taking, clock)
    wait_until(lambda: count(store, "gpu_minute") == 1, "a rollup")
    made.close()
    assert not made._thread.is_alive()


def test_a_clock_that_was_ahead_once_does_not_end_ingest(
    store: Store, taking: SampleWriter, clock: Clock, by_hand: None
) -> None:
    """Design section 7, clock steps: raw may go too early for it, but what comes after is taken again."""
    put(taking, batch(1, rows=seconds(clock.us - MINUTE, 10)))
    made = jobs(store, taking, clock)
    clock.us += 30 * DAY
    made.delete_expired()
    clock.us -= 30 * DAY
    assert put(taking, batch(2, rows=seconds(clock.us - 20 * SECOND, 10))).late_rows == 0
