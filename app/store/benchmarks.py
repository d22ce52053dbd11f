"""Benchmark runs in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import polars as pl

from app.store.database import Store
from app.store.reader import Reader
from collectors.benchmark.run import BenchmarkRun, Latency, LatencyMetric, percentile_name

# grain: one row per run
_RUNS = """
    SELECT * FROM benchmark_run
    ORDER BY model, gpu_name, gpu_count, offered_requests_per_s NULLS LAST, source_file, source_index
"""

# grain: one row per run, metric and statistic
_LATENCIES = "SELECT run_id, metric, statistic, value_ms FROM benchmark_latency ORDER BY run_id, metric, statistic"

# grain: one row per model, GPU and count of them. $1: recorded up to then, or nobody knows when
_RATES = """
    SELECT model, gpu_name, gpu_count, max((prompt_tokens + generated_tokens) / duration_s) AS tokens_per_s
    FROM benchmark_run
    WHERE duration_s > 0 AND coalesce(recorded_at <= $1, true)
    GROUP BY ALL ORDER BY ALL
"""

_INSERT_RUNS = """
    INSERT INTO benchmark_run BY NAME SELECT * FROM incoming_runs
    ON CONFLICT (run_id) DO NOTHING
    RETURNING run_id
"""

_INSERT_LATENCIES = """
    INSERT INTO benchmark_latency BY NAME
    SELECT * FROM incoming_latencies
    ON CONFLICT (run_id, metric, statistic) DO NOTHING
"""

_RUN_COLUMNS: dict[str, Any] = {
    "run_id": pl.String, "model": pl.String, "backend": pl.String, "gpu_name": pl.String, "gpu_count": pl.Int64,
    "offered_requests_per_s": pl.Float64, "burstiness": pl.Float64, "max_concurrency": pl.Int64,
    "num_prompts": pl.Int64, "completed": pl.Int64, "duration_s": pl.Float64, "prompt_tokens": pl.Int64,
    "generated_tokens": pl.Int64, "recorded_at": pl.Datetime("us", "UTC"), "source_file": pl.String,
    "source_index": pl.Int64, "source_line": pl.Int64,
}  # fmt: skip
_LATENCY_COLUMNS: dict[str, Any] = {
    "run_id": pl.String, "metric": pl.String, "statistic": pl.String, "value_ms": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class Added:
    """What an import did: `new` runs went in, `known` were there already."""

    new: int
    known: int


def add_runs(store: Store, runs: Sequence[BenchmarkRun]) -> Added:
    """Put runs into the store, all or none. A run that is there already is left as it is."""
    unique = {run.run_id: run for run in runs}
    if not unique:
        return Added(0, 0)
    with store.transaction() as connection:
        connection.register("incoming_runs", _run_frame(unique))
        connection.register("incoming_latencies", _latency_frame(unique))
        new = len(connection.execute(_INSERT_RUNS).fetchall())
        connection.execute(_INSERT_LATENCIES)
        connection.unregister("incoming_runs")
        connection.unregister("incoming_latencies")
    store.benchmarks_revision += 1
    return Added(new, len(runs) - new)


def read_runs(store: Store) -> list[BenchmarkRun]:
    """Every run, ordered by model, GPU, count and offered rate."""
    latencies: dict[str, dict[str, dict[str, float]]] = {}
    for run_id, metric, statistic, value in store.query(_LATENCIES).iter_rows():
        latencies.setdefault(run_id, {}).setdefault(metric, {})[statistic] = value
    return [_run(row, latencies.get(row["run_id"], {})) for row in store.query(_RUNS).iter_rows(named=True)]


def best_run_rates(store: Reader, until: datetime) -> list[dict[str, Any]]:
    """The most tokens (prompt + generated) per second of any run: a row per model, gpu_name and gpu_count."""
    return list(store.query(_RATES, [until]).iter_rows(named=True))


def _run(row: dict[str, Any], statistics: dict[str, dict[str, float]]) -> BenchmarkRun:
    facts = {name: row[name] for name in _RUN_COLUMNS if name != "run_id"}
    return BenchmarkRun(
        **facts, latency={cast(LatencyMetric, metric): _latency(found) for metric, found in statistics.items()}
    )


def _latency(statistics: dict[str, float]) -> Latency:
    quantiles = {float(name[1:]): value for name, value in statistics.items() if name.startswith("p")}
    return Latency(statistics.get("mean"), statistics.get("std"), dict(sorted(quantiles.items())))


def _run_frame(runs: dict[str, BenchmarkRun]) -> pl.DataFrame:
    rows = [{"run_id": run_id} | {name: getattr(run, name, None) for name in _RUN_COLUMNS if name != "run_id"}
            for run_id, run in runs.items()]  # fmt: skip
    return pl.DataFrame(rows, schema=_RUN_COLUMNS)


def _latency_frame(runs: dict[str, BenchmarkRun]) -> pl.DataFrame:
    rows: list[tuple[str, str, str, float]] = []
    for run_id, run in runs.items():
        for metric, latency in run.latency.items():
            named = {"mean": latency.mean_ms, "std": latency.std_ms}
            named |= {percentile_name(percentile): value for percentile, value in latency.quantiles_ms.items()}
            rows += [(run_id, metric, name, value) for name, value in named.items() if value is not None]
    return pl.DataFrame(rows, schema=_LATENCY_COLUMNS, orient="row")
