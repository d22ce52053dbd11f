"""Benchmark runs for tests: one by hand, and a strategy that makes any run a load test can have measured."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from collectors.benchmark.run import LATENCY_METRICS, BenchmarkRun, Latency, LatencyMetric

RUN = BenchmarkRun(
    model="nvidia/AceMath-7B-Instruct", backend="vllm", gpu_name="NVIDIA-H100-PCIe", gpu_count=1,
    offered_requests_per_s=16.0, burstiness=1.0, max_concurrency=None, num_prompts=200, completed=200,
    duration_s=19.004579995002132, prompt_tokens=40991, generated_tokens=43344,
    latency={"ttft": Latency(23.85, 3.69, {50.0: 23.66, 99.0: 31.64})},
    recorded_at=datetime(2025, 6, 10, 15, 11, 48, tzinfo=UTC), source_file="a.json", source_index=0, source_line=1,
)  # fmt: skip

_TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
_POSITIVE = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
_MS = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
_QUANTILES = st.dictionaries(st.sampled_from([1.0, 12.5, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0]), _MS, max_size=4)


@st.composite
def _latency(draw: st.DrawFn) -> Latency:
    quantiles = dict(sorted(draw(_QUANTILES).items()))
    mean = draw(st.none() | _MS) if quantiles else draw(_MS)
    return Latency(mean, draw(st.none() | _MS), quantiles)


@st.composite
def benchmark_runs(draw: st.DrawFn) -> BenchmarkRun:
    """Any run the importer could have read, dates in UTC."""
    num_prompts = draw(st.integers(1, 2**53))
    metrics: list[LatencyMetric] = draw(st.lists(st.sampled_from(LATENCY_METRICS), unique=True))
    return BenchmarkRun(
        model=draw(_TEXT),
        backend=draw(st.none() | _TEXT),
        gpu_name=draw(_TEXT),
        gpu_count=draw(st.integers(1, 100_000)),
        offered_requests_per_s=draw(st.none() | _POSITIVE),
        burstiness=draw(st.none() | _POSITIVE),
        max_concurrency=draw(st.none() | st.integers(1, 100_000)),
        num_prompts=num_prompts,
        completed=draw(st.integers(0, num_prompts)),
        duration_s=draw(_POSITIVE),
        prompt_tokens=draw(st.integers(0, 2**53)),
        generated_tokens=draw(st.integers(0, 2**53)),
        latency={metric: draw(_latency()) for metric in metrics},
        recorded_at=draw(st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))),  # noqa: DTZ001 -- hypothesis takes naive bounds
        source_file=draw(_TEXT),
        source_index=draw(st.integers(0, 1000)),
        source_line=draw(st.integers(1, 100_000)),
    )
