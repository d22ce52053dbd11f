"""What GuideLLM 0.3 to the newest write, and what of it counts: its units, its zeros, its own time of a token."""

from __future__ import annotations

import statistics
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from collectors.benchmark.fields import FieldError, GpuOverride
from collectors.benchmark.guidellm import parse, recognises
from collectors.benchmark.run import BenchmarkRun, Latency
from tests.collectors.benchmark.reports import (
    METRICS,
    NOTHING,
    STRATEGIES,
    benchmark,
    by_status,
    metrics,
    older,
    prerelease,
    report,
    summary,
)

GPU = GpuOverride("NVIDIA L40S", 2)

# 1,760,000,000.5 s of the epoch is 2025-10-09 08:53:20.5 UTC. e2e is written in seconds: 2.0 s is 2,000 ms.
RUN = BenchmarkRun(
    model="Qwen/Qwen3-8B", backend="openai_http", gpu_name="NVIDIA L40S", gpu_count=2, offered_requests_per_s=2.5,
    burstiness=1.0, max_concurrency=512, num_prompts=50, completed=40, duration_s=20.0,
    prompt_tokens=40 * 512, generated_tokens=5130,  # 40 x 128.25
    latency={
        "ttft": Latency(80.0, 20.0, {0.1: 40.0, 1.0: 41.0, 5.0: 80.0, 10.0: 80.0, 25.0: 80.0, 50.0: 75.0, 75.0: 80.0,
                                     90.0: 80.0, 95.0: 80.0, 99.0: 190.0, 99.9: 199.0, 100.0: 200.0}),
        "itl": Latency(15.1),
        "e2e": Latency(2000.0, 500.0, {0.1: 2000.0, 1.0: 2000.0, 5.0: 2000.0, 10.0: 2000.0, 25.0: 2000.0, 50.0: 1900.0,
                                       75.0: 2000.0, 90.0: 2000.0, 95.0: 3100.0, 99.0: 3400.0, 99.9: 3500.0,
                                       100.0: 3500.0}),
    },
    recorded_at=datetime(2025, 10, 9, 8, 53, 20, 500_000, tzinfo=UTC),
    source_file="benchmarks.json", source_index=0, source_line=1,
)  # fmt: skip


def parsed(*benchmarks: dict[str, Any], gpu: GpuOverride | None = GPU) -> list[BenchmarkRun]:
    return parse(report(*benchmarks), file="benchmarks.json", index=0, line=1, gpu=gpu)


def refused(*benchmarks: dict[str, Any], gpu: GpuOverride | None = GPU) -> str:
    with pytest.raises(FieldError) as problem:
        parsed(*benchmarks, gpu=gpu)
    assert len(str(problem.value)) < 250
    assert "planted-key" not in str(problem.value)
    return str(problem.value)


def test_every_fact_of_a_benchmark_is_kept() -> None:
    [run] = parsed(benchmark())
    assert run == replace(RUN, latency={**RUN.latency, "e2e": run.latency["e2e"]})
    assert run.latency["e2e"].quantiles_ms == pytest.approx(RUN.latency["e2e"].quantiles_ms)
    assert (run.latency["e2e"].mean_ms, run.latency["e2e"].std_ms) == (2000.0, 500.0)


@pytest.mark.parametrize("write", [older, prerelease])
def test_older_versions_give_the_same_run_from_other_places(write: Any) -> None:
    assert parsed(write()) == parsed(benchmark())
    assert recognises({"benchmarks": [write()]})


def test_a_report_of_a_sweep_is_a_run_for_each_strategy() -> None:
    runs = parse(report(*(benchmark(name) for name in STRATEGIES)), file="b.json", index=3, line=9, gpu=GPU)
    loads = {
        name: (run.offered_requests_per_s, run.burstiness, run.max_concurrency)
        for name, run in zip(STRATEGIES, runs, strict=True)
    }
    assert loads == {
        "poisson": (2.5, 1.0, 512),
        "constant": (4.0, None, None),
        "concurrent": (None, None, 8),
        "synchronous": (None, None, 1),
        "throughput": (None, None, 256),
    }
    assert [run.source_index for run in runs] == [3, 4, 5, 6, 7]
    assert {run.source_line for run in runs} == {9}
    assert len({run.run_id for run in runs}) == 5


def test_incomplete_and_errored_requests_were_sent_and_did_not_finish() -> None:
    totals = {"successful": 10, "incomplete": 4, "errored": 6, "total": 20}
    [run] = parsed(benchmark(metrics=metrics(request_totals=totals)))
    assert (run.num_prompts, run.completed) == (20, 10)


def test_a_benchmark_where_nothing_finished_has_no_tokens_and_no_latency() -> None:
    totals = {"successful": 0, "incomplete": 0, "errored": 5, "total": 5}
    nothing = {name: by_status(NOTHING) for name in METRICS if name != "request_totals"}
    [run] = parsed(benchmark(metrics={"request_totals": totals, **nothing}))
    assert (run.num_prompts, run.completed, run.total_tokens, run.latency) == (5, 0, 0, {})


def test_zeros_for_what_was_not_measured_are_missing() -> None:
    """Without streaming GuideLLM writes a TTFT and an inter-token latency of 0 ms."""
    [run] = parsed(
        benchmark(
            metrics=metrics(
                time_to_first_token_ms=by_status(summary(40, 0.0, 0.0)),
                inter_token_latency_ms=by_status(summary(5090, 0.0, 0.0)),
            )
        )
    )
    assert set(run.latency) == {"e2e"}


@pytest.mark.parametrize("name", ["time_to_first_token_ms", "inter_token_latency_ms", "request_latency"])
@pytest.mark.parametrize("written", [None, {}, {"successful": None}, {"successful": {"mean": None, "max": None}}])
def test_a_latency_that_is_not_there_is_missing(name: str, written: Any) -> None:
    metric = {"time_to_first_token_ms": "ttft", "inter_token_latency_ms": "itl", "request_latency": "e2e"}[name]
    [run] = parsed(benchmark(metrics=METRICS | {name: written}))
    assert {"ttft", "itl", "e2e"} - set(run.latency) == {metric}


def test_a_null_percentile_is_missing_and_the_median_stands_in_for_p50() -> None:
    measured = summary(40, 80.0, 200.0)
    measured["percentiles"] = {"p50": None, "p90": None, "p99": 190.0}
    [run] = parsed(benchmark(metrics=metrics(time_to_first_token_ms=by_status(measured))))
    assert run.latency["ttft"].quantiles_ms == {50.0: 80.0, 99.0: 190.0, 100.0: 200.0}


def test_time_per_output_token_is_not_ours_and_stays_out() -> None:
    """GuideLLM divides by all tokens and (since 0.4) starts at the request: 15.6 ms is in no run."""
    [run] = parsed(benchmark())
    assert "tpot" not in run.latency
    assert 15.6 not in [latency.mean_ms for latency in run.latency.values()]


def request(tokens: int | None, gap_ms: float | None) -> dict[str, Any]:
    return {"request_id": "r", "output_tokens": tokens, "inter_token_latency_ms": gap_ms, "output": "text"}


def with_requests(*kept: dict[str, Any], completed: int) -> dict[str, Any]:
    totals = {"successful": completed, "incomplete": 0, "errored": 0, "total": completed}
    return benchmark(
        metrics=metrics(request_totals=totals),
        requests={"successful": list(kept), "incomplete": [], "errored": [], "total": None},
    )


def test_tpot_is_read_off_the_requests_where_each_was_kept() -> None:
    """Gaps 10, 12, 14, 20 ms; the request of one token has none. p90 is at 0.9 x 3 = 2.7: 14 + 0.7 x (20 - 14)."""
    kept = [request(100, 14.0), request(2, 10.0), request(1, None), request(50, 20.0), request(7, 12.0)]
    [run] = parsed(with_requests(*kept, completed=5))
    tpot = run.latency["tpot"]
    assert (tpot.mean_ms, tpot.std_ms) == (14.0, statistics.pstdev([10, 12, 14, 20]))
    assert tpot.quantiles_ms == pytest.approx({50.0: 13.0, 90.0: 18.2, 95.0: 19.1, 99.0: 19.82, 100.0: 20.0})


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param([request(100, 14.0)], id="a sample of them"),
        pytest.param([request(100, 14.0)] * 3, id="more, those of the warm-up among them"),
        pytest.param([request(100, 14.0), request(100, None)], id="one without a time"),
        pytest.param([request(100, 14.0), request(None, 14.0)], id="one whose tokens nobody counted"),
        pytest.param([request(100, 0.0), request(100, 0.0)], id="no streaming"),
        pytest.param([request(1, 0.0), request(1, None)], id="one token each"),
    ],
)
def test_tpot_of_some_of_the_requests_is_no_tpot(kept: list[dict[str, Any]]) -> None:
    [run] = parsed(with_requests(*kept, completed=2))
    assert "tpot" not in run.latency


@pytest.mark.parametrize("started", [None, -1.0, 0.0])
def test_an_unknown_start_is_no_date(started: float | None) -> None:
    [run] = parsed(benchmark(start_time=started))
    assert run.recorded_at is None


def test_the_duration_is_end_minus_start_where_it_is_not_written() -> None:
    [run] = parsed(benchmark(duration=None))
    assert run.duration_s == 20.0


def test_keys_of_newer_versions_are_let_by() -> None:
    newer = benchmark(metrics=METRICS | {"turns": None, "slo_attainment": 0.9, "request_goodput": None}, extra=[1])
    assert parsed(newer) == parsed(benchmark())


def test_the_gpu_comes_from_the_command_line_and_only_from_there() -> None:
    assert refused(benchmark(), gpu=None).startswith("`gpu_name`: given None; accepted: a GPU name given with --gpu ")
    assert "--gpu-count (GuideLLM" in refused(benchmark(), gpu=GpuOverride("NVIDIA L4", None))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"type_": "embeddings_benchmark"}, "`benchmarks[0].type_`: given 'embeddings_benchmark'; accepted: \"gen"),
        ({"config": "planted"}, "`benchmarks[0].config`: given 'planted'; accepted: an object"),
        ({"config": {"strategy": {"type_": "replay"}, "backend": {"model": "m"}}},
         "`benchmarks[0].config.strategy.type_`: given 'replay'; accepted: synchronous, concurrent,"),
        ({"config": {"strategy": {"type_": "poisson", "rate": 0}, "backend": {"model": "m"}}},
         "`benchmarks[0].config.strategy.rate`: given 0; accepted: requests/s > 0"),
        ({"config": {"strategy": {"type_": "concurrent"}, "backend": {"model": "m"}}},
         "`benchmarks[0].config.strategy.streams`: given None; accepted: a whole number >= 1 (the key is missing)"),
        ({"config": {"strategy": STRATEGIES["poisson"], "backend": {"model": ""}}},
         "`benchmarks[0].config.backend.model`: given ''; accepted: printable text"),
        ({"config": {"strategy": STRATEGIES["poisson"], "backend": {"model": ["a", "b"]}}},
         "`benchmarks[0].config.backend.model`: given ['a', 'b']"),
        ({"duration": 0.0}, "`benchmarks[0].duration`: given 0.0; accepted: seconds > 0"),
        ({"duration": None, "end_time": 1.0}, "`benchmarks[0].end_time`: given 1.0; accepted: a time after start_time"),
        ({"duration": None, "end_time": None}, "`benchmarks[0].duration`: given None"),
        ({"start_time": 1e300}, "`benchmarks[0].start_time`: given 1e+300"),
        ({"start_time": "now"}, "`benchmarks[0].start_time`: given 'now'"),
        ({"metrics": metrics(request_totals={"successful": 0, "incomplete": 0, "errored": 0})},
         "`benchmarks[0].metrics.request_totals.successful`: given 0; accepted: a benchmark with at least one request"),
        ({"metrics": metrics(request_totals={"successful": -1, "incomplete": 0, "errored": 0})},
         "`benchmarks[0].metrics.request_totals.successful`: given -1"),
        ({"metrics": metrics(request_totals=None)},
         "`benchmarks[0].request_totals.successful`: given None; accepted: a whole number >= 0 (the key is missing)"),
        ({"metrics": metrics(prompt_token_count=None)},
         "`benchmarks[0].metrics.prompt_token_count.successful.total_sum`: given None"),
        ({"metrics": metrics(output_token_count=by_status(summary(40, -1.0, 0.0)))},
         "`benchmarks[0].metrics.output_token_count.successful.total_sum`: given -40.0"),
        ({"metrics": metrics(request_latency=by_status(summary(40, 2.0, 3.0, p99=-3.0)))},
         "`benchmarks[0].metrics.request_latency.successful.percentiles.p99`: given -3.0; accepted: milliseconds >= 0"),
        ({"metrics": metrics(request_latency=by_status(summary(40, 1e307, 1e307)))},
         "`benchmarks[0].metrics.request_latency.successful.mean`: given 1e+307"),
        ({"metrics": metrics(time_to_first_token_ms=by_status(summary(40, 2.0, 3.0, p50=float("inf"))))},
         "`benchmarks[0].metrics.time_to_first_token_ms.successful.percentiles.p50`: given inf"),
        ({"metrics": [1]}, "`benchmarks[0].metrics`: given [1]; accepted: an object"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_with_its_place(changes: dict[str, Any], told: str) -> None:
    assert refused(benchmark(**changes)).startswith(told)


def test_the_benchmark_that_is_broken_is_named() -> None:
    assert refused(benchmark(), benchmark(duration=0)).startswith("`benchmarks[1].duration`: given 0")


def test_requests_that_are_none_and_times_beyond_counting_are_refused() -> None:
    told = refused(with_requests(request(5, 1e308), request(5, 1e308), completed=2))
    assert told.startswith("`benchmarks[0].requests`: given 1e+308; accepted: milliseconds that can be averaged")
    odd = benchmark(metrics=metrics(request_totals={"successful": 1, "incomplete": 0, "errored": 0}))
    odd["requests"] = {"successful": ["text"]}
    assert refused(odd).startswith("`benchmarks[0].requests.successful`: given ['text']; accepted: a list of requests")


@pytest.mark.parametrize("benchmarks", [[], None, "text", [1], [benchmark(), 7]])
def test_a_report_without_benchmarks_is_refused(benchmarks: Any) -> None:
    with pytest.raises(FieldError, match=r"`benchmarks`: given .*; accepted: a list of at least one benchmark"):
        parse(report() | {"benchmarks": benchmarks}, file="b.json", index=0, line=1, gpu=GPU)


@pytest.mark.parametrize(
    ("candidate", "ours"),
    [
        (report(benchmark()), True),
        (report(), True),
        ({"benchmarks": [{"metrics": {"request_latency": {}}}]}, True),
        ({"benchmarks": [{"name": "BM_sort", "real_time": 3.0}]}, False),
        ({"benchmarks": [{"name": "test_x", "stats": {"mean": 1}}]}, False),
        ({"benchmarks": [{"metrics": [1]}, 3, None]}, False),
        ({"metadata": "guidellm_version", "benchmarks": "x"}, False),
        ([report(benchmark())], False),
        (None, False),
    ],
)
def test_a_report_is_known_by_what_is_in_it(candidate: object, ours: bool) -> None:
    assert recognises(candidate) is ours
