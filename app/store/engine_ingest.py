"""Engine samples as frames: counts and gauges a row per scrape, latencies a row per scrape and metric."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from collectors.samples import LATENCY_METRICS, EngineSamples

if TYPE_CHECKING:
    from app.store.ingest import Placed

# What an engine did in an interval: columns of EngineSamples, of the raw table and of its rollups.
ENGINE_COUNTS = (
    "prompt_tokens", "cached_tokens", "transferred_tokens", "prefix_query_tokens", "prefix_hit_tokens",
    "generated_tokens", "finished_stop", "finished_length", "finished_aborted", "finished_failed", "rejected",
    "preemptions", "prefill_us", "decode_us", "queue_us", "inference_us", "ttft_us", "itl_us", "e2e_us",
)  # fmt: skip
_GAUGES = ("running", "waiting", "kv_usage_ppm")
_ROW: dict[str, Any] = (
    {"t_us": pl.Int64, "dt_us": pl.Int64}
    | dict.fromkeys(ENGINE_COUNTS, pl.Int64)
    | dict.fromkeys(_GAUGES, pl.Int32)
)  # fmt: skip
_LATENCY: dict[str, Any] = {
    "engine_id": pl.Int32, "t_us": pl.Int64, "dt_us": pl.Int64, "metric": pl.UInt8, "layout_id": pl.Int32,
    "first_bucket": pl.UInt8,
}  # fmt: skip


def engine_frame(group: Sequence[Placed]) -> pl.DataFrame:
    """One row per engine and scrape."""
    tables = [(placed, table) for placed in group if (table := placed.batch.engine_samples) is not None]
    ids = [placed.engine_ids[position] for placed, table in tables for position in table.engine]
    columns = {
        name: pl.Series(name, list(chain.from_iterable(getattr(table, name) for _, table in tables)), dtype=dtype)
        for name, dtype in _ROW.items()
    }
    return pl.DataFrame({"engine_id": pl.Series("engine_id", ids, dtype=pl.Int32)} | columns)


def latency_frame(group: Sequence[Placed]) -> pl.DataFrame:
    """One row per engine, scrape and metric in which a request fell, with its counts from first to last."""
    columns: dict[str, list[Any]] = {name: [] for name in _LATENCY}
    counts: list[list[int]] = []
    for placed in group:
        table = placed.batch.engine_samples
        if table is not None:
            _append_latencies(placed, table, columns, counts)
    frame = pl.DataFrame({name: pl.Series(name, columns[name], dtype=dtype) for name, dtype in _LATENCY.items()})
    # One flat array and its offsets: a list cell a row would cost a Series each.
    offsets = pa.array([0, *accumulate(map(len, counts))], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array(list(chain.from_iterable(counts)), pa.int32()))
    return frame.with_columns(pl.Series("n", lists, dtype=pl.List(pl.Int32)))


def _append_latencies(
    placed: Placed, table: EngineSamples, columns: dict[str, list[Any]], counts: list[list[int]]
) -> None:
    for metric, name in enumerate(LATENCY_METRICS):
        for row, found in enumerate(getattr(table, f"{name}_buckets")):
            if found is None or not any(found):
                continue
            first = next(bucket for bucket, n in enumerate(found) if n)
            last = next(bucket for bucket in range(len(found) - 1, -1, -1) if found[bucket])
            engine = table.engine[row]
            values = (placed.engine_ids[engine], table.t_us[row], table.dt_us[row], metric,
                      placed.layouts[engine][metric], first)  # fmt: skip
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
            counts.append(found[first : last + 1])
