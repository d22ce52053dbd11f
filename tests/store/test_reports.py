"""Schedules and runs in the store: each due time once, what a new wattmix.toml changes, what a window waits for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.store.database import Store
from app.store.reports import (
    ReportRun,
    add_runs,
    cursors,
    folder_of,
    latest_runs,
    missing_of,
    open_runs,
    register,
    update_run,
)
from app.store.rollup import roll_up
from tests.batches import DAY, HOUR, MINUTE, SECOND, T0, Clock, at, batch, count, put, seconds, writing

START = datetime(2026, 2, 3, 5, tzinfo=UTC)
ONE_DAY = timedelta(days=1)


def run(day: int = 0, schedule: str = "daily", **said: Any) -> ReportRun:
    due = START + day * ONE_DAY
    known = {"schedule": schedule, "due_at": due, "status": "waiting", "window_from": due - ONE_DAY, "window_to": due}
    return ReportRun(**known | said)


def written(day: int = 0, **said: Any) -> ReportRun:
    known = {
        "status": "written", "attempts": 2, "ran_at": START + ONE_DAY, "known_at": START + ONE_DAY, "folder": "/r",
        "file": f"daily_{day}.csv", "sha256": "ab", "rows": 12, "coverage": 0.99,
    }  # fmt: skip
    return replace(run(day), **known | said)


def test_a_schedules_due_times_count_from_its_registration_on(store: Store) -> None:
    register(store, ["daily", "hourly"], START)
    register(store, ["daily", "hourly"], START + ONE_DAY)
    assert cursors(store) == {"daily": START, "hourly": START}
    add_runs(store, [run(1), run(2)])
    assert cursors(store) == {"daily": START + 2 * ONE_DAY, "hourly": START}


def test_each_due_time_is_in_the_store_once(store: Store) -> None:
    add_runs(store, [run(0), run(1)])
    add_runs(store, [run(1), run(2), run(1, schedule="other")])
    assert [(one.schedule, one.due_at) for one in open_runs(store)] == [
        ("daily", START), ("daily", START + ONE_DAY), ("other", START + ONE_DAY), ("daily", START + 2 * ONE_DAY),
    ]  # fmt: skip


def test_runs_by_hand_are_each_kept(store: Store) -> None:
    add_runs(store, [written(due_at=None)])
    add_runs(store, [written(due_at=None)])
    assert count(store, "report_run") == 2
    assert open_runs(store) == []


def test_a_run_is_replaced_by_what_became_of_it(store: Store) -> None:
    add_runs(store, [run(0), run(1)])
    update_run(store, run(0, status="retrying", attempts=1, ran_at=START, error="full"))
    assert [one.status for one in open_runs(store)] == ["retrying", "waiting"]
    update_run(store, written(0))
    update_run(store, written(0))
    assert latest_runs(store, "daily", 10) == [run(1), written(0)]
    assert [one.due_at for one in open_runs(store)] == [START + ONE_DAY]


def test_a_schedule_that_is_taken_out_is_closed_and_starts_anew_when_it_comes_back(store: Store) -> None:
    register(store, ["daily"], START)
    add_runs(store, [written(1), run(2)])
    register(store, [], START + 2 * ONE_DAY)
    assert cursors(store) == {}
    assert open_runs(store) == []
    newest = latest_runs(store, "daily", 1)[0]
    assert (newest.status, newest.error) == ("skipped", "the schedule was taken out of wattmix.toml")
    register(store, ["daily"], START + 30 * ONE_DAY)
    assert cursors(store) == {"daily": START + 30 * ONE_DAY}


def test_the_latest_runs_are_the_newest_first_and_no_more(store: Store) -> None:
    add_runs(store, [written(day) for day in range(5)])
    assert [one.file for one in latest_runs(store, "daily", 3)] == ["daily_4.csv", "daily_3.csv", "daily_2.csv"]
    assert latest_runs(store, "other", 3) == []


def test_only_files_that_were_written_have_a_folder(store: Store) -> None:
    add_runs(store, [written(0), run(1)])
    assert folder_of(store, "daily", "daily_0.csv") == "/r"
    for schedule, file in (("other", "daily_0.csv"), ("daily", "../daily_0.csv"), ("daily", ""), ("daily", "%")):
        assert folder_of(store, schedule, file) is None


# What a window waits for


def rolled_up(store: Store, now_us: int) -> None:
    while roll_up(store, now_us, oldest_raw_us=0, oldest_minute_us=0):
        pass


def test_a_window_waits_for_its_minutes_and_for_nodes_that_have_not_passed_its_end(store: Store) -> None:
    start, end = at(T0), at(T0 + HOUR)
    assert missing_of(store, start, end) == 0  # nothing is known of it
    with writing(store, Clock(T0 + HOUR)) as taking:
        put(taking, batch(1, rows=seconds(T0 + HOUR - MINUTE, 60)))
        assert missing_of(store, start, end) == 1  # the last minute; its end is the node's newest sample
        put(taking, batch(2, rows=seconds(T0 + HOUR, 10)))
    rolled_up(store, T0 + HOUR + 5 * MINUTE)
    assert missing_of(store, start, end) == 0


def test_a_node_that_is_behind_is_waited_for_and_one_that_left_before_is_not(store: Store) -> None:
    with writing(store, Clock(T0 + HOUR)) as taking:
        put(taking, batch(1, node="behind", rows=seconds(T0 + 20 * MINUTE, 60)))
        put(taking, batch(1, node="gone", rows=seconds(T0 - 2 * MINUTE, 60)))
    rolled_up(store, T0 + HOUR)
    assert missing_of(store, at(T0), at(T0 + HOUR)) == 2  # and the use of the hour, which is built whole after its end
    assert missing_of(store, at(T0), at(T0 + HOUR - MINUTE)) == 1  # an hour that outlasts the window is not waited for
    rolled_up(store, T0 + HOUR + 16 * SECOND)
    assert missing_of(store, at(T0), at(T0 + HOUR)) == 1
    assert missing_of(store, at(T0 + DAY), at(T0 + DAY + HOUR)) == 0
    with writing(store, Clock(T0 + HOUR + MINUTE)) as taking:
        put(taking, batch(2, node="behind", rows=seconds(T0 + HOUR - SECOND, 2)))
    assert missing_of(store, at(T0), at(T0 + HOUR)) == 1  # it has passed the end, its last minute is not rolled up
    rolled_up(store, T0 + HOUR + 5 * MINUTE)
    assert missing_of(store, at(T0), at(T0 + HOUR)) == 0
