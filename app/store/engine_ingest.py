"""Engine samples as frames: counts and gauges a row per scrape, latencies a row per occupied bucket."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

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
    "engine_id": pl.Int32, "t_us": pl.Int64, "dt_us": pl.Int64, "metric": pl.UInt8, "layout": pl.Int32,
    "n": pl.List(pl.Int32),
}  # fmt: skip
_LAYOUT: dict[str, Any] = {"layout": pl.Int32, "lower_us": pl.List(pl.Int64), "upper_us": pl.List(pl.Int64)}


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
    """One row per engine, scrape, metric and bucket that holds a request."""
    layouts: dict[tuple[int, ...], int] = {}
    rows: list[tuple[int, int, int, int, int, list[int]]] = []
    for placed in group:
        table = placed.batch.engine_samples
        if table is not None:
            rows += _latency_rows(placed, table, layouts)
    edges = [(layout, (0, *bounds), (*bounds, None)) for bounds, layout in layouts.items()]
    frame = pl.DataFrame(rows, schema=_LATENCY, orient="row")
    return (
        frame.join(pl.DataFrame(edges, schema=_LAYOUT, orient="row"), on="layout", how="left")
        .drop("layout")
        .explode("n", "lower_us", "upper_us")
        .filter(pl.col("n") > 0)
    )


def _latency_rows(
    placed: Placed, table: EngineSamples, layouts: dict[tuple[int, ...], int]
) -> list[tuple[int, int, int, int, int, list[int]]]:
    rows = []
    for metric, name in enumerate(LATENCY_METRICS):
        bounds = [tuple(getattr(engine, f"{name}_bounds_us")) for engine in placed.batch.engines]
        for engine, t_us, dt_us, counts in zip(
            table.engine, table.t_us, table.dt_us, getattr(table, f"{name}_buckets"), strict=True
        ):
            if counts is not None and any(counts):
                layout = layouts.setdefault(bounds[engine], len(layouts))
                rows.append((placed.engine_ids[engine], t_us, dt_us, metric, layout, counts))
    return rows
