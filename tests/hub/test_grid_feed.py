"""What a smaller plan refuses is asked for in a smaller form, and a fault of ours is told without what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.grid_settings import GridSettings
from app.hub.grid_feed import GridFeed, Job
from app.store.database import Store
from app.store.source_states import GridState, read_grid_states
from collectors.grid.provider import Capability, IntensityAnswer
from collectors.http.problem import ProblemKind, SourceProblem
from tests.grid_points import value

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)
SECRET = "planted-key-3720"


@dataclass
class Plan:
    """A provider whose plan gives history of so many hours back, or none, and maybe forecasts."""

    hours: float
    forecasts: bool = False
    kind_of_refusal: ProblemKind = "no_access"
    fault: Exception | None = None
    asked: list[str] = field(default_factory=list)
    name = "electricity_maps"
    basis = "lifecycle"
    kind = "average"
    capabilities: frozenset[Capability] = frozenset({"latest", "history", "forecast"})

    def latest(self, zone: str) -> IntensityAnswer:
        self.asked.append("latest")
        return self._answer(self.hours >= 0)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        hours = (end - start) / timedelta(hours=1)
        self.asked.append(f"{hours:g} h")
        return self._answer(hours <= self.hours)

    def forecast(self, zone: str) -> IntensityAnswer:
        self.asked.append("forecast")
        return self._answer(self.forecasts)

    def _answer(self, allowed: bool) -> IntensityAnswer:
        if self.fault is not None:
            raise self.fault
        if not allowed:
            raise SourceProblem(self.kind_of_refusal, "HTTP 401: not in your plan", provider=self.name, where="DE")
        return IntensityAnswer((value(NOON - timedelta(hours=1), 60, 300),))


def feed_of(plan: Plan) -> GridFeed:
    settings = GridSettings.model_validate({"provider": plan.name, "zones": {"DE": "DE"}, "key": SECRET})
    return GridFeed(settings, "DE", plan, GridState(plan.name, "DE"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hours", "job", "asked"),
    [
        (100, "past", ["48 h"]),
        (24, "past", ["48 h", "22 h"]),
        (0, "past", ["48 h", "22 h", "latest"]),
        (24, "recent", ["6 h"]),
        (0, "recent", ["6 h", "latest"]),
    ],
)
def test_a_smaller_plan_is_asked_for_less(store: Store, hours: float, job: Job, asked: list[str]) -> None:
    feed = feed_of(plan := Plan(hours))
    feed.record(store, job, feed.ask(job, NOON), NOON)
    assert plan.asked == asked
    assert (feed.state.problem, feed.added) == (None, 1)


def test_a_plan_that_gives_nothing_is_told(store: Store) -> None:
    feed = feed_of(plan := Plan(-1))
    feed.record(store, "recent", feed.ask("recent", NOON), NOON, NOON + timedelta(minutes=1))
    assert plan.asked == ["6 h", "latest"]
    state = read_grid_states(store)["electricity_maps", "DE"]
    assert (state.problem_kind, state.problem) == ("no_access", "HTTP 401: not in your plan")
    assert (state.answered_at, state.retry_at) == (None, NOON + timedelta(minutes=1))


def test_only_a_plan_leads_to_a_smaller_question() -> None:
    feed = feed_of(plan := Plan(0, kind_of_refusal="failed"))
    assert isinstance(feed.ask("past", NOON), SourceProblem)
    assert plan.asked == ["48 h"]


def test_without_forecasts_all_else_is_well(store: Store) -> None:
    feed = feed_of(Plan(100))
    for job in feed.jobs:
        feed.record(store, job, feed.ask(job, NOON), NOON)
    state = read_grid_states(store)["electricity_maps", "DE"]
    assert (state.problem, state.answered_at, state.forecast_problem) == (None, NOON, "HTTP 401: not in your plan")
    feed.provider.forecasts = True  # type: ignore[union-attr]
    feed.record(store, "forecast", feed.ask("forecast", NOON), NOON)
    assert read_grid_states(store)["electricity_maps", "DE"].forecast_problem is None


def test_an_answer_that_is_only_kept_is_a_problem_and_its_values_count(store: Store) -> None:
    feed = feed_of(Plan(100))
    kept = SourceProblem("timed_out", "no answer within 10 s", provider="electricity_maps", where="DE")
    answer = IntensityAnswer((value(NOON - timedelta(hours=1), 60, 300),), age_s=60, problem=kept)
    feed.record(store, "recent", answer, NOON)
    assert (feed.added, feed.answers, feed.failures) == (1, 0, 1)
    assert (feed.state.problem, feed.state.answered_at) == ("no answer within 10 s", None)


@pytest.mark.parametrize("fault", [KeyError(SECRET), TypeError(f"unhashable {SECRET}"), RecursionError()])
def test_a_fault_of_ours_is_told_without_its_text(
    store: Store, fault: Exception, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[Any]
) -> None:
    feed = feed_of(Plan(100, fault=fault))
    feed.record(store, "recent", feed.ask("recent", NOON), NOON)
    state = read_grid_states(store)["electricity_maps", "DE"]
    assert state.problem == f"its answer could not be read ({type(fault).__name__})"
    assert SECRET not in f"{state} {caplog.text} {capsys.readouterr()}"
    assert type(fault).__name__ in caplog.text
