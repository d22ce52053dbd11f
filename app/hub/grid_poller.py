"""Asks the grid providers, zone by zone, on a thread of its own: whatever they do, nothing else waits for them."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.config import Config
from app.hub.grid_feed import GridFeed, Job, feeds_of
from app.store.database import Store
from app.store.grid_states import write_state
from collectors.grid.provider import IntensityAnswer
from collectors.http.client import Http
from collectors.http.problem import ProblemKind, SourceProblem

log = logging.getLogger("wattmix.grid")

DAY_S, HOUR_S = 86_400.0, 3600.0
# What fails is asked again after 1, 2, 4 ... minutes, at most its period; later where the provider says so.
FIRST_RETRY_S = 60.0
LONGEST_PAUSE_S = 30.0
SHORTEST_PAUSE_S = 0.2
_CLOSING_S = 1.0
# Problems that are not over in a minute.
_LASTING: Mapping[Job, tuple[ProblemKind, ...]] = {"forecast": ("no_access",), "missed": ("no_access", "empty")}


@dataclass
class _Task:
    """What is asked again and again. due: by the monotonic clock; math.inf: when something else makes it so."""

    feed: GridFeed
    job: Job
    every_s: float
    due: float
    failures: int = 0


class GridPoller:
    """One thread; it begins at once with the last two days. A provider that hangs is left behind by its time-out.

    With the first answer of a provider, and the first after a problem, hours are read that were missed meanwhile.

    http: what asks the providers. now: the hub's clock; monotonic: one that is never set.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        http: Http | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._now = now
        self._monotonic = monotonic
        self._stop = threading.Event()
        self._recording = threading.Lock()
        self.feeds = feeds_of(config, store, http or Http())
        for feed in self.feeds:
            write_state(store, feed.state)
        self._tasks = [self._task(feed, job) for feed in self.feeds for job in feed.jobs]
        self._tasks += [_Task(feed, "missed", math.inf, math.inf) for feed in self.feeds if feed.misses_hours]
        self._thread = threading.Thread(target=self._run, name="grid", daemon=True)
        self._thread.start()

    @classmethod
    def from_config(cls, config: Config, store: Store) -> GridPoller | None:
        """None when no [[grid]] is configured."""
        return cls(store, config) if config.grid else None

    def close(self) -> None:
        """Ends at once; an answer that is still waited for is given up."""
        self._stop.set()
        with self._recording:
            pass  # what is being recorded is in the store now, and nothing comes after it
        self._thread.join(_CLOSING_S)

    def step(self) -> None:
        """Ask what is due, the longest due first."""
        for task in sorted(self._tasks, key=lambda one: one.due):
            if self._stop.is_set():
                return
            if task.due <= self._monotonic():
                self._attend(task)

    def pause_s(self) -> float:
        waits = [task.due - self._monotonic() for task in self._tasks]
        return min(max(min(waits, default=LONGEST_PAUSE_S), SHORTEST_PAUSE_S), LONGEST_PAUSE_S)

    def _task(self, feed: GridFeed, job: Job) -> _Task:
        every_s = feed.settings.poll_s
        now = self._monotonic()
        if job == "recent":
            return _Task(feed, job, every_s, now + every_s)  # the first reading of the past has the last hours, too
        return _Task(feed, job, max(every_s, DAY_S if job == "past" else HOUR_S), now)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.step()
            self._stop.wait(self.pause_s())

    def _attend(self, task: _Task) -> None:
        try:
            missed = task.feed.missed(self._store, self._now()) if task.job == "missed" else None
        except Exception as fault:  # as in _take
            self._wait_for_store(task, fault)
            return
        if task.job == "missed" and missed is None:
            task.due = math.inf
        else:
            self._take(task, task.feed.ask(task.job, self._now(), missed))

    def _take(self, task: _Task, result: IntensityAnswer | SourceProblem) -> None:
        """Record an answer, and when it is asked for again."""
        problem = result if isinstance(result, SourceProblem) else result.problem
        task.failures = task.failures + 1 if problem is not None else 0
        wait_s = task.every_s if problem is None else self._retry_s(task, problem)
        task.due = self._monotonic() + wait_s
        feed, now = task.feed, self._now()
        is_back = problem is None and task.job in ("past", "recent") and feed.is_ailing
        with self._recording:
            if self._stop.is_set():
                return
            try:
                retry_at = None if problem is None else now + timedelta(seconds=wait_s)
                feed.record(self._store, task.job, result, now, retry_at)
            except Exception as fault:  # the store may be full or busy: the provider is asked again
                self._wait_for_store(task, fault)
                return
        if is_back:
            for missed in (one for one in self._tasks if one.feed is feed and one.job == "missed"):
                missed.due = self._monotonic()

    def _wait_for_store(self, task: _Task, fault: Exception) -> None:
        task.due = self._monotonic() + FIRST_RETRY_S
        log.error("grid values of %s, zone %s, wait: %s", task.feed.state.provider, task.feed.zone, fault)

    @staticmethod
    def _retry_s(task: _Task, problem: SourceProblem) -> float:
        """A plan does not change within the hour, nor what a provider has of days ago; else it may be over in a
        minute."""
        if problem.kind in _LASTING.get(task.job, ()):
            return DAY_S
        longest_s = min(task.every_s, HOUR_S)
        return max(min(FIRST_RETRY_S * 2.0 ** (task.failures - 1), longest_s), problem.retry_after_s or 0.0)
