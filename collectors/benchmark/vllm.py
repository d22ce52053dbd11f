"""vLLM's `benchmark_serving` / `vllm bench serve` result objects (0.8 to the newest), one JSON object per run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from collectors.benchmark.run import MAX_COUNT, BenchmarkRun, Latency, LatencyMetric

# vLLM's word for each metric inside the key names, e.g. p99_e2el_ms.
_METRIC_WORDS: dict[str, LatencyMetric] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}
_QUANTILE_KEY = re.compile(r"p(\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)_ms")
_HALLMARKS = ("duration", "completed", "total_input_tokens", "total_output_tokens")


class FieldError(ValueError):
    """A key of a result object that cannot be used: names the key, the value and what is accepted."""

    def __init__(self, key: str, given: object, accepted: str) -> None:
        try:
            shown = repr(given)
        except RecursionError:
            shown = f"a {type(given).__name__} nested too deeply"
        super().__init__(f"`{key}`: given {shown[:60]}{'...' if len(shown) > 60 else ''}; accepted: {accepted}")


@dataclass(frozen=True)
class GpuOverride:
    """GPU name and count from the command line, for result files that do not record them."""

    name: str | None = None
    count: int | None = None


def recognises(candidate: object) -> bool:
    """Whether a JSON value looks like a result object: it has at least half of the keys every one has."""
    return isinstance(candidate, dict) and 2 * sum(key in candidate for key in _HALLMARKS) >= len(_HALLMARKS)


def parse(
    result: Mapping[str, Any], *, file: str, index: int, line: int, gpu: GpuOverride | None = None
) -> BenchmarkRun:
    """The run in one result object. Raises FieldError for a key that is missing, mistyped or impossible."""
    gpu = gpu or GpuOverride()
    num_prompts = _count(result, "num_prompts", minimum=1)
    completed = _count(result, "completed", minimum=0)
    if completed > num_prompts:
        raise FieldError("completed", completed, f"at most num_prompts ({num_prompts})")
    return BenchmarkRun(
        model=_text(result, "model_id"),
        backend=_optional_text(result, "backend"),
        gpu_name=gpu.name or _gpu_name(result),
        gpu_count=gpu.count or _gpu_count(result),
        offered_requests_per_s=_offered_rate(result),
        burstiness=_optional_number(result, "burstiness"),
        max_concurrency=_optional_count(result, "max_concurrency"),
        num_prompts=num_prompts,
        completed=completed,
        duration_s=_positive(result, "duration", "seconds > 0"),
        prompt_tokens=_count(result, "total_input_tokens", minimum=0),
        generated_tokens=_count(result, "total_output_tokens", minimum=0),
        latency=_latencies(result),
        recorded_at=_recorded_at(result),
        source_file=file,
        source_index=index,
        source_line=line,
    )


def _latencies(result: Mapping[str, Any]) -> dict[LatencyMetric, Latency]:
    quantiles: dict[LatencyMetric, dict[float, float]] = {}
    for key in result:
        named = _QUANTILE_KEY.fullmatch(key)
        value = _measured_ms(result, key) if named else None
        if named and value is not None and 0 < float(named[1]) <= 100:
            quantiles.setdefault(_METRIC_WORDS[named[2]], {})[float(named[1])] = value
    latency: dict[LatencyMetric, Latency] = {}
    for word, metric in _METRIC_WORDS.items():
        found = quantiles.get(metric, {})
        median = _measured_ms(result, f"median_{word}_ms")
        if 50.0 not in found and median is not None:
            found[50.0] = median
        mean, std = _measured_ms(result, f"mean_{word}_ms"), _measured_ms(result, f"std_{word}_ms")
        if found or mean is not None:
            latency[metric] = Latency(mean, std, dict(sorted(found.items())))
    return latency


def _measured_ms(result: Mapping[str, Any], key: str) -> float | None:
    """A latency: NaN is what vLLM writes when no request finished, so it is missing, not wrong."""
    value = result.get(key)
    if value is None or (isinstance(value, float) and value != value):
        return None
    number = _as_number(key, value, "milliseconds >= 0")
    if number < 0:
        raise FieldError(key, value, "milliseconds >= 0")
    return number


def _offered_rate(result: Mapping[str, Any]) -> float | None:
    value = _required(result, "request_rate", 'requests/s > 0, or "inf"')
    if value in ("inf", float("inf")):
        return None
    return _positive(result, "request_rate", 'requests/s > 0, or "inf"')


def _gpu_name(result: Mapping[str, Any]) -> str:
    if not result.get("gpu_name"):
        raise FieldError("gpu_name", result.get("gpu_name"), "a GPU name; or name it with --gpu")
    return _text(result, "gpu_name")


def _gpu_count(result: Mapping[str, Any]) -> int:
    value = result.get("gpu_count")
    if value is None:
        raise FieldError("gpu_count", value, "a whole number >= 1; or give it with --gpu-count")
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 9:
        value = int(value)
    return _count({"gpu_count": value}, "gpu_count", minimum=1)


def _recorded_at(result: Mapping[str, Any]) -> datetime | None:
    value = result.get("date")
    if value is None:
        return None
    try:
        return datetime.strptime(value, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except (TypeError, ValueError):
        raise FieldError("date", value, "YYYYMMDD-HHMMSS") from None


def _required(result: Mapping[str, Any], key: str, accepted: str) -> Any:
    if key not in result:
        raise FieldError(key, None, f"{accepted} (the key is missing)")
    return result[key]


def _as_number(key: str, value: object, accepted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(key, value, accepted)
    try:
        number = float(value)
    except OverflowError:
        raise FieldError(key, value, accepted) from None
    if not math.isfinite(number):
        raise FieldError(key, value, accepted)
    return number


def _positive(result: Mapping[str, Any], key: str, accepted: str) -> float:
    value = _required(result, key, accepted)
    number = _as_number(key, value, accepted)
    if number <= 0:
        raise FieldError(key, value, accepted)
    return number


def _count(result: Mapping[str, Any], key: str, *, minimum: int) -> int:
    accepted = f"a whole number >= {minimum}"
    value = _required(result, key, accepted)
    number = _as_number(key, value, accepted)
    if number < minimum or number != int(number) or number > MAX_COUNT:
        raise FieldError(key, value, accepted)
    return int(number)


def _optional_count(result: Mapping[str, Any], key: str) -> int | None:
    return None if result.get(key) is None else _count(result, key, minimum=1)


def _optional_number(result: Mapping[str, Any], key: str) -> float | None:
    return None if result.get(key) is None else _positive(result, key, "a number > 0")


def _text(result: Mapping[str, Any], key: str) -> str:
    value = _required(result, key, "text")
    if not isinstance(value, str) or not value.strip() or len(value) > 300 or not value.isprintable():
        raise FieldError(key, value, "printable text of 1 to 300 characters")
    return value.strip()


def _optional_text(result: Mapping[str, Any], key: str) -> str | None:
    return None if result.get(key) is None else _text(result, key)
