"""GuideLLM's `benchmarks.json` (0.3 to the newest): one report, a run for each benchmark (strategy) in it.

Read off vllm-project/guidellm, benchmark/benchmark.py (0.3) and benchmark/schemas (since 0.4); docs/benchmarks.md says
what becomes of each key. Only the `successful` part of a distribution is read, as vLLM counts finished requests only.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from collectors.benchmark.fields import FieldError, Fields, GpuOverride, latency_of
from collectors.benchmark.run import BenchmarkRun, Latency, LatencyMetric

_PROGRAM = "GuideLLM"
_PERCENTILES = {
    "p001": 0.1, "p01": 1.0, "p05": 5.0, "p10": 10.0, "p25": 25.0, "p50": 50.0,
    "p75": 75.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9,
}  # fmt: skip
_MS_PER_S = 1000.0
_TPOT_PERCENTILES = (50.0, 90.0, 95.0, 99.0, 100.0)


def recognises(candidate: object) -> bool:
    """Whether a JSON value looks like a report, by what is in it."""
    if not isinstance(candidate, dict):
        return False
    metadata, benchmarks = candidate.get("metadata"), candidate.get("benchmarks")
    if isinstance(metadata, dict) and "guidellm_version" in metadata:
        return True
    return isinstance(benchmarks, list) and any(_is_benchmark(one) for one in benchmarks)


def _is_benchmark(candidate: object) -> bool:
    metrics = candidate.get("metrics") if isinstance(candidate, dict) else None
    return isinstance(metrics, dict) and "request_latency" in metrics


def parse(
    report: Mapping[str, Any], *, file: str, index: int, line: int, gpu: GpuOverride | None = None
) -> list[BenchmarkRun]:
    """The runs of one report; `index` is the first one's. Raises FieldError for a key that cannot be used."""
    benchmarks = Fields(report).items("benchmarks", "a list of at least one benchmark")
    return [
        _run(one, file=file, index=index + place, line=line, gpu=gpu or GpuOverride())
        for place, one in enumerate(benchmarks)
    ]


def _run(one: Fields, *, file: str, index: int, line: int, gpu: GpuOverride) -> BenchmarkRun:
    if one.get("type_") not in (None, "generative_benchmark"):
        raise one.refusal("type_", '"generative_benchmark"')
    model, backend = _served(one)
    rate, burstiness, max_concurrency = _load(_strategy(one))
    num_prompts, completed = _requests(one)
    return BenchmarkRun(
        model=model,
        backend=backend,
        gpu_name=gpu.name_or_refuse(_PROGRAM),
        gpu_count=gpu.count_or_refuse(_PROGRAM),
        offered_requests_per_s=rate,
        burstiness=burstiness,
        max_concurrency=max_concurrency,
        num_prompts=num_prompts,
        completed=completed,
        duration_s=_duration_s(one),
        prompt_tokens=_tokens(one, "prompt_token_count", completed),
        generated_tokens=_tokens(one, "output_token_count", completed),
        latency=_latencies(one, completed) if completed else {},
        recorded_at=_recorded_at(one),
        source_file=file,
        source_index=index,
        source_line=line,
    )


def _strategy(one: Fields) -> Fields:
    """0.4 has it under `config`, its pre-releases under `scheduler`, 0.3 under `args`."""
    place = next((key for key in ("config", "scheduler") if one.has(key)), "args")
    return one.inside(place).inside("strategy")


def _served(one: Fields) -> tuple[str, str | None]:
    """(model, kind of backend), from the places of 0.4, of its pre-releases and of 0.3."""
    place = next((key for key in ("config", "benchmarker") if one.has(key)), None)
    if place is None:
        worker = one.inside("worker")
        return worker.text("backend_model"), worker.optional_text("backend_type")
    backend = one.inside(place).inside("backend")
    return backend.text("model"), backend.optional_text("type_") or backend.optional_text("type")


def _load(strategy: Fields) -> tuple[float | None, float | None, int | None]:
    """(requests/s, burstiness, most requests at once). Constant arrivals have no finite burstiness."""
    kind = strategy.get("type_")
    if kind in ("constant", "poisson"):
        rate = strategy.positive("rate", "requests/s > 0")
        return rate, 1.0 if kind == "poisson" else None, strategy.optional_count("max_concurrency")
    if kind == "concurrent":
        return None, None, strategy.count("streams", minimum=1)
    if kind == "synchronous":
        return None, None, 1
    if kind == "throughput":
        return None, None, strategy.optional_count("max_concurrency")
    raise strategy.refusal("type_", "synchronous, concurrent, throughput, constant or poisson")


def _requests(one: Fields) -> tuple[int, int]:
    """(sent, finished): incomplete requests were cut off by the end of the benchmark and were sent all the same."""
    totals = (one.inside("metrics") if one.inside("metrics").has("request_totals") else one).inside("request_totals")
    completed = totals.count("successful", minimum=0)
    sent = completed + totals.count("incomplete", minimum=0) + totals.count("errored", minimum=0)
    if sent == 0:
        raise totals.refusal("successful", "a benchmark with at least one request")
    return sent, completed


def _duration_s(one: Fields) -> float:
    if one.has("duration") or not (one.has("start_time") and one.has("end_time")):
        return one.positive("duration", "seconds > 0")
    duration_s = one.number("end_time", "seconds") - one.number("start_time", "seconds")
    if duration_s <= 0:
        raise one.refusal("end_time", "a time after start_time")
    return duration_s


def _tokens(one: Fields, name: str, completed: int) -> int:
    return _successful(one, name).total("total_sum") if completed else 0


def _successful(one: Fields, name: str) -> Fields:
    return one.inside("metrics").inside(name).inside("successful")


def _latencies(one: Fields, completed: int) -> dict[LatencyMetric, Latency]:
    """`time_per_output_token_ms` is left out: it counts the first token in, and ours does not."""
    found: dict[LatencyMetric, Latency | None] = {
        "ttft": _distribution(_successful(one, "time_to_first_token_ms")),
        "tpot": _tpot(one, completed),
        "itl": _mean_gap(_successful(one, "inter_token_latency_ms")),
        "e2e": _distribution(_successful(one, "request_latency"), ms=_MS_PER_S),
    }
    return {metric: latency for metric, latency in found.items() if latency}


def _distribution(measured: Fields, *, ms: float = 1.0) -> Latency | None:
    mean, most = measured.measured_ms("mean", ms=ms), measured.measured_ms("max", ms=ms)
    if not mean and not most:
        return None  # GuideLLM writes zeros where nothing was measured, as TTFT without streaming
    quantiles = measured.inside("percentiles").quantiles_ms(_PERCENTILES.items(), ms=ms)
    median = measured.quantiles_ms([("median", 50.0), ("max", 100.0)], ms=ms)
    return latency_of(mean, measured.measured_ms("std_dev", ms=ms), dict(sorted((median | quantiles).items())))


def _mean_gap(measured: Fields) -> Latency | None:
    """The mean alone: it is weighted by tokens, so it is the mean gap; the quantiles are of requests' averages."""
    mean = measured.measured_ms("mean")
    return Latency(mean) if mean else None


def _tpot(one: Fields, completed: int) -> Latency | None:
    """From the requests themselves, where the file kept each: their average gap after the first token.

    As vLLM counts it: each request with two tokens or more once, quantiles interpolated between neighbours.
    """
    kept = one.inside("requests").get("successful")
    if not isinstance(kept, list) or len(kept) != completed:
        return None
    values: list[float] = []
    for request in one.inside("requests").items("successful", "a list of requests"):
        if not request.has("output_tokens"):
            return None
        if request.count("output_tokens", minimum=0) > 1:
            value = request.measured_ms("inter_token_latency_ms")
            if value is None:
                return None
            values.append(value)
    if not any(values):
        return None
    try:
        mean, std = statistics.fmean(values), statistics.pstdev(values)
    except OverflowError:
        raise FieldError(f"{one.path}requests", max(values), "milliseconds that can be averaged") from None
    values.sort()
    return Latency(mean, std, {percentile: _interpolated(values, percentile) for percentile in _TPOT_PERCENTILES})


def _interpolated(values: Sequence[float], percentile: float) -> float:
    position = (len(values) - 1) * percentile / 100
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (position - below)


def _recorded_at(one: Fields) -> datetime | None:
    """`start_time`, in seconds of the Unix epoch; -1 is what 0.4 writes for a time that it does not know."""
    if not one.has("start_time"):
        return None
    seconds = one.number("start_time", "seconds of the Unix epoch")
    if seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        raise one.refusal("start_time", "seconds of the Unix epoch") from None
