"""Benchmark runs as one flat CSV of facts: how the study's runs ship, and a way to hand runs on without their JSON.

One row is one run; numbers are written so that they read back to the same float. A latency column is named
`<metric>_<statistic>_ms`, the statistic being mean, std or pNN.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from collectors.benchmark.run import LATENCY_METRICS, BenchmarkRun, Latency, LatencyMetric

_FACTS = (
    "model", "backend", "gpu_name", "gpu_count", "offered_requests_per_s", "burstiness", "max_concurrency",
    "num_prompts", "completed", "duration_s", "prompt_tokens", "generated_tokens", "recorded_at",
    "source_file", "source_index", "source_line",
)  # fmt: skip
_LATENCY_COLUMN = re.compile(rf"({'|'.join(LATENCY_METRICS)})_(mean|std|p(\d+(?:\.\d+)?))_ms")


def write(runs: Iterable[BenchmarkRun]) -> str:
    """The CSV text of `runs`, in their order."""
    rows = [as_row(run) for run in runs]
    extra = sorted({column for row in rows for column in row} - set(_FACTS), key=_column_order)
    out = io.StringIO()
    writer = csv.DictWriter(out, [*_FACTS, *extra], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_row(run: BenchmarkRun) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(run, name) for name in _FACTS}
    row["recorded_at"] = run.recorded_at.isoformat() if run.recorded_at else None
    for metric, latency in run.latency.items():
        row |= {f"{metric}_mean_ms": latency.mean_ms, f"{metric}_std_ms": latency.std_ms}
        row |= {f"{metric}_p{percentile:g}_ms": value for percentile, value in latency.quantiles_ms.items()}
    return row


def read(text: str) -> Iterator[BenchmarkRun]:
    """The runs of a CSV text. Raises ValueError that names the line and the column."""
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in _FACTS if name not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"line 1: the columns {', '.join(missing)} are missing")
    for row in reader:
        try:
            yield from_row(row)
        except (TypeError, ValueError) as problem:
            raise ValueError(f"line {reader.line_num}: {problem}") from None


def from_row(row: Mapping[str, str]) -> BenchmarkRun:
    def optional(name: str) -> str | None:
        return row[name] or None

    def number(name: str) -> float | None:
        return float(row[name]) if row[name] else None

    return BenchmarkRun(
        model=row["model"],
        backend=optional("backend"),
        gpu_name=row["gpu_name"],
        gpu_count=int(row["gpu_count"]),
        offered_requests_per_s=number("offered_requests_per_s"),
        burstiness=number("burstiness"),
        max_concurrency=int(row["max_concurrency"]) if row["max_concurrency"] else None,
        num_prompts=int(row["num_prompts"]),
        completed=int(row["completed"]),
        duration_s=float(row["duration_s"]),
        prompt_tokens=int(row["prompt_tokens"]),
        generated_tokens=int(row["generated_tokens"]),
        latency=_latencies(row),
        recorded_at=datetime.fromisoformat(row["recorded_at"]) if row["recorded_at"] else None,
        source_file=row["source_file"],
        source_index=int(row["source_index"]),
        source_line=int(row["source_line"]),
    )


def _latencies(row: Mapping[str, str]) -> dict[LatencyMetric, Latency]:
    latency: dict[LatencyMetric, Latency] = {}
    for metric in LATENCY_METRICS:
        cells = {
            named[2]: float(value)
            for column, value in row.items()
            if value and (named := _LATENCY_COLUMN.fullmatch(column)) and named[1] == metric
        }
        mean, std = cells.pop("mean", None), cells.pop("std", None)
        quantiles = {float(statistic[1:]): value for statistic, value in cells.items()}
        if quantiles or mean is not None:
            latency[metric] = Latency(mean, std, dict(sorted(quantiles.items())))
    return latency


def _column_order(column: str) -> tuple[int, int, float]:
    named = _LATENCY_COLUMN.fullmatch(column)
    assert named, f"{column} is not a latency column"  # noqa: S101 -- only as_row makes these names
    return (
        [str(metric) for metric in LATENCY_METRICS].index(named[1]),
        ["mean", "std"].index(named[2]) if named[2] in ("mean", "std") else 2,
        float(named[3] or 0),
    )
