"""vLLM's `benchmark_serving` / `vllm bench serve` result objects (0.8 to the newest), one JSON object per run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from collectors.benchmark.fields import FieldError, Fields, GpuOverride, latency_of
from collectors.benchmark.run import BenchmarkRun, Latency, LatencyMetric

# vLLM's word for each metric inside the key names, e.g. p99_e2el_ms.
_METRIC_WORDS: dict[str, LatencyMetric] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}
_QUANTILE_KEY = re.compile(r"p(\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)_ms")
_HALLMARKS = ("duration", "completed", "total_input_tokens", "total_output_tokens")


def recognises(candidate: object) -> bool:
    """Whether a JSON value looks like a result object: it has at least half of the keys every one has."""
    return isinstance(candidate, dict) and 2 * sum(key in candidate for key in _HALLMARKS) >= len(_HALLMARKS)


def parse(
    result: Mapping[str, Any], *, file: str, index: int, line: int, gpu: GpuOverride | None = None
) -> list[BenchmarkRun]:
    """The run of one result object. Raises FieldError for a key that is missing, mistyped or impossible."""
    gpu = gpu or GpuOverride()
    fields = Fields(result)
    num_prompts = fields.count("num_prompts", minimum=1)
    completed = fields.count("completed", minimum=0)
    if completed > num_prompts:
        raise fields.refusal("completed", f"at most num_prompts ({num_prompts})")
    run = BenchmarkRun(
        model=fields.text("model_id"),
        backend=fields.optional_text("backend"),
        gpu_name=gpu.name or _gpu_name(fields),
        gpu_count=gpu.count or _gpu_count(fields),
        offered_requests_per_s=_offered_rate(fields),
        burstiness=fields.optional_positive("burstiness"),
        max_concurrency=fields.optional_count("max_concurrency"),
        num_prompts=num_prompts,
        completed=completed,
        duration_s=fields.positive("duration", "seconds > 0"),
        prompt_tokens=fields.count("total_input_tokens", minimum=0),
        generated_tokens=fields.count("total_output_tokens", minimum=0),
        latency=_latencies(fields),
        recorded_at=_recorded_at(fields),
        source_file=file,
        source_index=index,
        source_line=line,
    )
    return [run]


def _latencies(fields: Fields) -> dict[LatencyMetric, Latency]:
    quantiles: dict[LatencyMetric, dict[float, float]] = {}
    for key in fields.content:
        named = _QUANTILE_KEY.fullmatch(key)
        value = fields.measured_ms(key) if named else None
        if named and value is not None and 0 < float(named[1]) <= 100:
            quantiles.setdefault(_METRIC_WORDS[named[2]], {})[float(named[1])] = value
    latency: dict[LatencyMetric, Latency] = {}
    for word, metric in _METRIC_WORDS.items():
        found = quantiles.get(metric, {})
        median = fields.measured_ms(f"median_{word}_ms")
        if 50.0 not in found and median is not None:
            found[50.0] = median
        mean, std = fields.measured_ms(f"mean_{word}_ms"), fields.measured_ms(f"std_{word}_ms")
        if one := latency_of(mean, std, dict(sorted(found.items()))):
            latency[metric] = one
    return latency


def _offered_rate(fields: Fields) -> float | None:
    if fields.get("request_rate") in ("inf", float("inf")):
        return None
    return fields.positive("request_rate", 'requests/s > 0, or "inf"')


def _gpu_name(fields: Fields) -> str:
    if not fields.get("gpu_name"):
        raise FieldError("gpu_name", fields.get("gpu_name"), "a GPU name; or name it with --gpu")
    return fields.text("gpu_name")


def _gpu_count(fields: Fields) -> int:
    value = fields.get("gpu_count")
    if value is None:
        raise FieldError("gpu_count", value, "a whole number >= 1; or give it with --gpu-count")
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 9:
        value = int(value)
    return Fields({"gpu_count": value}).count("gpu_count", minimum=1)


def _recorded_at(fields: Fields) -> datetime | None:
    value = fields.get("date")
    if value is None:
        return None
    try:
        return datetime.strptime(value, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except (TypeError, ValueError):
        raise fields.refusal("date", "YYYYMMDD-HHMMSS") from None
