"""Engines: their short ids in the store, what their last batch said of them, and the GPUs they run on, dated."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars as pl

from app.store import use_marks
from app.store.database import Store
from app.store.gpu_rollup import HOUR_US
from collectors.samples import LATENCY_METRICS, Batch, Engine

_ENGINE: dict[str, Any] = {
    "engine_id": pl.Int32, "node_id": pl.Int32, "url": pl.String, "label": pl.String, "model": pl.String,
    "kind": pl.String, "version": pl.String, "started_us": pl.Int64, "status": pl.String, "labels": pl.String,
    "first_seen": pl.Datetime("us", "UTC"), "last_seen": pl.Datetime("us", "UTC"),
}  # fmt: skip
_GPUS: dict[str, Any] = {
    "engine_id": pl.Int32, "uuids": pl.List(pl.String), "source": pl.String,
    "valid_from": pl.Datetime("us", "UTC"), "known_at": pl.Datetime("us", "UTC"),
}  # fmt: skip

# one row per engine
_UPSERT = """
    INSERT INTO engine BY NAME SELECT * FROM incoming_engines
    ON CONFLICT (engine_id) DO UPDATE SET
        kind = excluded.kind, version = excluded.version, started_us = excluded.started_us, status = excluded.status,
        labels = excluded.labels, last_seen = excluded.last_seen
"""
# one row per engine: the GPUs it runs on by the latest knowledge
_CURRENT_GPUS = """
    SELECT engine_id, uuids, source FROM engine_gpus
    QUALIFY row_number() OVER (PARTITION BY engine_id ORDER BY valid_from DESC, known_at DESC) = 1
"""

Key = tuple[int, str, str, str | None]
Gpus = tuple[tuple[str, ...] | None, str | None]


class EngineRegistry:
    """Ids and last states of engines, in memory while the hub runs and in the store across its restarts.

    Used by the one writer thread; `commit` after a committed transaction, `forget` after one that was rolled back.
    """

    def __init__(self, store: Store) -> None:
        rows = store.query("SELECT * FROM engine").iter_rows(named=True)
        self._engines: dict[Key, dict[str, Any]] = {
            (row["node_id"], row["url"], row["label"], row["model"]): row for row in rows
        }
        self._gpus: dict[int, Gpus] = {
            engine_id: (None if uuids is None else tuple(uuids), source)
            for engine_id, uuids, source in store.query(_CURRENT_GPUS).iter_rows()
        }
        self._new: dict[Key, dict[str, Any]] = {}
        self._moves: list[dict[str, Any]] = []
        self._moved: dict[int, Gpus] = {}
        self._layouts: dict[tuple[int, ...], int] = {
            tuple(bounds): layout_id for layout_id, bounds in store.query("FROM latency_layout").iter_rows()
        }
        self._new_layouts: dict[tuple[int, ...], int] = {}
        self._dirty: set[Key] = set()
        self._written: set[Key] = set()

    def ids(self, batch: Batch, node_id: int, now: datetime) -> list[int]:
        """The ids of the batch's engines in its order; new ones, and changes of their GPUs, are noted for the store."""
        return [self._id(engine, position, batch, node_id, now) for position, engine in enumerate(batch.engines)]

    def layouts(self, batch: Batch) -> list[tuple[int, ...]]:
        """Per engine of the batch the ids of its latency buckets' bounds, by metric; new ones are noted."""
        return [
            tuple(self._layout_id(tuple(getattr(engine, f"{name}_bounds_us"))) for name in LATENCY_METRICS)
            for engine in batch.engines
        ]

    def _layout_id(self, bounds: tuple[int, ...]) -> int:
        if bounds in self._layouts:
            return self._layouts[bounds]
        return self._new_layouts.setdefault(bounds, len(self._layouts) + len(self._new_layouts) + 1)

    def note(self, batch: Batch, node_id: int, now: datetime) -> None:
        """Take over what an accepted batch says of its engines. Call it after the batch is committed."""
        for engine in batch.engines:
            key = (node_id, *engine.key)
            row = self._engines[key]
            row |= _said(engine) | ({"last_seen": now} if engine.status == "ok" else {})
            self._dirty.add(key)

    def write(self, connection: duckdb.DuckDBPyConnection, *, states: bool) -> None:
        """Put new engines and changes of GPUs into the open transaction; with `states` all that changed."""
        rows = list(self._new.values())
        if states:
            rows += [self._engines[key] for key in self._dirty]
            self._written = set(self._dirty)
        if rows:
            connection.register("incoming_engines", _frame(rows, _ENGINE))
            connection.execute(_UPSERT)
            connection.unregister("incoming_engines")
        if self._moves:
            self._write_moves(connection)
        for bounds, layout_id in self._new_layouts.items():  # a few in a store's life
            connection.execute("INSERT INTO latency_layout VALUES ($1, $2)", [layout_id, list(bounds)])

    def _write_moves(self, connection: duckdb.DuckDBPyConnection) -> None:
        first_us = min(int(move["valid_from"].timestamp() * 1e6) for move in self._moves)
        connection.register("incoming_gpus", _frame(self._moves, _GPUS))
        connection.execute("INSERT INTO engine_gpus BY NAME SELECT * FROM incoming_gpus")
        connection.execute(use_marks.OF_MOVES, [first_us // HOUR_US * HOUR_US])
        connection.unregister("incoming_gpus")

    @property
    def has_news(self) -> bool:
        """Whether an engine's state is newer here than in the store."""
        return bool(self._dirty)

    def commit(self) -> None:
        self._engines |= self._new
        self._gpus |= self._moved
        self._layouts |= self._new_layouts
        self._dirty -= self._written
        self.forget()

    def forget(self) -> None:
        self._new, self._moves, self._moved, self._written = {}, [], {}, set()
        self._new_layouts = {}

    def _id(self, engine: Engine, position: int, batch: Batch, node_id: int, now: datetime) -> int:
        key = (node_id, *engine.key)
        row = self._engines.get(key) or self._new.get(key)
        if row is None:
            ids: dict[str, Any] = {"engine_id": len(self._engines) + len(self._new) + 1, "node_id": node_id}
            names = {"url": engine.url, "label": engine.label, "model": engine.model}
            row = self._new[key] = ids | names | {"first_seen": now, "last_seen": now} | _said(engine)
        engine_id = int(row["engine_id"])
        gpus: Gpus = (None if engine.gpus is None else tuple(sorted(engine.gpus)), engine.gpus_source)
        if self._moved.get(engine_id, self._gpus.get(engine_id)) != gpus:
            self._moved[engine_id] = gpus
            since = _first_moment(batch, position)
            self._moves.append(
                {"engine_id": engine_id, "uuids": gpus[0], "source": gpus[1], "valid_from": since, "known_at": now}
            )
        return engine_id


def _said(engine: Engine) -> dict[str, Any]:
    return {
        "kind": engine.kind,
        "version": engine.version,
        "started_us": engine.started_us,
        "status": engine.status,
        "labels": json.dumps(engine.labels),
    }


def _first_moment(batch: Batch, position: int) -> datetime:
    """From when on the batch speaks of that engine: the start of its first row, else when it was sent."""
    table = batch.engine_samples
    starts = [] if table is None else [
        t_us - dt_us
        for engine, t_us, dt_us in zip(table.engine, table.t_us, table.dt_us, strict=True) if engine == position
    ]  # fmt: skip
    return datetime.fromtimestamp(min(starts, default=batch.node.sent_at_us) / 1e6, UTC)


def _frame(rows: list[dict[str, Any]], columns: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([{key: row[key] for key in columns} for row in rows], schema=columns)
