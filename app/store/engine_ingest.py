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
    """One row per engine, scrape, metric and bucket that holds a request.

    Counts stay one flat column beside the exploded bounds: a list cell a row would cost a Series each.
    """
    layouts: dict[tuple[int, ...], int] = {}
    columns: dict[str, list[Any]] = {name: [] for name in _LATENCY}
    counts: list[list[int]] = []
    for placed in group:
        table = placed.batch.engine_samples
        if table is not None:
            _append_latencies(placed, table, layouts, columns, counts)
    edges = [(layout, (0, *bounds), (*bounds, None)) for bounds, layout in layouts.items()]
    rows = pl.DataFrame({name: pl.Series(name, columns[name], dtype=dtype) for name, dtype in _LATENCY.items()})
    return (
        rows.join(pl.DataFrame(edges, schema=_LAYOUT, orient="row"), on="layout", how="left", maintain_order="left")
        .drop("layout")
        .explode("lower_us", "upper_us")
        .with_columns(pl.Series("n", list(chain.from_iterable(counts)), dtype=pl.Int32))
        .filter(pl.col("n") > 0)
    )


def _append_latencies(
    placed: Placed,
    table: EngineSamples,
    layouts: dict[tuple[int, ...], int],
    columns: dict[str, list[Any]],
    counts: list[list[int]],
) -> None:
    for metric, name in enumerate(LATENCY_METRICS):
        bounds = [tuple(getattr(engine, f"{name}_bounds_us")) for engine in placed.batch.engines]
        observed = getattr(table, f"{name}_buckets")
        rows = [row for row, found in enumerate(observed) if found is not None and any(found)]
        columns["engine_id"] += [placed.engine_ids[table.engine[row]] for row in rows]
        columns["t_us"] += [table.t_us[row] for row in rows]
        columns["dt_us"] += [table.dt_us[row] for row in rows]
        columns["metric"] += [metric] * len(rows)
        columns["layout"] += [layouts.setdefault(bounds[table.engine[row]], len(layouts)) for row in rows]
        counts += [observed[row] for row in rows]
