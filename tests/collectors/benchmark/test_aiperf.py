"""What AIPerf and GenAI-Perf write, and what of it counts: what they call inter-token latency is our TPOT."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from collectors.benchmark.aiperf import parse, recognises
from collectors.benchmark.fields import FieldError, GpuOverride
from collectors.benchmark.run import BenchmarkRun, Latency
from tests.collectors.benchmark.profiles import AIPERF, CONFIG, GENAI_PERF, STIMULUS_CONFIG, metric, without

GPU = GpuOverride("NVIDIA L40S", 2)

RUN = BenchmarkRun(
    model="Qwen/Qwen3-8B", backend="chat", gpu_name="NVIDIA L40S", gpu_count=2, offered_requests_per_s=2.5,
    burstiness=1.0, max_concurrency=64, num_prompts=43, completed=40, duration_s=20.0, prompt_tokens=20_480,
    generated_tokens=5130,
    latency={
        "ttft": Latency(80.0, 20.0, {1.0: 40.0, 50.0: 75.0, 99.0: 190.0, 100.0: 200.0}),
        "tpot": Latency(15.0, 1.5, {50.0: 14.9, 99.0: 21.0, 100.0: 22.0}),
        "itl": Latency(14.5, 6.0, {50.0: 14.0, 99.0: 60.0, 100.0: 90.0}),
        "e2e": Latency(2000.0, 500.0, {50.0: 1900.0, 99.0: 3400.0, 100.0: 3500.0}),
    },
    recorded_at=datetime(2025, 10, 9, 8, 53, 20, 500_000, tzinfo=UTC),
    source_file="profile.json", source_index=2, source_line=7,
)  # fmt: skip


def parsed(result: dict[str, Any], gpu: GpuOverride | None = GPU) -> BenchmarkRun:
    [run] = parse(result, file="profile.json", index=2, line=7, gpu=gpu)
    return run


def refused(result: dict[str, Any], gpu: GpuOverride | None = GPU) -> str:
    with pytest.raises(FieldError) as problem:
        parsed(result, gpu)
    assert len(str(problem.value)) < 250
    assert "planted-key" not in str(problem.value)
    return str(problem.value)


def test_every_fact_of_an_aiperf_result_is_kept() -> None:
    assert parsed(AIPERF) == RUN


def test_a_genai_perf_result_is_the_same_test_without_what_it_does_not_write() -> None:
    """Its duration is 40 requests / 2 requests/s, its tokens 40 x 512 and 40 x 128.25; it knows no failure."""
    expected = replace(
        RUN,
        offered_requests_per_s=None,
        burstiness=None,
        max_concurrency=8,
        num_prompts=40,
        recorded_at=None,
        latency={name: latency for name, latency in RUN.latency.items() if name != "itl"},
    )
    assert parsed(GENAI_PERF) == expected


def test_a_mean_times_a_count_is_the_whole_number_that_it_was() -> None:
    # 3 requests of 7, 8 and 8 tokens: 23 / 3 = 7.666..., and 3 x 7.666... is 23 but for the last bit.
    three = GENAI_PERF | {"request_count": metric("count", 3.0), "output_sequence_length": metric("tokens", 23 / 3)}
    assert parsed(three).generated_tokens == 23


@pytest.mark.parametrize(
    ("unit", "factor"), [("ms", 1.0), ("us", 1000.0), ("ns", 1_000_000.0), ("sec", 0.001), ("s", 0.001)]
)
def test_latencies_and_durations_are_read_in_their_unit(unit: str, factor: float) -> None:
    run = parsed(
        AIPERF
        | {
            "time_to_first_token": metric(unit, 80.0 * factor, p99=190.0 * factor),
            "benchmark_duration": metric(unit, 20_000.0 * factor),
        }
    )
    assert run.latency["ttft"].mean_ms == pytest.approx(80.0)
    assert run.latency["ttft"].quantiles_ms == {99.0: pytest.approx(190.0)}
    assert run.duration_s == pytest.approx(20.0)


def test_without_streaming_only_the_end_was_seen() -> None:
    """GenAI-Perf then writes the latency of the whole request as the time to its first token."""
    silent = STIMULUS_CONFIG | {"endpoint": {"type": "chat", "streaming": False}}
    run = parsed(GENAI_PERF | {"time_to_first_token": GENAI_PERF["request_latency"], "input_config": silent})
    assert set(run.latency) == {"e2e"}


def test_a_null_or_missing_percentile_is_missing() -> None:
    run = parsed(AIPERF | {"time_to_first_token": metric("ms", 80.0, p50=None, p99=190.0, std=None)})
    assert run.latency["ttft"] == Latency(80.0, None, {99.0: 190.0})


@pytest.mark.parametrize("key", ["p0", "p101", "p999", "adj_p99", "min", "count", "sum", "p٩٩"])
def test_what_is_no_percentile_is_let_by(key: str) -> None:
    measured = AIPERF["time_to_first_token"]
    assert parsed(AIPERF | {"time_to_first_token": measured | {key: 7.0}}) == RUN


@pytest.mark.parametrize(
    ("name", "lost"),
    [("time_to_first_token", "ttft"), ("inter_token_latency", "tpot"), ("inter_chunk_latency", "itl"),
     ("request_latency", "e2e")],
)  # fmt: skip
@pytest.mark.parametrize("written", [None, {"unit": "ms"}, {"unit": "ms", "avg": None, "p99": None}])
def test_a_latency_that_is_not_there_is_missing(name: str, lost: str, written: Any) -> None:
    assert set(RUN.latency) - set(parsed(AIPERF | {name: written}).latency) == {lost}


def test_reasoning_tokens_are_generated_tokens() -> None:
    """`total_osl` counts them and `total_output_tokens` (4,000 here) does not."""
    assert parsed(AIPERF).generated_tokens == 5130


@pytest.mark.parametrize(
    ("changes", "num_prompts"),
    [
        ({"error_request_count": None}, 43),
        ({"error_request_count": None, "error_summary": []}, 40),
        ({"error_request_count": None, "error_summary": None}, 40),
        ({"error_request_count": None, "error_summary": [{"count": 81}, {"count": 3}]}, 124),
        ({"error_request_count": metric("requests", 5.0)}, 45),
    ],
)
def test_failed_requests_are_counted_by_the_metric_or_else_by_the_summary(
    changes: dict[str, Any], num_prompts: int
) -> None:
    run = parsed(AIPERF | changes)
    assert (run.num_prompts, run.completed) == (num_prompts, 40)


def test_a_test_in_which_every_request_failed_is_a_run_without_tokens() -> None:
    """AIPerf then writes the errors and the times only: 41 - 20.5 s."""
    kept = ("error_request_count", "error_summary", "start_time", "end_time", "input_config")
    run = parsed({key: AIPERF[key] for key in kept})
    assert (run.num_prompts, run.completed, run.total_tokens, run.latency, run.duration_s) == (3, 0, 0, {}, 20.5)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2025-10-09T08:53:20", datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)),
        ("2025-10-09T08:53:20Z", datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)),
        ("2025-10-09T10:53:20+02:00", datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)),
        (None, None),
    ],
)
def test_the_start_is_utc_where_no_zone_is_named(written: str | None, read: datetime | None) -> None:
    assert parsed(AIPERF | {"start_time": written}).recorded_at == read


def telemetry(*names: str) -> dict[str, Any]:
    gpus = {f"gpu_{index}": {"gpu_index": index, "gpu_name": name} for index, name in enumerate(names)}
    return {"summary": {}, "endpoints": {"node:9400": {"gpus": gpus}, "node:9401": {"gpus": {}}}}


def test_telemetry_names_the_gpu_but_not_how_many_of_them_served() -> None:
    seen = AIPERF | {"telemetry_data": telemetry("NVIDIA H100 PCIe", "NVIDIA H100 PCIe")}
    assert parsed(seen, GpuOverride(None, 1)).gpu_name == "NVIDIA H100 PCIe"
    assert parsed(seen) == RUN
    assert refused(seen, None).startswith("`gpu_count`: given None; accepted: a whole number >= 1 given with --gpu-cou")


def test_telemetry_of_unlike_gpus_needs_to_be_told_which_served() -> None:
    mixed = AIPERF | {"telemetry_data": telemetry("NVIDIA H100 PCIe", "NVIDIA L4")}
    assert refused(mixed, GpuOverride(None, 1)).startswith(
        "`telemetry_data`: given ['NVIDIA H100 PCIe', 'NVIDIA L4']; "
    )
    assert parsed(mixed) == RUN


def test_without_telemetry_the_gpu_is_asked_for() -> None:
    assert refused(AIPERF, None).startswith("`gpu_name`: given None; accepted: a GPU name given with --gpu (AIPerf ")
    assert "--gpu" in refused(AIPERF | {"telemetry_data": telemetry()}, GpuOverride(None, 1))


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (AIPERF | {"request_count": metric("requests", 0.0), "error_request_count": None, "error_summary": None},
         "`request_count.avg`: given 0.0; accepted: a benchmark with at least one request"),
        (AIPERF | {"request_count": metric("requests", 1.5)}, "`request_count.avg`: given 1.5; accepted: a whole"),
        (AIPERF | {"request_count": 40}, "`request_count`: given 40; accepted: an object"),
        (AIPERF | {"error_request_count": metric("requests", -1.0)}, "`error_request_count.avg`: given -1.0"),
        (AIPERF | {"error_request_count": None, "error_summary": ["x"]}, "`error_summary`: given ['x']; accepted: a "),
        (AIPERF | {"error_request_count": None, "error_summary": [{}]}, "`error_summary[0].count`: given None"),
        (without(GENAI_PERF, "request_count"), "`request_count`: given None; accepted: the number of requests (early"),
        (AIPERF | {"benchmark_duration": metric("sec", 0.0)}, "`benchmark_duration.avg`: given 0.0; accepted: a durat"),
        (AIPERF | {"benchmark_duration": {"avg": 20.0}}, "`benchmark_duration.unit`: given None; accepted: one of ms"),
        (AIPERF | {"benchmark_duration": metric("fortnights", 1.0)}, "`benchmark_duration.unit`: given 'fortnights'"),
        (AIPERF | {"request_latency": {"unit": ["ms"], "avg": 1.0}}, "`request_latency.unit`: given ['ms']"),
        (GENAI_PERF | {"request_throughput": metric("requests/sec", 0.0)}, "`request_throughput.avg`: given 0.0"),
        (without(GENAI_PERF, "request_throughput"), "`benchmark_duration`: given None; accepted: a duration; or requ"),
        (without(AIPERF, "benchmark_duration", "request_throughput") | {"end_time": "2025-10-09T08:53:20"},
         "`benchmark_duration`: given None"),
        (AIPERF | {"start_time": "yesterday"}, "`start_time`: given 'yesterday'; accepted: an ISO 8601 date and time"),
        (AIPERF | {"start_time": 1760000000}, "`start_time`: given 1760000000"),
        (AIPERF | {"start_time": "0001-01-01T00:00:00+23:00"}, "`start_time`: given '0001-01-01T00:00:00+23:00'"),
        (AIPERF | {"total_osl": metric("tokens", -1.0)}, "`total_osl.avg`: given -1.0; accepted: a number >= 0"),
        (AIPERF | {"total_osl": metric("tokens", 1e300)}, "`total_osl.avg`: given 1e+300"),
        (without(GENAI_PERF, "output_sequence_length"), "`output_sequence_length.avg`: given None; accepted: a number"),
        (AIPERF | {"time_to_first_token": metric("ms", -1.0)}, "`time_to_first_token.avg`: given -1.0; accepted: mill"),
        (AIPERF | {"time_to_first_token": metric("ms", 1.0, p99=True)}, "`time_to_first_token.p99`: given True"),
        (AIPERF | {"time_to_first_token": metric("s", 1e307)}, "`time_to_first_token.avg`: given 1e+307"),
        (AIPERF | {"input_config": CONFIG | {"endpoint": {"model_names": []}}},
         "`input_config.endpoint.model_names`: given []; accepted: one model"),
        (AIPERF | {"telemetry_data": {"endpoints": {"a": 7}}}, "`telemetry_data.endpoints`: given {'a': 7}"),
        (AIPERF | {"telemetry_data": {"endpoints": {"\x1b[2J" * 99: {"gpus": {"g": {"gpu_name": 4}}}}}},
         "`telemetry_data.endpoints[0].gpus[0].gpu_name`: given 4; accepted: printable text"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_with_key_value_and_what_is_accepted(result: dict[str, Any], told: str) -> None:
    assert refused(result, GpuOverride(None, 1) if "telemetry_data" in result else GPU).startswith(told)


@pytest.mark.parametrize(
    ("candidate", "ours"),
    [
        (AIPERF, True),
        (GENAI_PERF, True),
        ({"input_config": {}, "error_request_count": {"avg": 5.0}}, True),
        (without(AIPERF, "input_config"), False),
        ({"input_config": {}, "timeslices": [{"request_latency": {}}]}, False),
        ({"input_config": "x", "request_latency": {}}, False),
        ({"input_config": {}, "request_latency": 3.0}, False),
        ([AIPERF], False),
        (None, False),
    ],
)
def test_a_result_is_known_by_its_configuration_and_a_metric(candidate: object, ours: bool) -> None:
    assert recognises(candidate) is ours
