"""The scheduler: every due window reported once, on the right local day, whatever the hub, its clock or its disk do."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.config import Config
from app.errors import DeliveryError
from app.hub import scheduler as scheduler_module
from app.hub.scheduler import FIRST_RETRY_S, GRACE_S, LONGEST_PAUSE_S, LONGEST_RETRY_S, MOST_ATTEMPTS, Scheduler
from app.store.database import Store
from app.store.reports import ReportRun, latest_runs, register
from tests.batches import HOUR, MINUTE, SECOND, Clock, batch, put, seconds, wait_until, writing
from tests.hub_process import HubProcess, running
from tests.reports.lines import Account

ONE_DAY, ONE_HOUR = timedelta(days=1), timedelta(hours=1)
START = datetime(2026, 2, 3, 12, tzinfo=UTC)


class Time:
    """The hub's clock, which may be set, and the monotonic one, which may not."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now
        self.seconds = 0.0

    def passes(self, time: timedelta) -> None:
        self.now += time
        self.seconds += time.total_seconds()


class Desk:
    """A store with scheduled reports, and hubs that come and go on it."""

    def __init__(self, store: Store, folder: Path, *reports: dict[str, Any]) -> None:
        self.store = store
        self.folder = folder
        self.time = Time()
        self.account = Account()
        self.configure(*reports)

    def configure(self, *reports: dict[str, Any]) -> None:
        daily = {"name": "daily", "kind": "fleet-day", "cron": "0 6 * * *", "tz": "Europe/Madrid"}
        self.config = Config.model_validate(
            {"reports": {"folder": str(self.folder)}, "report": [daily | report for report in reports]}
        )

    def hub(self) -> Scheduler:
        return Scheduler(
            self.store, self.config, self.account, now=lambda: self.time.now, monotonic=lambda: self.time.seconds
        )

    def runs(self, name: str = "daily") -> list[ReportRun]:
        """The oldest first."""
        return latest_runs(self.store, name, 10_000)[::-1]

    def statuses(self, name: str = "daily") -> list[str]:
        return [run.status for run in self.runs(name)]

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.csv")) if self.folder.exists() else []


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler works when a test calls `step`, not in its thread."""
    monkeypatch.setattr(Scheduler, "_run", lambda self: None)


@pytest.fixture
def desk(store: Store, tmp_path: Path, by_hand: None) -> Desk:
    return Desk(store, tmp_path / "out", {})


def days(*dates: str) -> list[str]:
    """File names of the daily report on these February days."""
    return [f"daily_2026-02-{day}_2026-02-{int(day) + 1:02}.csv" for day in dates]


# What is due


def test_a_new_schedule_starts_from_its_registration(desk: Desk) -> None:
    hub = desk.hub()
    hub.step()
    assert (desk.runs(), desk.files()) == ([], [])
    desk.time.passes(ONE_DAY)
    hub.step()
    assert desk.files() == days("03")


def test_a_due_time_is_written_once_and_recorded_with_what_was_written(desk: Desk) -> None:
    hub = desk.hub()
    hub.step()
    desk.time.passes(ONE_DAY)
    for _ in range(3):
        hub.step()
    [run] = desk.runs()
    assert desk.files() == [run.file] == days("03")
    content = (desk.folder / str(run.file)).read_bytes()
    assert run == ReportRun(
        schedule="daily", due_at=datetime(2026, 2, 4, 5, tzinfo=UTC), status="written",  # 06:00 in Madrid
        window_from=datetime(2026, 2, 2, 23, tzinfo=UTC), window_to=datetime(2026, 2, 3, 23, tzinfo=UTC), attempts=1,
        ran_at=desk.time.now, known_at=desk.time.now, folder=str(desk.folder), file=run.file,
        sha256=hashlib.sha256(content).hexdigest(), rows=1, coverage=0.995,
    )  # fmt: skip


def test_a_hub_that_was_down_over_three_due_times_makes_up_for_them_in_order(desk: Desk) -> None:
    desk.hub().step()
    desk.time.passes(3 * ONE_DAY)
    desk.hub().step()
    assert [period.label for period in desk.account.asked] == ["2026-02-03", "2026-02-04", "2026-02-05"]
    assert desk.files() == days("03", "04", "05")
    assert desk.statuses() == ["written"] * 3


def test_schedules_are_made_up_for_in_the_order_of_their_due_times(desk: Desk) -> None:
    desk.configure({}, {"name": "night", "cron": "0 0 * * *"})
    desk.hub().step()
    desk.time.passes(2 * ONE_DAY)
    desk.hub().step()
    assert [period.label for period in desk.account.asked] == ["2026-02-03", "2026-02-03", "2026-02-04", "2026-02-04"]
    assert (desk.statuses(), desk.statuses("night")) == (["written"] * 2, ["written"] * 2)


def test_a_clock_set_back_by_an_hour_repeats_nothing(desk: Desk) -> None:
    desk.time.now = datetime(2026, 2, 4, 4, 50, tzinfo=UTC)
    hub = desk.hub()
    hub.step()
    for _ in range(2):  # past 05:00, back before it, and past it again
        desk.time.passes(timedelta(minutes=20))
        hub.step()
        desk.time.now -= ONE_HOUR
        hub.step()
        desk.hub().step()  # nor does a hub that starts on the clock set back
        desk.time.passes(timedelta(minutes=40))
        hub.step()
    assert desk.statuses() == ["written"]
    assert len(desk.account.asked) == 1


def test_a_clock_set_forward_by_an_hour_reports_what_lies_between_once(desk: Desk) -> None:
    desk.configure({"name": "hours", "kind": "hourly", "cron": "*/15 * * * *", "window": "hour"})
    hub = desk.hub()
    hub.step()
    desk.time.now += ONE_HOUR
    hub.step()
    desk.time.now -= ONE_HOUR
    hub.step()
    desk.time.passes(ONE_HOUR)
    hub.step()
    due = [run.due_at for run in desk.runs("hours")]
    assert due == [START + number * timedelta(minutes=15) for number in (1, 2, 3, 4)]


def test_more_missed_due_times_than_are_made_up_for_are_recorded_as_skipped(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "MOST_MISSED", 3)
    desk.hub().step()
    desk.time.passes(5 * ONE_DAY)
    desk.hub().step()
    assert desk.statuses() == ["skipped", "skipped", "written", "written", "written"]
    assert {run.error for run in desk.runs()[:2]} == {"missed, and more than 3 due times back"}
    assert desk.files() == days("05", "06", "07")


def test_a_schedule_that_is_taken_out_ends_and_one_that_comes_back_starts_anew(desk: Desk) -> None:
    desk.hub().step()
    desk.configure()
    desk.hub().step()
    desk.time.passes(10 * ONE_DAY)
    desk.configure({})
    desk.hub().step()
    assert desk.runs() == []
    desk.time.passes(ONE_DAY)
    desk.hub().step()
    assert desk.files() == days("13")


def test_a_schedule_whose_time_is_changed_goes_on_from_its_last_due_time(desk: Desk) -> None:
    desk.hub().step()
    desk.time.passes(ONE_DAY)
    desk.hub().step()
    desk.configure({"cron": "0 18 * * *"})
    desk.hub().step()
    desk.time.passes(ONE_DAY)
    desk.hub().step()
    assert [run.due_at for run in desk.runs()] == [
        datetime(2026, 2, 4, 5, tzinfo=UTC), datetime(2026, 2, 4, 17, tzinfo=UTC),
    ]  # fmt: skip


@given(
    tz=st.sampled_from(["Europe/Madrid", "America/New_York", "Australia/Lord_Howe"]),
    spring=st.booleans(),
    cron=st.sampled_from(["0 6 * * *", "30 2 * * *", "45 1 * * *", "0 0 * * *"]),
    steps=st.lists(st.tuples(st.sampled_from(["run", "down", "back", "forward"]), st.integers(1, 30)), max_size=12),
)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_window_is_reported_once_on_its_local_day_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, by_hand: None, tz: str, spring: bool, cron: str,
    steps: list[tuple[str, int]],
) -> None:  # fmt: skip
    """A hub that runs, is down for hours and has its clock set, over a change of the clocks in three zones."""
    folder = tmp_path_factory.mktemp("desk")
    store = Store.open(folder / "s.duckdb")
    desk = Desk(store, folder / "out", {"cron": cron, "tz": tz})
    desk.time.now = begin = datetime(2026, 3, 5, 12, tzinfo=UTC) if spring else datetime(2026, 10, 1, 12, tzinfo=UTC)
    hub = desk.hub()
    hub.step()
    latest = begin
    for what, hours in (*steps, ("run", 30), ("down", 30)):
        if what == "down":
            desk.time.passes(hours * ONE_HOUR)
            hub = desk.hub()
        elif what == "run":
            for _ in range(hours):
                desk.time.passes(ONE_HOUR)
                hub.step()
        else:
            desk.time.now += ONE_HOUR * (1 if what == "forward" else -1)
        hub.step()
        latest = max(latest, desk.time.now)
    zone = ZoneInfo(tz)
    first, last = (moment.astimezone(zone).date() for moment in (begin, latest))
    reported = [run.window_from.astimezone(zone).date() for run in desk.runs()]
    assert reported == [first + number * ONE_DAY for number in range(len(reported))]
    assert (last - first).days - len(reported) in (0, 1)
    assert desk.statuses() == ["written"] * len(reported)
    assert [period.label for period in desk.account.asked] == [day.isoformat() for day in reported]
    assert len(desk.files()) == len(reported)
    store.close()


# What a window waits for


def test_a_window_waits_for_its_rollups_and_then_for_no_longer_than_the_grace(desk: Desk, store: Store) -> None:
    hub = desk.hub()
    hub.step()
    last_us = int(datetime(2026, 2, 3, 22, 59, tzinfo=UTC).timestamp()) * SECOND  # the window's last minute
    with writing(store, Clock(last_us + HOUR)) as taking:
        put(taking, batch(1, rows=seconds(last_us, 60)))
    desk.time.now = datetime(2026, 2, 4, 5, 0, 1, tzinfo=UTC)
    hub.step()
    assert desk.statuses() == ["waiting"]
    desk.time.passes(timedelta(seconds=GRACE_S - 1))
    hub.step()
    assert (desk.statuses(), desk.files()) == (["waiting"], [])
    desk.time.passes(timedelta(seconds=1))
    hub.step()
    assert (desk.statuses(), desk.files()) == (["written"], days("03"))


def test_a_window_is_written_as_soon_as_its_rollups_are_there(desk: Desk, store: Store) -> None:
    hub = desk.hub()
    hub.step()
    last_us = int(datetime(2026, 2, 3, 22, 59, tzinfo=UTC).timestamp()) * SECOND
    with writing(store, Clock(last_us + HOUR)) as taking:
        put(taking, batch(1, rows=seconds(last_us, 60)))
    desk.time.now = datetime(2026, 2, 4, 5, 0, 1, tzinfo=UTC)
    hub.step()
    assert hub.pause_s() <= 5.0
    with store.transaction() as connection:
        connection.execute("DELETE FROM dirty_minute")
    desk.time.passes(timedelta(seconds=5))
    hub.step()
    assert desk.statuses() == ["written"]


def test_one_window_that_waits_holds_up_no_other(desk: Desk, store: Store) -> None:
    desk.hub().step()
    late_us = int(datetime(2026, 2, 3, 12, tzinfo=UTC).timestamp()) * SECOND
    with writing(store, Clock(late_us + MINUTE)) as taking:
        put(taking, batch(1, rows=seconds(late_us, 60)))
    desk.time.passes(2 * ONE_DAY)
    hub = desk.hub()
    hub.step()
    assert desk.statuses() == ["waiting", "written"]
    desk.hub().step()  # a restart begins the wait anew, and forgets neither
    assert desk.statuses() == ["waiting", "written"]
    desk.time.passes(timedelta(seconds=GRACE_S))
    hub.step()
    assert desk.statuses() == ["written", "written"]


# Failures


def full() -> DeliveryError:
    return DeliveryError("/r/x.csv: cannot be written: No space left on device.")


def test_an_hour_of_a_full_disk_loses_nothing(desk: Desk) -> None:
    desk.configure({"name": "hours", "kind": "hourly", "cron": "*/15 * * * *", "window": "hour"})
    hub = desk.hub()
    hub.step()
    desk.account.problem = full()
    for _ in range(60):
        desk.time.passes(timedelta(minutes=1))
        hub.step()
    assert desk.statuses("hours") == ["retrying"] * 4
    assert {run.error for run in desk.runs("hours")} == {str(full())}
    desk.account.problem = None
    for _ in range(30):
        desk.time.passes(timedelta(minutes=1))
        hub.step()
    assert desk.statuses("hours") == ["written"] * 6
    assert [run.due_at for run in desk.runs("hours")] == [
        START + number * timedelta(minutes=15) for number in range(1, 7)
    ]
    # 12:15 was tried at 15, 16, 18, 22, 30 and 46 past, and then 30 minutes later, at 13:16
    assert desk.runs("hours")[0].attempts == 7
    assert desk.runs("hours")[0].error is None


def test_a_run_that_fails_for_ever_is_given_up_after_about_three_days(desk: Desk) -> None:
    desk.configure({"cron": "0 6 4 2 *"})  # once a year
    hub = desk.hub()
    hub.step()
    desk.account.problem = full()
    desk.time.passes(ONE_DAY)
    hub.step()
    began = desk.time.seconds
    while desk.statuses() == ["retrying"]:
        desk.time.passes(timedelta(seconds=LONGEST_RETRY_S))
        hub.step()
    [run] = desk.runs()
    assert (run.status, run.attempts, run.error) == ("failed", MOST_ATTEMPTS, str(full()))
    assert (desk.time.seconds - began) / 3600 == 74.5  # 149 attempts, half an hour apart
    desk.account.problem = None
    hub.step()
    desk.hub().step()
    assert desk.statuses() == ["failed"]


def test_a_hub_that_is_restarted_goes_on_with_what_failed(desk: Desk) -> None:
    desk.hub().step()
    desk.account.problem = full()
    desk.time.passes(ONE_DAY)
    desk.hub().step()
    assert desk.statuses() == ["retrying"]
    desk.account.problem = None
    desk.hub().step()
    [run] = desk.runs()
    assert (run.status, run.attempts, run.file) == ("written", 2, days("03")[0])


@pytest.mark.parametrize("problem", [RuntimeError("a bug"), OSError(errno.EIO, "Input/output error")], ids=repr)
def test_whatever_fails_is_told_recorded_and_tried_again(
    desk: Desk, problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    hub = desk.hub()
    hub.step()
    desk.account.problem = problem
    desk.time.passes(ONE_DAY)
    hub.step()
    assert f"report daily, due 2026-02-04T05:00:00+00:00, tried again later: {problem}" in caplog.text
    [run] = desk.runs()
    assert (run.status, run.error) == ("retrying", str(problem))
    desk.account.problem = None
    desk.time.passes(timedelta(seconds=FIRST_RETRY_S - 1))
    hub.step()
    assert desk.statuses() == ["retrying"]
    desk.time.passes(timedelta(seconds=1))
    hub.step()
    assert desk.statuses() == ["written"]


def test_a_crash_between_file_and_record_leads_to_the_same_file_recorded_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    desk.hub().step()
    desk.time.passes(ONE_DAY)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(scheduler_module, "update_run", die)
        desk.hub().step()
    first = (desk.folder / days("03")[0]).read_bytes()
    assert desk.statuses() == ["waiting"]
    desk.hub().step()
    assert (desk.folder / days("03")[0]).read_bytes() == first
    assert (desk.files(), desk.statuses()) == (days("03"), ["written"])


@pytest.mark.parametrize("failing", ["add_runs", "update_run", "register", "open_runs"])
def test_a_store_that_cannot_be_written_for_a_while_loses_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The disk that is full may be the store's own."""
    desk.hub().step()
    desk.time.passes(ONE_DAY)
    hub = desk.hub()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(scheduler_module, failing, fail)
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                hub.step()
            desk.time.passes(timedelta(minutes=5))
    hub.step()
    desk.time.passes(timedelta(hours=1))
    hub.step()
    assert (desk.files(), desk.statuses()) == (days("03"), ["written"])


# The thread


def test_it_sleeps_until_the_next_due_time_but_never_long(desk: Desk) -> None:
    hub = desk.hub()
    hub.step()
    assert hub.pause_s() == LONGEST_PAUSE_S
    desk.time.now = datetime(2026, 2, 4, 4, 59, 48, tzinfo=UTC)
    assert hub.pause_s() == pytest.approx(12.0)
    desk.time.now = datetime(2026, 2, 4, 5, tzinfo=UTC)
    assert 0 < hub.pause_s() < 1
    desk.configure()
    assert desk.hub().pause_s() == LONGEST_PAUSE_S


def scheduled(store: Store, folder: Path, now: Callable[[], datetime]) -> Scheduler:
    config = Config.model_validate(
        {"reports": {"folder": str(folder)}, "report": [{"name": "daily", "kind": "fleet-day", "cron": "0 6 * * *"}]}
    )
    return Scheduler(store, config, Account(), now=now)


def test_the_thread_writes_what_is_due_by_itself_and_ends_when_closed(store: Store, tmp_path: Path) -> None:
    made = scheduled(store, tmp_path / "out", lambda: START)
    wait_until(lambda: made._after, "the schedule to be registered")
    made.close()
    assert not made._thread.is_alive()
    made = scheduled(store, tmp_path / "out", lambda: START + ONE_DAY)
    wait_until(lambda: [run.status for run in latest_runs(store, "daily", 9)] == ["written"], "the report")
    made.close()
    assert [path.name for path in (tmp_path / "out").glob("*.csv")] == ["daily_2026-02-03_2026-02-04.csv"]


def test_a_thread_that_fails_says_so_and_goes_on(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scheduler_module, "LONGEST_PAUSE_S", 0.01)
    failed: list[int] = []

    def once(*given: Any) -> None:
        if not failed:
            failed.append(1)
            raise RuntimeError("the store is full")
        return registered(*given)

    registered = scheduler_module.register
    monkeypatch.setattr(scheduler_module, "register", once)
    made = scheduled(store, tmp_path / "out", lambda: START)
    wait_until(lambda: made._after, "the second attempt")
    made.close()
    assert "scheduled reports wait: the store is full" in caplog.text


@contextmanager
def opened(db: Path) -> Iterator[Store]:
    store = Store.open(db)
    try:
        yield store
    finally:
        store.close()


@pytest.mark.parametrize("kills", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_real_hub_makes_up_for_three_missed_due_times_once(tmp_path: Path, kills: int) -> None:
    """Killed and started again, it finds them recorded."""
    db, out = tmp_path / "s.duckdb", tmp_path / "out"
    (tmp_path / "wattmix.toml").write_text(
        "[reports]\nfolder = 'out'\n[[report]]\nname = 'daily'\nkind = 'fleet-day'\ncron = '0 0 * * *'\n"
    )
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with opened(db) as store:
        register(store, ["daily"], midnight - timedelta(days=2, minutes=1))

    def written(hub: HubProcess) -> list[str]:
        [shown] = requests.get(f"{hub.address}/api/v1/reports", timeout=10).json()["reports"]
        return [run["file"] for run in shown["runs"] if run["status"] == "written"]

    for _ in range(kills + 1):
        with running(["serve", "--db", str(db)], tmp_path) as hub:
            wait_until(lambda hub=hub: len(written(hub)) >= 3, "three reports")
            hub.process.kill()
            hub.process.wait()
    with opened(db) as store:
        runs = latest_runs(store, "daily", 10)
    due = {run.due_at for run in runs}
    assert {midnight - number * ONE_DAY for number in (0, 1, 2)} <= due
    assert len(due) == len(runs) in (3, 4)  # midnight may pass meanwhile
    assert {run.file for run in runs} == {path.name for path in out.glob("*.csv")}
    assert all(run.attempts == 1 for run in runs)
