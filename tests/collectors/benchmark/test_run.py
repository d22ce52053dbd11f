"""A run is refused when no load test can have measured it, and is known by its facts, not by its file."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given

from collectors.benchmark.run import BenchmarkRun, Latency
from tests.collectors.benchmark.runs import RUN, benchmark_runs


def test_run_id_never_changes() -> None:
    # Stores in the field hold this very id: a change of the digest would import every run a second time.
    assert RUN.run_id == "bf44735ce8d9aa59"


@given(run=benchmark_runs())
def test_run_id_does_not_depend_on_the_source(run: BenchmarkRun) -> None:
    assert replace(run, source_file="elsewhere.json", source_index=7, source_line=99).run_id == run.run_id
    assert len(run.run_id) == 16
    assert set(run.run_id) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "change",
    [
        {"model": "m"}, {"backend": None}, {"gpu_name": "L4"}, {"gpu_count": 2}, {"offered_requests_per_s": None},
        {"burstiness": None}, {"max_concurrency": 1}, {"num_prompts": 201}, {"completed": 199}, {"duration_s": 19.0},
        {"prompt_tokens": 1}, {"generated_tokens": 1}, {"recorded_at": None}, {"latency": {}},
        {"latency": {"ttft": Latency(23.85, 3.69, {50.0: 23.66, 99.0: 31.65})}},
    ],
)  # fmt: skip
def test_run_id_changes_with_every_fact(change: dict[str, Any]) -> None:
    assert replace(RUN, **change).run_id != RUN.run_id


def test_run_id_is_of_the_moment_not_of_its_spelling() -> None:
    moment = RUN.recorded_at
    assert moment is not None
    in_madrid = moment.astimezone(timezone(timedelta(hours=2)))
    assert replace(RUN, recorded_at=in_madrid).run_id == RUN.run_id


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gpu_count", 0), ("duration_s", 0.0), ("duration_s", float("nan")), ("duration_s", float("inf")),
        ("offered_requests_per_s", 0.0), ("offered_requests_per_s", float("inf")), ("burstiness", 0.0),
        ("num_prompts", 0), ("completed", -1), ("completed", 201), ("prompt_tokens", -1), ("generated_tokens", -1),
        ("recorded_at", datetime(2025, 6, 10)),  # noqa: DTZ001 -- the fault under test
        ("latency", {"ttft": Latency(-1.0)}), ("latency", {"ttft": Latency(None, float("nan"))}),
        ("latency", {"ttft": Latency(None, None, {99.0: float("inf")})}),
        ("latency", {"ttft": Latency(None, None, {0.0: 1.0})}),
        ("latency", {"ttft": Latency(None, None, {101.0: 1.0})}),
    ],
)  # fmt: skip
def test_what_cannot_have_been_measured_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{field}` cannot be "):
        replace(RUN, **{field: value})


def test_a_latency_answers_with_the_percentile_asked_or_the_next_higher() -> None:
    latency = Latency(None, None, {50.0: 10.0, 95.0: 20.0, 99.9: 30.0})
    assert latency.at_least(95) == (95.0, 20.0)
    assert latency.at_least(99) == (99.9, 30.0)
    assert latency.at_least(1) == (50.0, 10.0)
    assert latency.at_least(100) is None


def test_arrivals_last_prompts_over_rate_and_no_time_when_all_come_at_once() -> None:
    assert RUN.arrival_s == 200 / 16
    assert replace(RUN, offered_requests_per_s=None).arrival_s == 0
