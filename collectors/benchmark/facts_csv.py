"""Benchmark runs as one flat CSV of facts: how the study's runs ship, and a way to hand runs on without their JSON.

One row is one run; numbers are written so that they read back to the same float. A latency column is named
`<metric>_<statistic>_ms`, the statistic being mean, std or pNN.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar

from collectors.benchmark.run import LATENCY_METRICS, BenchmarkRun, Latency, LatencyMetric, percentile_name

T = TypeVar("T")

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
    # A bare carriage return is not quoted by default, and would end the row for a reader.
    bare_return = any("\r" in str(cell) for row in rows for cell in row.values())
    quoting: Literal[0, 1] = csv.QUOTE_ALL if bare_return else csv.QUOTE_MINIMAL
    writer = csv.DictWriter(out, [*_FACTS, *extra], lineterminator="\n", quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_row(run: BenchmarkRun) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(run, name) for name in _FACTS}
    row["recorded_at"] = run.recorded_at.isoformat() if run.recorded_at else None
    for metric, latency in run.latency.items():
        row |= {f"{metric}_mean_ms": latency.mean_ms, f"{metric}_std_ms": latency.std_ms}
        row |= {
            f"{metric}_{percentile_name(percentile)}_ms": value for percentile, value in latency.quantiles_ms.items()
        }
    return row


def read(text: str) -> Iterator[BenchmarkRun]:
    """The runs of a CSV text. Raises ValueError that names the line and the column."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        missing = [name for name in _FACTS if name not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"the columns {', '.join(missing)} are missing")
        for row in reader:
            yield from_row(row)
    except csv.Error as problem:  # the reader counts a line only once it is read
        raise ValueError(f"line {reader.line_num + 1}: {problem}") from None
    except (TypeError, ValueError) as problem:
        raise ValueError(f"line {max(reader.line_num, 1)}: {problem}") from None


def from_row(row: Mapping[str, str]) -> BenchmarkRun:
    """The run of one row. Raises ValueError that names the column."""
    return BenchmarkRun(
        model=row["model"],
        backend=row["backend"] or None,
        gpu_name=row["gpu_name"],
        gpu_count=_cell(row, "gpu_count", int),
        offered_requests_per_s=_optional(row, "offered_requests_per_s", float),
        burstiness=_optional(row, "burstiness", float),
        max_concurrency=_optional(row, "max_concurrency", int),
        num_prompts=_cell(row, "num_prompts", int),
        completed=_cell(row, "completed", int),
        duration_s=_cell(row, "duration_s", float),
        prompt_tokens=_cell(row, "prompt_tokens", int),
        generated_tokens=_cell(row, "generated_tokens", int),
        latency=_latencies(row),
        recorded_at=_optional(row, "recorded_at", datetime.fromisoformat),
        source_file=row["source_file"],
        source_index=_cell(row, "source_index", int),
        source_line=_cell(row, "source_line", int),
    )


def _cell(row: Mapping[str, str], name: str, convert: Callable[[str], T]) -> T:
    try:
        return convert(row[name])
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` cannot be {str(row[name])[:40]!r}") from None


def _optional(row: Mapping[str, str], name: str, convert: Callable[[str], T]) -> T | None:
    return _cell(row, name, convert) if row[name] else None


def _latencies(row: Mapping[str, str]) -> dict[LatencyMetric, Latency]:
    latency: dict[LatencyMetric, Latency] = {}
    for metric in LATENCY_METRICS:
        cells = {
            named[2]: _cell(row, column, float)
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
