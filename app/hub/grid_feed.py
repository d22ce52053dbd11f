"""What one grid provider is asked about one zone, and how its answer gets into the store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from app.config import Config
from app.grid_settings import GridSettings
from app.hub.polling import fault_of_ours
from app.store.database import Store
from app.store.grid import append_points
from app.store.grid_gaps import missed_hours
from app.store.source_states import GridState, read_grid_states, write_state
from collectors.grid import csv_file
from collectors.grid.provider import Absent, IntensityAnswer, Provider
from collectors.http.client import Http
from collectors.http.problem import OF_THE_TIME, SourceProblem

log = logging.getLogger("wattmix.grid")

# recent: the last hours, every period. past: two days again, as providers revise them. forecast: what is to come.
# missed: what an outage left out, of hub or provider, once the provider answers.
Job = Literal["recent", "past", "forecast", "missed"]
RECENT, PAST = timedelta(hours=6), timedelta(hours=48)
# What plans without access to older values still give.
_LAST_DAY = timedelta(hours=22)
# A file is read as a whole, whatever years it is about.
_FILE_YEARS = timedelta(days=50 * 366)
Span = tuple[datetime, datetime]
ABSENT = "absent"


class GridFeed:
    """provider: what is asked, or why nothing can be. added, answers, failures: counted since it was made."""

    def __init__(self, settings: GridSettings, zone: str, provider: Provider | Absent, state: GridState) -> None:
        self.settings = settings
        self.zone = zone
        self.provider = provider
        self.added = self.answers = self.failures = 0
        self._stored: dict[Job, datetime] = {}
        self.state = state if not isinstance(provider, Absent) else _absent(state, provider)
        if self.state.problem_kind == ABSENT and not isinstance(provider, Absent):
            self.state = replace(self.state, problem=None, problem_kind=None, advice=None)

    @property
    def jobs(self) -> tuple[Job, ...]:
        if isinstance(self.provider, Absent):
            return ()
        with_forecast = "forecast" in self.provider.capabilities
        return ("past", "recent", "forecast") if with_forecast else ("past", "recent")

    @property
    def misses_hours(self) -> bool:
        """Whether an outage leaves hours out: a file is always read as a whole."""
        return not isinstance(self.provider, Absent) and self.settings.provider != csv_file.NAME

    @property
    def is_ailing(self) -> bool:
        """Whether the provider has not answered yet, or not the last time: hours may be missed."""
        return self.answers == 0 or self.state.problem is not None

    def missed(self, store: Store, now: datetime) -> Span | None:
        """The hours that an outage left out, of the last `backfill_days`."""
        since = now - timedelta(days=self.settings.backfill_days)
        return missed_hours(store, self.settings.provider, self.zone, since, now)

    def ask(self, job: Job, now: datetime, missed: Span | None = None) -> IntensityAnswer | SourceProblem:
        """Ask the provider; never longer than its bounds allow. What a plan refuses is asked for in a smaller form.

        missed: of that job, the hours. The provider splits them into as many questions as it takes.
        """
        problem: SourceProblem | None = None
        for question in self._questions(job, now, missed):
            try:
                return question()
            except SourceProblem as refusal:
                problem = refusal
            except Exception as fault:
                problem = fault_of_ours(log, self.state.provider, f"zone {self.zone}, {job}", fault)
            if problem.kind != "no_access":
                return problem
        if problem is None:
            raise ValueError(f"{self.state.provider} has no {job}")
        return problem

    def record(
        self,
        store: Store,
        job: Job,
        result: IntensityAnswer | SourceProblem,
        now: datetime,
        retry_at: datetime | None = None,
    ) -> None:
        """Put what was answered into the store, and how it went. retry_at: when it is asked again after a problem."""
        problem = result if isinstance(result, SourceProblem) else result.problem
        if isinstance(result, IntensityAnswer):
            fetched_at = max(point.fetched_at for point in result.points)
            if self._stored.get(job) != fetched_at:
                self.added += append_points(store, result.points)
                self._stored[job] = fetched_at
        self.answers += problem is None
        self.failures += problem is not None
        if job == "missed":
            self._note_missed(problem)
        elif job == "forecast":
            missing = problem is not None and problem.kind not in OF_THE_TIME
            self.state = replace(self.state, forecast_problem=problem.what if missing and problem else None)
        else:
            self.state = self.state.after(problem, now, retry_at)
        write_state(store, self.state)

    def _note_missed(self, problem: SourceProblem | None) -> None:
        """How the provider is doing is told by the other jobs; hours that stay out are only logged."""
        if problem is not None:
            log.warning(
                "%s, zone %s: hours that an outage left out are not read: %s",
                self.state.provider,
                self.zone,
                problem.what,
            )

    def _questions(self, job: Job, now: datetime, missed: Span | None) -> Iterator[Callable[[], IntensityAnswer]]:
        """The question of a job, and then those that a smaller plan may still answer."""
        provider, zone = self.provider, self.zone
        if isinstance(provider, Absent):
            return
        if missed is not None:
            yield lambda: provider.history(zone, *missed)
            return
        if job == "forecast":
            yield lambda: provider.forecast(zone)
            return
        if self.settings.provider == csv_file.NAME:
            yield lambda: provider.history(zone, now - _FILE_YEARS, now + _FILE_YEARS)
            return
        if job == "past":
            yield lambda: provider.history(zone, now - PAST, now)
            yield lambda: provider.history(zone, now - _LAST_DAY, now)
        else:
            yield lambda: provider.history(zone, now - RECENT, now)
        yield lambda: provider.latest(zone)


def feeds_of(config: Config, store: Store, http: Http, zone: str | None = None) -> list[GridFeed]:
    """The feeds of wattmix.toml, in its order; only those of `zone`, if given."""
    states = read_grid_states(store)
    feeds = []
    for settings in config.grid:
        provider = settings.make(http)
        for name in settings.zones:
            if zone in (None, name):
                known = states.get((settings.provider, name), GridState(settings.provider, name))
                feeds.append(GridFeed(settings, name, provider, known))
    return feeds


def read_now(store: Store, config: Config, zone: str, http: Http) -> None:
    """Ask each provider of a zone about now and what is to come, as the hub does every period."""
    for feed in feeds_of(config, store, http, zone):
        write_state(store, feed.state)
        for job in feed.jobs:
            if job != "past":
                now = http.utc_now()
                feed.record(store, job, feed.ask(job, now), now)


def _absent(state: GridState, absent: Absent) -> GridState:
    advice = "set what it needs in its [[grid]] of wattmix.toml, or take the entry out"
    return replace(state, problem=absent.reason, problem_kind=ABSENT, advice=advice, retry_at=None)
