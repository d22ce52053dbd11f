"""What rows are named by: the fleets of nodes over time, nodes, GPUs, engines, and the key that is asked for.

GPUs and engines that a question does not tell apart count as one, and the first of them stands for all: so sums are
grouped by a few small numbers, however large the store is, and named afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import polars as pl

from app.facts.fields import FIRST_MOMENT
from app.store.ingest import MINUTE_US
from app.store.reader import Reader
from app.store.spans import FOREVER_US

LABEL = "label:"

# grain: one row per node and moment of a change: the fleet from then on, as was known last
_FLEETS = """
    SELECT node_id, epoch_us(valid_from) AS from_us, arg_max_null(fleet, known_at) AS fleet
    FROM node_fleet WHERE known_at <= $1 GROUP BY ALL
"""
# grain: one row per node, per GPU, per engine
_NODES = """
    SELECT node_id, name AS node, simulated, {label} AS node_label
    FROM node LEFT JOIN (SELECT node_id, labels FROM node_state) USING (node_id)
"""
_GPUS = "SELECT gpu_id, uuid AS gpu, name AS gpu_name, node_id FROM gpu ORDER BY gpu_id"
_ENGINES = """
    SELECT engine_id, model, node_id, url, label AS engine, {label} AS own_label FROM engine ORDER BY engine_id
"""
# one row: numbers that change with any row that names are read from
_STAMP = """
    SELECT
        (SELECT max(known_at) FROM node_fleet WHERE known_at <= $1) AS last_known_at,
        (SELECT bit_xor(hash(node_id, epoch_us(valid_from), epoch_us(known_at), fleet)) FROM node_fleet) AS fleets,
        (SELECT bit_xor(hash(node_id, name, simulated)) FROM node) AS nodes,
        (SELECT bit_xor(hash(node_id, labels)) FROM node_state) AS labels,
        (SELECT bit_xor(hash(gpu_id, uuid, name, node_id)) FROM gpu) AS gpus,
        (SELECT bit_xor(hash(engine_id, model, node_id, url, label, labels)) FROM engine) AS engines,
        (SELECT bit_xor(hash(engine_id, epoch_us(valid_from), epoch_us(known_at), uuids)) FROM engine_gpus) AS held
"""
_OF_NAME = "CAST(labels::JSON AS MAP(VARCHAR, VARCHAR))[$1]"
# grain: one row per engine and moment of a change: the GPUs from then on, as was known last; NULL: not known
_ENGINE_GPUS = """
    SELECT engine_id, epoch_us(valid_from) AS from_us, arg_max_null(uuids, known_at) AS uuids
    FROM engine_gpus GROUP BY ALL
"""

Stamp = tuple[Any, ...]


@dataclass(frozen=True)
class Question:
    """by: node, gpu, replica or label:<name> add that key to rows; others add none. fleet, model: only theirs.

    start_us, end_us: the stretch of time that is read.
    """

    by: str
    known_at: datetime
    fleet: str | None
    model: str | None
    start_us: int
    end_us: int

    @property
    def label(self) -> str | None:
        return self.by.removeprefix(LABEL) if self.by.startswith(LABEL) else None

    @property
    def key(self) -> list[str]:
        """The columns that `by` adds."""
        keys = {"node": ["node"], "gpu": ["gpu", "node"], "replica": ["node", "url", "engine"]}
        return keys.get(self.by, []) if self.label is None else ["label"]


@dataclass(frozen=True)
class Names:
    """fleets: a row per node and span of time in one fleet or none; they cover all time."""

    question: Question
    fleets: pl.DataFrame
    nodes: pl.DataFrame
    gpus: pl.DataFrame
    engines: pl.DataFrame
    engine_gpus: pl.DataFrame

    @classmethod
    def read(cls, store: Reader, question: Question) -> Names:
        nodes = _labelled(store, _NODES, question.label)
        since = pl.lit(-1, pl.Int64).alias("from_us"), pl.lit(None, pl.String).alias("fleet")
        known = store.query(_FLEETS, [question.known_at])
        fleets = pl.concat([nodes.select("node_id", *since), known]).sort("node_id", "from_us")
        until = pl.col("from_us").shift(-1).over("node_id").fill_null(FOREVER_US).alias("to_us")
        engines = _labelled(store, _ENGINES, question.label)
        return cls(question, fleets.with_columns(until), nodes, store.query(_GPUS), engines, store.query(_ENGINE_GPUS))

    def changes(self) -> list[int]:
        """Moments within the time that is read at which a node changes its fleet."""
        changed = self.fleets.filter(pl.col("fleet").ne_missing(pl.col("fleet").shift(1).over("node_id")))
        moments = changed["from_us"].unique().to_list()
        return [moment for moment in moments if self.question.start_us < moment < self.question.end_us]

    @cached_property
    def replicas(self) -> pl.DataFrame:
        """A row per engine and span of time on the same GPUs: uuids, gpu_name, replica_gpus; None while not known.

        span_us: when it began, of an engine that had several in the time that is read. See ENGINE_SPANS.
        """
        start_us, end_us = self.question.start_us, self.question.end_us
        spans = (
            self.engine_gpus.sort("engine_id", "from_us")
            .with_columns(pl.col("from_us") // MINUTE_US * MINUTE_US, pl.col("uuids").list.unique().list.sort())
            .with_columns(pl.col("from_us").shift(-1).over("engine_id").fill_null(FOREVER_US).alias("to_us"))
            .filter(pl.col("from_us") < pl.col("to_us"), pl.col("from_us") < end_us, pl.col("to_us") > start_us)
            .with_columns(
                pl.when(pl.col("uuids").list.len() > 0).then("uuids"),
                pl.when(pl.len().over("engine_id") > 1).then("from_us").alias("span_us"),
            )
        )
        cards = spans.explode("uuids").join(self.gpus, left_on="uuids", right_on="gpu", how="left")
        named = cards.group_by("engine_id", "from_us").agg(
            pl.col("gpu_name").drop_nulls().unique().sort().str.join(" + ")
        )
        return spans.join(named, on=["engine_id", "from_us"]).with_columns(
            pl.col("uuids").list.len().alias("replica_gpus"),
            pl.when(pl.col("gpu_name") != "").then("gpu_name"),
        )

    @cached_property
    def alike_gpus(self) -> list[int | None]:
        """For each GPU's id from 1 on the one that stands for it; None for one that is not asked for.

        Those alike are the same card, in the same fleets in all the time that is read.
        """
        cards = self.gpus.join(self.nodes, on="node_id").join(self._histories(), on="node_id")
        apart = {"node": ["node_id"], "replica": ["node_id"], "gpu": ["gpu_id"]}.get(self.question.by, ["node_label"])
        return _firsts(cards, "gpu_id", ["history", "gpu_name", "simulated", *apart])

    @cached_property
    def alike_models(self) -> list[int | None]:
        """The same for engines by what they serve: the rest is told by the GPU that they are on."""
        apart = ["engine_id"] if self.question.by == "replica" else ["own_label"]
        return _firsts(self._asked_engines(), "engine_id", ["model", *apart])

    @cached_property
    def alike_engines(self) -> list[int | None]:
        """The same for engines by all that is told of them; one that moved, or whose GPUs are not known, is alone."""
        is_alone = pl.col("span_us").is_not_null() | pl.col("uuids").is_null()
        engines = (
            self._asked_engines()
            .join(self.replicas.unique("engine_id", keep="first"), on="engine_id", how="left")
            .join(self.nodes, on="node_id")
            .join(self._histories(), on="node_id")
            .with_columns(pl.when(is_alone).then("engine_id").alias("alone"))
        )
        by_engine = ["engine_id"]
        apart = {"node": ["node_id"], "gpu": by_engine, "replica": by_engine}
        shared = ["history", "model", "simulated", "gpu_name", "replica_gpus", "alone"]
        return _firsts(engines, "engine_id", [*shared, *apart.get(self.question.by, ["own_label", "node_label"])])

    def place(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with a node_id, own_label and piece_us, with fleet and node; only those of the fleet asked for."""
        found = (
            rows.join(self.fleets, on="node_id")
            .filter(pl.col("piece_us") >= pl.col("from_us"), pl.col("piece_us") < pl.col("to_us"))
            .join(self.nodes, on="node_id")
            .with_columns(pl.coalesce("own_label", "node_label").alias("label"))
        )
        return found if self.question.fleet is None else found.filter(pl.col("fleet") == self.question.fleet)

    def _asked_engines(self) -> pl.DataFrame:
        model = self.question.model
        return self.engines if model is None else self.engines.filter(pl.col("model") == model)

    def _histories(self) -> pl.DataFrame:
        """A row per node that was in the fleet asked for: all its fleets in the time that is read, and since when."""
        start_us, end_us, fleet = self.question.start_us, self.question.end_us, self.question.fleet
        spans = self.fleets.filter(pl.col("to_us") > start_us, pl.col("from_us") < end_us)
        since = pl.concat_str(pl.col("from_us").clip(start_us), pl.col("fleet").fill_null(""), separator=" ")
        told = (pl.col("fleet") == fleet).any() if fleet is not None else pl.lit(value=True)
        found = spans.group_by("node_id").agg(since.str.join("\n").alias("history"), told.alias("is_asked"))
        return found.filter("is_asked")


def stamped(store: Reader, question: Question) -> tuple[Question, Stamp]:
    """The question as of the last membership that it knows, and the stamp of its names."""
    row = store.query(_STAMP, [question.known_at]).row(0)
    return replace(question, known_at=row[0] or FIRST_MOMENT), row[1:]


def stamp(store: Reader) -> Stamp:
    """It changes with any row that names are read from."""
    return store.query(_STAMP, [FIRST_MOMENT]).row(0)[1:]


def _labelled(store: Reader, sql: str, label: str | None) -> pl.DataFrame:
    if label is None:
        return store.query(sql.format(label="NULL::VARCHAR"))
    return store.query(sql.format(label=_OF_NAME), [label])


def _firsts(frame: pl.DataFrame, name: str, keys: Sequence[str]) -> list[int | None]:
    found = frame.sort(name).select(name, pl.col(name).first().over(keys).alias("first"))
    firsts: dict[int, int] = dict(found.iter_rows())
    return [firsts.get(number) for number in range(1, max(firsts, default=0) + 1)]
