"""Batches as frames, and frames into the raw tables: one INSERT a table for a whole group of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import duckdb
import polars as pl

from app.errors import BatchRefused
from app.store.engine_ingest import engine_frame, latency_frame
from collectors.samples import ENERGY_METHODS, Batch, GpuSamples, Processes

MINUTE_US = 60_000_000
# A row that covers more than this is a gap, whatever its method says: rollups look for rows this far past a minute.
LONGEST_INTERVAL_US = MINUTE_US
INT32_MAX = 2**31 - 1
# What a row of seconds keeps in 32 bits; 2^31 mJ are 2.1 MJ, a GPU's energy of an hour.
_LIMITS: dict[str, dict[str, int]] = {
    "gpu_samples": {"energy_mj": INT32_MAX, "integral_mj": INT32_MAX, "memory_used_bytes": INT32_MAX * 1024},
    "host_samples": {"cpu_energy_mj": INT32_MAX, "dram_energy_mj": INT32_MAX},
}
_METHOD_CODES: dict[str | None, int | None] = {name: code for code, name in enumerate(ENERGY_METHODS)} | {None: None}

_GPU_SAMPLE: dict[str, Any] = {
    "gpu_id": pl.Int32, "t_us": pl.Int64, "dt_us": pl.Int64, "energy_mj": pl.Int64, "energy_method": pl.UInt8,
    "integral_mj": pl.Int64, "power_instant_mw": pl.Int32, "power_average_mw": pl.Int32, "utilisation_pct": pl.UInt8,
    "memory_utilisation_pct": pl.UInt8, "memory_used_bytes": pl.Int64, "temperature_c": pl.Int16,
    "sm_clock_mhz": pl.Int32, "memory_clock_mhz": pl.Int32, "power_cap": pl.Boolean, "thermal_slowdown": pl.Boolean,
    "hardware_slowdown": pl.Boolean,
}  # fmt: skip
_HOST_SAMPLE: dict[str, Any] = {
    "node_id": pl.Int32, "t_us": pl.Int64, "dt_us": pl.Int64, "cpu_energy_mj": pl.Int64, "dram_energy_mj": pl.Int64,
    "memory_used_bytes": pl.Int64, "memory_total_bytes": pl.Int64, "load_1m_milli": pl.Int32,
}  # fmt: skip
_PROCESS_SAMPLE: dict[str, Any] = {
    "gpu_id": pl.Int32, "t_us": pl.Int64, "pid": pl.Int32, "memory_used_bytes": pl.Int64,
}  # fmt: skip

# One statement per raw table; `incoming` is the group's frame. Sorted, so that a GPU's column compresses.
_INSERTS = {
    "gpu_sample": """
        INSERT INTO gpu_sample BY NAME SELECT * EXCLUDE (memory_used_bytes) FROM incoming ORDER BY gpu_id, t_us
    """,
    "gpu_bridge": "INSERT INTO gpu_bridge BY NAME SELECT gpu_id, t_us, dt_us, energy_mj FROM incoming",
    "host_sample": "INSERT INTO host_sample BY NAME SELECT * FROM incoming ORDER BY node_id, t_us",
    "process_sample": "INSERT INTO process_sample BY NAME SELECT * FROM incoming",
    "engine_sample": "INSERT INTO engine_sample BY NAME SELECT * FROM incoming ORDER BY engine_id, t_us",
    "engine_latency_sample": """
        INSERT INTO engine_latency_sample BY NAME SELECT * FROM incoming ORDER BY metric, engine_id, t_us
    """,
    "dirty_minute": "INSERT INTO dirty_minute BY NAME SELECT * FROM incoming",
    "dirty_engine_minute": "INSERT INTO dirty_engine_minute BY NAME SELECT * FROM incoming",
}

_MEMORY_KIB = (pl.col("memory_used_bytes") // 1024).alias("memory_used_kib")
_BRIDGED = _METHOD_CODES["bridged"]


@dataclass(frozen=True)
class Placed:
    """A batch with the ids of its node, GPUs, engines and, per engine, of its latency buckets' bounds by metric.

    late_rows: how many were left out for their time.
    """

    batch: Batch
    node_id: int
    gpu_ids: list[int]
    engine_ids: list[int]
    layouts: list[tuple[int, ...]]
    late_rows: int


def check_ranges(batch: Batch) -> None:
    """Raises BatchRefused, naming field and row, for a number that the wire allows and no GPU can reach in seconds."""
    for name, limits in _LIMITS.items():
        table = getattr(batch, name)
        if table is None:
            continue
        for column, most in limits.items():
            for row, value in enumerate(getattr(table, column)):
                is_gap = column == "energy_mj" and table.dt_us[row] > LONGEST_INTERVAL_US
                if value is not None and value > most and not is_gap:
                    raise BatchRefused(f"`{name}.{column}.{row}`: given {value}; accepted: at most {most}")


def within(batch: Batch, oldest_us: int, newest_us: int) -> tuple[Batch, int]:
    """The batch without rows older than raw samples are kept, or from the future; and how many those were."""
    late = 0
    kept: dict[str, Any] = {}
    for name in ("gpu_samples", "engine_samples", "host_samples", "processes"):
        table = getattr(batch, name)
        if table is None or not table.t_us or (min(table.t_us) > oldest_us and max(table.t_us) <= newest_us):
            continue
        rows = [index for index, t_us in enumerate(table.t_us) if oldest_us < t_us <= newest_us]
        late += len(table.t_us) - len(rows)
        columns = {column: [values[index] for index in rows] for column, values in table.__dict__.items()}
        kept[name] = type(table).model_construct(**columns)
    return (batch.model_copy(update=kept) if kept else batch), late


def insert_group(connection: duckdb.DuckDBPyConnection, group: Sequence[Placed]) -> None:
    """All samples of a group of batches into the raw tables of the open transaction, and the minutes they touch."""
    gpu = _frame(group, _GPU_SAMPLE, lambda p: p.batch.gpu_samples, _gpu_ids_of).with_columns(_MEMORY_KIB)
    is_gap = (pl.col("energy_method") == _BRIDGED).fill_null(False) | (pl.col("dt_us") > LONGEST_INTERVAL_US)
    bridges = gpu.filter(is_gap)
    samples = gpu.filter(~is_gap) if bridges.height else gpu
    host = _frame(group, _HOST_SAMPLE, lambda p: p.batch.host_samples, lambda p, t: [p.node_id] * len(t.t_us))
    engines = engine_frame(group)
    frames = {
        "gpu_sample": samples,
        "gpu_bridge": bridges,
        "host_sample": host,
        "process_sample": _frame(group, _PROCESS_SAMPLE, lambda p: p.batch.processes, _gpu_ids_of),
        "dirty_minute": _dirty_minutes(samples, bridges, "gpu_id"),
    }
    if engines.height:
        is_long = pl.col("dt_us") > LONGEST_INTERVAL_US
        frames |= {
            "engine_sample": engines,
            "engine_latency_sample": latency_frame(group),
            "dirty_engine_minute": _dirty_minutes(engines, engines.filter(is_long), "engine_id"),
        }
    for table, frame in frames.items():
        if frame.height:
            connection.register("incoming", frame)
            connection.execute(_INSERTS[table])
            connection.unregister("incoming")


def _gpu_ids_of(placed: Placed, table: GpuSamples | Processes) -> list[int]:
    return [placed.gpu_ids[position] for position in table.gpu]


def _frame(
    group: Sequence[Placed],
    schema: dict[str, Any],
    table_of: Callable[[Placed], Any],
    ids_of: Callable[[Placed, Any], list[int]],
) -> pl.DataFrame:
    tables = [(placed, table) for placed in group if (table := table_of(placed)) is not None]
    key, *columns = schema
    data: dict[str, Any] = {key: _series(key, schema[key], (ids_of(placed, table) for placed, table in tables))}
    for name in columns:
        lists: Iterable[list[Any]] = (getattr(table, name) for _, table in tables)
        if name == "energy_method":
            lists = ([_METHOD_CODES[value] for value in values] for values in lists)
        data[name] = _series(name, schema[name], lists)
    return pl.DataFrame(data)


def _series(name: str, dtype: Any, lists: Iterable[list[Any]]) -> pl.Series:
    return pl.Series(name, list(chain.from_iterable(lists)), dtype=dtype, strict=True)


def _dirty_minutes(rows: pl.DataFrame, gaps: pl.DataFrame, key: str) -> pl.DataFrame:
    """(GPU or engine, minute) of every minute that a row overlaps: a short row lies in one or two, a gap in many."""
    ends = [(pl.col("t_us") - 1) // MINUTE_US, (pl.col("t_us") - pl.col("dt_us")) // MINUTE_US]
    touched = [rows.select(key, (minute * MINUTE_US).alias("minute_us")) for minute in ends]
    if gaps.height:
        span = pl.int_ranges(ends[1], ends[0] + 1).alias("minute_us")
        touched.append(gaps.select(key, span).explode("minute_us").with_columns(pl.col("minute_us") * MINUTE_US))
    return pl.concat(touched).unique()
