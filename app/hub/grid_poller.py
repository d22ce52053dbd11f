"""Asks the grid providers, zone by zone, beside everything else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from app.config import Config
from app.hub.grid_feed import GridFeed, Job, feeds_of
from app.hub.polling import DAY_S, HOUR_S, Poller, Task, Woken
from app.store.database import Store
from app.store.source_states import write_state
from collectors.grid.provider import IntensityAnswer
from collectors.http.client import Http
from collectors.http.problem import SourceProblem


class GridPoller(Poller):
    """It begins at once with the last two days.

    With the first answer of a provider, and the first after a problem, hours are read that were missed meanwhile.
    """

    name = "grid"

    def _begin(self, store: Store, config: Config, http: Http, now_s: float) -> Iterator[Task[IntensityAnswer]]:
        self.feeds = feeds_of(config, store, http)
        for feed in self.feeds:
            write_state(store, feed.state)
            yield from _tasks(store, feed, now_s)

    @classmethod
    def from_config(cls, config: Config, store: Store) -> GridPoller | None:
        """None when no [[grid]] is configured."""
        return cls(store, config) if config.grid else None


def _tasks(store: Store, feed: GridFeed, now_s: float) -> Iterator[Task[IntensityAnswer]]:
    missed = _missed(store, feed) if feed.misses_hours else None
    for job in feed.jobs:
        wakes = Woken(missed, lambda: feed.is_ailing) if missed is not None and job != "forecast" else None
        yield _task(store, feed, job, now_s, wakes)
    if missed is not None:
        yield missed


def _task(store: Store, feed: GridFeed, job: Job, now_s: float, wakes: Woken | None) -> Task[IntensityAnswer]:
    every_s, due = feed.settings.poll_s, now_s
    if job == "recent":
        due += every_s  # the first reading of the past has the last hours, too
    else:
        every_s = max(every_s, DAY_S if job == "past" else HOUR_S)
    return Task(
        _named(feed, job),
        every_s,
        due,
        ask=lambda now: feed.ask(job, now),
        record=lambda result, now, retry_at: feed.record(store, job, result, now, retry_at),
        lasting=("no_access",) if job == "forecast" else (),
        wakes=wakes,
    )


def _missed(store: Store, feed: GridFeed) -> Task[IntensityAnswer]:
    """Due only when another task says so. What a provider has of days ago does not change within the hour."""

    def ask(now: datetime) -> IntensityAnswer | SourceProblem | None:
        missed = feed.missed(store, now)
        return None if missed is None else feed.ask("missed", now, missed)

    return Task(
        _named(feed, "missed"),
        math.inf,
        math.inf,
        ask=ask,
        record=lambda result, now, retry_at: feed.record(store, "missed", result, now, retry_at),
        lasting=("no_access", "empty"),
    )


def _named(feed: GridFeed, job: Job) -> str:
    return f"grid values of {feed.state.provider}, zone {feed.zone}, {job}"
