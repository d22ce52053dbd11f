"""Asks sources again and again on a thread of its own: whatever they do, nothing else waits for them."""

from __future__ import annotations

import logging
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

from app.config import Config
from app.store.database import Store
from collectors.http.client import Http
from collectors.http.problem import ProblemKind, SourceProblem

DAY_S, HOUR_S = 86_400.0, 3600.0
# What fails is asked again after 1, 2, 4 ... minutes, at most its period; later where the provider says so.
FIRST_RETRY_S = 60.0
LONGEST_PAUSE_S = 30.0
SHORTEST_PAUSE_S = 0.2
_CLOSING_S = 1.0


class Answer(Protocol):
    """problem: why it is not from just now, where a kept answer stands in."""

    @property
    def problem(self) -> SourceProblem | None: ...


Answered = TypeVar("Answered", bound=Answer)


@dataclass
class Task(Generic[Answered]):
    """What is asked again and again. what: in words. due: by the monotonic clock.

    ask: never longer than the bounds of the source allow, at the moment given; None where there is nothing to ask
    until another task wakes it. record: puts a result into the store; gets the moment, and after a problem when it is
    asked again. lasting: problems that are not over in a minute and are left alone for a day.
    """

    what: str
    every_s: float
    due: float
    ask: Callable[[datetime], Answered | SourceProblem | None]
    record: Callable[[Answered | SourceProblem, datetime, datetime | None], None]
    lasting: tuple[ProblemKind, ...] = ()
    wakes: Woken | None = None
    failures: int = 0

    def wait_s(self, problem: SourceProblem | None) -> float:
        """Until it is asked again. What is not lasting may be over in a minute."""
        self.failures = 0 if problem is None else self.failures + 1
        if problem is None:
            return self.every_s
        if problem.kind in self.lasting:
            return DAY_S
        longest_s = min(self.every_s, HOUR_S)
        return max(min(FIRST_RETRY_S * 2.0 ** (self.failures - 1), longest_s), problem.retry_after_s or 0.0)


@dataclass(frozen=True)
class Woken:
    """A task that is due with a good answer of another, when that was in trouble before it."""

    task: Task[Any]
    was_in_trouble: Callable[[], bool]


class Poller(ABC):
    """One thread; a source that hangs is left behind by its time-out.

    http: what asks the sources. now: the hub's clock; monotonic: never set.
    """

    name: str

    def __init__(
        self,
        store: Store,
        config: Config,
        http: Http | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = logging.getLogger(f"wattmix.{self.name}")
        self._tasks = list(self._begin(store, config, http or Http(), monotonic()))
        self._now = now
        self._monotonic = monotonic
        self._stop = threading.Event()
        self._recording = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    @abstractmethod
    def _begin(self, store: Store, config: Config, http: Http, now_s: float) -> Iterable[Task[Any]]:
        """Make the feeds, and what is asked of them from `now_s` on, by the monotonic clock."""

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

    def _run(self) -> None:
        while not self._stop.is_set():
            self.step()
            self._stop.wait(self.pause_s())

    def _attend(self, task: Task[Any]) -> None:
        try:
            result = task.ask(self._now())
        except Exception as fault:  # as in _take: what is to be asked may stand in the store
            self._wait_for_store(task, fault)
            return
        if result is None:
            task.due = math.inf
        else:
            self._take(task, result)

    def _take(self, task: Task[Any], result: Any) -> None:
        """Record an answer, and when it is asked for again."""
        problem = result if isinstance(result, SourceProblem) else result.problem
        wait_s = task.wait_s(problem)
        task.due, now = self._monotonic() + wait_s, self._now()
        woken = task.wakes.task if problem is None and task.wakes and task.wakes.was_in_trouble() else None
        with self._recording:
            if self._stop.is_set():
                return
            try:
                task.record(result, now, None if problem is None else now + timedelta(seconds=wait_s))
            except Exception as fault:  # the store may be full or busy: the provider is asked again
                self._wait_for_store(task, fault)
                return
        if woken is not None:
            woken.due = self._monotonic()

    def _wait_for_store(self, task: Task[Any], fault: Exception) -> None:
        task.due = self._monotonic() + FIRST_RETRY_S
        self._log.error("%s wait: %s", task.what, fault)


def fault_of_ours(log: logging.Logger, provider: str, where: str, fault: Exception) -> SourceProblem:
    """A fault while an answer was read, told without its text, which nobody has checked for keys."""
    log.error("%s, %s: %s while its answer was read", provider, where, type(fault))
    what = f"its answer could not be read ({type(fault).__name__})"
    return SourceProblem("malformed", what, provider=provider, where=where)
