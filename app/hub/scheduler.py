"""Writes the scheduled reports: each due time once, in order, whatever happened to the hub, its clock or the disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.config import Config
from app.report_settings import ReportSchedule
from app.reports.report import Account
from app.reports.runs import folder_for, waiting_run, write_run
from app.reports.schedule import due_between, next_due
from app.store.database import Store
from app.store.reports import ReportRun, add_runs, cursors, missing_of, open_runs, register, update_run

log = logging.getLogger("wattmix.reports")

# A step of the clock is noticed after so long.
LONGEST_PAUSE_S = 30.0
SHORTEST_PAUSE_S = 0.2
# A window waits so long for rollups and nodes that are behind, counted from when this process first saw its due time.
GRACE_S = 900.0
LOOK_AGAIN_S = 5.0
# Of due times that were missed, so many of a schedule are made up for.
MOST_MISSED = 400
# A run that fails is tried again after 1, 2, 4, 8, 16 and then every 30 minutes, for about three days.
FIRST_RETRY_S = 60.0
LONGEST_RETRY_S = 1800.0
MOST_ATTEMPTS = 150


@dataclass
class Pending:
    """A due time that is still to be written. Times are of the monotonic clock."""

    run: ReportRun
    schedule: ReportSchedule
    due_at: datetime
    first_seen: float
    next_try: float


class Scheduler:
    """One thread. A due time is recorded when it is first seen, so it outlives the hub until it is written."""

    def __init__(
        self,
        store: Store,
        config: Config,
        account: Account,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._config = config
        self._account = account
        self._now = now
        self._monotonic = monotonic
        self._stop = threading.Event()
        self._after: dict[str, datetime] = {}  # by schedule: up to when its due times are recorded
        self._pending: list[Pending] = []
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends after the report that is being written."""
        self._stop.set()
        self._thread.join()

    def step(self) -> None:
        """Record what has become due and write what is ready."""
        self._record_due()
        for pending in sorted(self._pending, key=lambda one: (one.due_at, one.schedule.name)):
            if self._stop.is_set():
                return
            if pending.next_try <= self._monotonic() and self._is_ready(pending):
                self._write(pending)

    def pause_s(self) -> float:
        """How long there is nothing to do; never so long that a step of the clock would go unnoticed."""
        waits = [pending.next_try - self._monotonic() for pending in self._pending]
        for schedule in self._config.report:
            after = self._after.get(schedule.name)
            due = next_due(schedule, after) if after else None
            if due is not None:
                waits.append((due - self._now()).total_seconds())
        return min(max(min(waits, default=LONGEST_PAUSE_S), SHORTEST_PAUSE_S), LONGEST_PAUSE_S)

    def _run(self) -> None:
        while not self._stop.is_set():
            pause_s = LONGEST_PAUSE_S
            try:
                self.step()
                pause_s = self.pause_s()
            except Exception as problem:  # the store may be full or busy: nothing is lost, it is all tried again
                log.error("scheduled reports wait: %s", problem)
            self._stop.wait(pause_s)

    def _record_due(self) -> None:
        now = self._now()
        if not self._after:
            self._take_over(now)
        for schedule in self._config.report:
            due = due_between(schedule, self._after[schedule.name], now)
            if due:
                skipped = len(due) - MOST_MISSED
                runs = [self._recorded(schedule, due_at, number >= skipped) for number, due_at in enumerate(due)]
                add_runs(self._store, runs)
                self._after[schedule.name] = due[-1]
                self._expect(runs)

    def _take_over(self, now: datetime) -> None:
        """What wattmix.toml and the last hub left to do."""
        register(self._store, [schedule.name for schedule in self._config.report], now)
        self._expect(open_runs(self._store))
        self._after = cursors(self._store)

    @staticmethod
    def _recorded(schedule: ReportSchedule, due_at: datetime, made_up_for: bool) -> ReportRun:
        run = waiting_run(schedule, due_at, due_at)
        if made_up_for:
            return run
        return replace(run, status="skipped", error=f"missed, and more than {MOST_MISSED} due times back")

    def _expect(self, runs: Iterable[ReportRun]) -> None:
        schedules = {schedule.name: schedule for schedule in self._config.report}
        seen = self._monotonic()
        self._pending += [
            Pending(run, schedules[run.schedule], run.due_at, seen, seen)
            for run in runs
            if run.status in ("waiting", "retrying") and run.due_at is not None
        ]

    def _is_ready(self, pending: Pending) -> bool:
        """Whether all of the window has come in; after the grace, what has come in is reported."""
        seen_for_s = self._monotonic() - pending.first_seen
        if seen_for_s >= GRACE_S or not missing_of(self._store, pending.run.window_from, pending.run.window_to):
            return True
        pending.next_try = self._monotonic() + min(LOOK_AGAIN_S, GRACE_S - seen_for_s)
        return False

    def _write(self, pending: Pending) -> None:
        folder = folder_for(pending.schedule, self._config, self._store.path)
        now = self._now()
        try:
            written = write_run(pending.run, pending.schedule, pending.due_at, self._account, folder, now)
            update_run(self._store, written)
        except Exception as problem:  # whatever it is: it is recorded with its reason and tried again
            self._failed(pending, problem, now)
        else:
            self._pending.remove(pending)

    def _failed(self, pending: Pending, problem: Exception, now: datetime) -> None:
        attempts = pending.run.attempts + 1
        given_up = attempts >= MOST_ATTEMPTS
        pending.run = replace(
            pending.run, status="failed" if given_up else "retrying", attempts=attempts, ran_at=now, error=str(problem)
        )
        pending.next_try = self._monotonic() + min(FIRST_RETRY_S * 2 ** (attempts - 1), LONGEST_RETRY_S)
        what = "given up" if given_up else "tried again later"
        log.error("report %s, due %s, %s: %s", pending.schedule.name, pending.due_at.isoformat(), what, problem)
        update_run(self._store, pending.run)
        if given_up:
            self._pending.remove(pending)
