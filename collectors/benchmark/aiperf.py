"""AIPerf's `profile_export_aiperf.json` and its forerunner's `profile_export_genai_perf.json`: one run to a file.

Read off ai-dynamo/aiperf (exporters/metrics_json_exporter.py, metrics/types) and triton-inference-server/perf_analyzer
(genai_perf/metrics); docs/benchmarks.md says what becomes of each key. A metric is an object of `unit`, `avg`, `pNN`,
`min`, `max` and `std`; a count or a total has only `avg`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from collectors.benchmark.aiperf_setup import Setup, setup_of
from collectors.benchmark.fields import FieldError, Fields, GpuOverride, latency_of
from collectors.benchmark.run import BenchmarkRun, Latency, LatencyMetric

_PROGRAM = "AIPerf"
# Its inter-token latency is a request's average after the first token, which is our TPOT; ours is a gap between chunks.
_METRICS: dict[LatencyMetric, str] = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2e": "request_latency",
}
_MS_PER_UNIT = {"ms": 1.0, "us": 1e-3, "ns": 1e-6, "sec": 1e3, "s": 1e3}
_UNITS = f"one of {', '.join(_MS_PER_UNIT)}"
_PERCENTILE_KEY = re.compile(r"p([0-9]+(?:\.[0-9]+)?)")
_HALLMARKS = ("request_count", "request_latency", "request_throughput", "error_request_count")


def recognises(candidate: object) -> bool:
    """Whether a JSON value looks like a result: the configuration, and one of the metrics that every one has."""
    return (
        isinstance(candidate, dict)
        and isinstance(candidate.get("input_config"), dict)
        and any(isinstance(candidate.get(name), dict) for name in _HALLMARKS)
    )


def parse(
    result: Mapping[str, Any], *, file: str, index: int, line: int, gpu: GpuOverride | None = None
) -> list[BenchmarkRun]:
    """The run of one result. Raises FieldError for a key that is missing, mistyped or impossible."""
    gpu = gpu or GpuOverride()
    fields = Fields(result)
    setup = setup_of(fields.inside("input_config"))
    completed = _completed(fields)
    num_prompts = completed + _failed(fields)
    if num_prompts == 0:
        raise fields.inside("request_count").refusal("avg", "a benchmark with at least one request")
    run = BenchmarkRun(
        model=setup.model,
        backend=setup.backend,
        gpu_name=gpu.name or _gpu_name(fields),
        gpu_count=gpu.count_or_refuse(_PROGRAM),
        offered_requests_per_s=setup.requests_per_s,
        burstiness=setup.burstiness,
        max_concurrency=setup.max_concurrency,
        num_prompts=num_prompts,
        completed=completed,
        duration_s=_duration_s(fields, completed),
        prompt_tokens=_tokens(fields, "total_isl", "input_sequence_length", completed),
        generated_tokens=_tokens(fields, "total_osl", "output_sequence_length", completed),
        latency=_latencies(fields, setup) if completed else {},
        recorded_at=_moment(fields, "start_time"),
        source_file=file,
        source_index=index,
        source_line=line,
    )
    return [run]


def _completed(fields: Fields) -> int:
    """Requests that succeeded; AIPerf leaves the metric out where none did."""
    if not fields.has("request_count") and fields.has("error_request_count"):
        return 0
    if not fields.has("request_count"):
        raise fields.refusal("request_count", "the number of requests (early GenAI-Perf does not write it)")
    return fields.inside("request_count").count("avg", minimum=0)


def _failed(fields: Fields) -> int:
    if fields.has("error_request_count"):
        return fields.inside("error_request_count").count("avg", minimum=0)
    if fields.get("error_summary") in (None, []):
        return 0
    return sum(error.count("count", minimum=0) for error in fields.items("error_summary", "a list of errors"))


def _duration_s(fields: Fields, completed: int) -> float:
    """GenAI-Perf does not write it, but a throughput that is the requests over it."""
    if fields.has("benchmark_duration"):
        duration = fields.inside("benchmark_duration")
        return duration.positive("avg", "a duration > 0") * _ms_per_unit(duration) / 1000
    if completed and fields.has("request_throughput"):
        return completed / fields.inside("request_throughput").positive("avg", "requests/s > 0")
    start, end = _moment(fields, "start_time"), _moment(fields, "end_time")
    if start is None or end is None or end <= start:
        raise fields.refusal("benchmark_duration", "a duration; or request_throughput; or start_time and end_time")
    return (end - start).total_seconds()


def _tokens(fields: Fields, total: str, each: str, completed: int) -> int:
    """The total, which GenAI-Perf leaves to its readers: the mean of the requests, times their number."""
    if completed == 0:
        return 0
    if fields.has(total):
        return fields.inside(total).total("avg")
    return fields.inside(each).total("avg", times=completed)


def _latencies(fields: Fields, setup: Setup) -> dict[LatencyMetric, Latency]:
    """Without streaming only the end is seen: GenAI-Perf then writes the whole request's time as its TTFT."""
    found = {
        metric: _latency(fields.inside(name))
        for metric, name in _METRICS.items()
        if fields.has(name) and (metric == "e2e" or setup.streaming is not False)
    }
    return {metric: latency for metric, latency in found.items() if latency}


def _latency(measured: Fields) -> Latency | None:
    ms = _ms_per_unit(measured)
    named = [(key, float(found[1])) for key in measured.content if (found := _PERCENTILE_KEY.fullmatch(key))]
    percentiles = [(key, percentile) for key, percentile in named if 0 < percentile <= 100]
    return latency_of(
        measured.measured_ms("avg", ms=ms),
        measured.measured_ms("std", ms=ms),
        measured.quantiles_ms([("max", 100.0), *percentiles], ms=ms),
    )


def _ms_per_unit(measured: Fields) -> float:
    unit = measured.get("unit")
    if not isinstance(unit, str) or unit not in _MS_PER_UNIT:
        raise measured.refusal("unit", _UNITS)
    return _MS_PER_UNIT[unit]


def _moment(fields: Fields, key: str) -> datetime | None:
    """AIPerf's times name no zone and are read as UTC, as vLLM's are."""
    if not fields.has(key):
        return None
    try:
        moment = datetime.fromisoformat(fields.text(key))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except FieldError:
        raise
    except (OverflowError, ValueError):
        raise fields.refusal(key, "an ISO 8601 date and time") from None


def _gpu_name(fields: Fields) -> str:
    """The GPU that AIPerf's telemetry saw, where all were of one name; how many of them served, it does not know."""
    endpoints = fields.inside("telemetry_data").members("endpoints")
    names = {gpu.text("gpu_name") for endpoint in endpoints for gpu in endpoint.members("gpus")}
    if len(names) == 1:
        return names.pop()
    if names:
        raise FieldError("telemetry_data", sorted(names), "GPUs of one name; or name the one that served with --gpu")
    return GpuOverride().name_or_refuse(_PROGRAM)
