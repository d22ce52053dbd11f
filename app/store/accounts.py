"""What GPUs were used for and engines did in segments of time, by fleet and model and, if asked for, one key more.

Fleets are those of the time, by the knowledge up to `known_at`. The GPUs of engines are those of the time by the latest
knowledge, on which the rollups of use rest. Several reads of one moment of the store: give them the same `moment`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from app.store import exact
from app.store.buckets import Buckets, Segment, Step, buckets
from app.store.hourly_grid import WEIGHED, HourlyGrid
from app.store.kept import MOST_GROUPS, Block
from app.store.names import LABEL as LABEL
from app.store.names import Names, Question, stamped
from app.store.reader import Reader
from collectors.samples import LATENCY_METRICS, LatencyMetric

Row = dict[str, Any]
_USE = (
    "provisioned_s", "used_s", "known_j", "interpolated_j", "estimated_j", "unknown_s", "idle_j", "covered_s",
    "bridged_s", "throttled_s",
)  # fmt: skip
_COUNTS = (
    "prompt_tokens", "cached_tokens", "transferred_tokens", "prefix_query_tokens", "prefix_hit_tokens",
    "generated_tokens", "finished_stop", "finished_length", "finished_aborted", "finished_failed", "rejected",
    "prefill_us", "decode_us",
)  # fmt: skip
_SECONDS = ("seen_s", "gap_s", "busy_s")
_FAILED, _FINISHED = ("finished_failed", "finished_aborted", "rejected"), ("finished_stop", "finished_length")
_PARAMETER = re.compile(r"\$(\w+)")
# The ids that stand for those like them, see Names; of an engine that moved, the span in which the bucket ends.
_GPU = "list_extract($gpus::INTEGER[], one.gpu_id)"
_MODEL = "list_extract($models::INTEGER[], one.engine_id)"
_ENGINE = "list_extract($engines::INTEGER[], one.engine_id)"
_MOVES = """
    LEFT JOIN (
        SELECT
            unnest($movers::INTEGER[]) AS mover,
            unnest($spans::BIGINT[]) AS span_us,
            unnest($span_ends::BIGINT[]) AS to_us
    )
      ON mover = one.engine_id AND end_us > span_us AND end_us <= to_us
"""


def use_rows(
    store: Reader,
    segments: Sequence[Segment],
    by: str,
    known_at: datetime,
    *,
    fleet: str | None = None,
    model: str | None = None,
    oldest_minute_us: int = 0,
    grid: HourlyGrid | None = None,
) -> list[Row]:
    """Sums of GPUs' use: a row per position, fleet, model, allocated, gpu_name, replica_gpus and key of `by`.

    by: node, gpu, replica (node, url and engine) or label:<name> add that key to the rows; any other adds none.
    fleet, model: only theirs (None: all).
    oldest_minute_us: minutes before it may be gone; hours stand in for them.
    allocated: an engine was on the GPU; else model and replica_gpus are None. grid: rows have its WEIGHED, too.
    """
    asked = {"by": by, "known_at": known_at, "fleet": fleet, "model": model}
    edges_us = grid.edges_us() if grid else ()
    scope = _Scope.of(store, segments, oldest_minute_us, edges_us, **asked)
    return _use(scope, grid) if scope else []


def engine_rows(
    store: Reader,
    segments: Sequence[Segment],
    by: str,
    known_at: datetime,
    *,
    fleet: str | None = None,
    model: str | None = None,
    oldest_minute_us: int = 0,
) -> list[Row]:
    """Sums of what engines did: a row per position, fleet, model, gpu_name, replica_gpus and key of `by`.

    gpu_name, replica_gpus: of the replica, None while its GPUs are not known; unplaced: engines that made tokens
    meanwhile. By gpu, each of an engine's GPUs has an equal part of its seconds and counts, these in whole numbers.
    The rest as in use_rows.
    """
    scope = _Scope.of(store, segments, oldest_minute_us, by=by, known_at=known_at, fleet=fleet, model=model)
    return _engines(scope) if scope else []


def latency_rows(
    store: Reader,
    segments: Sequence[Segment],
    metric: LatencyMetric,
    by: str,
    known_at: datetime,
    *,
    fleet: str | None = None,
    model: str | None = None,
    oldest_minute_us: int = 0,
) -> list[Row]:
    """Requests by latency: a row per position, fleet, model, latency bucket (lower_us, upper_us) and key of `by`.

    By gpu, each of an engine's GPUs has all of its requests: they went through all of them. The rest as in use_rows.
    """
    scope = _Scope.of(store, segments, oldest_minute_us, by=by, known_at=known_at, fleet=fleet, model=model)
    return _latency(scope, LATENCY_METRICS.index(metric)) if scope else []


@dataclass(frozen=True)
class _Scope:
    """What a read is of: its store, its time and the names of its rows."""

    store: Reader
    names: Names
    buckets: Buckets

    @classmethod
    def of(
        cls,
        store: Reader,
        segments: Sequence[Segment],
        oldest_minute_us: int,
        edges_us: Iterable[int] = (),
        **asked: Any,
    ) -> _Scope | None:
        """None for no time at all. edges_us: no piece reaches over them."""
        if not segments:
            return None
        start_us, end_us = min(start for _, start, _ in segments), max(end for _, _, end in segments)
        names = _names(store, Question(**asked, start_us=start_us, end_us=end_us))
        found = buckets(segments, [*names.changes(), *edges_us], oldest_minute_us)
        return cls(store, names, found) if found.steps else None

    @property
    def question(self) -> Question:
        return self.names.question

    def ask(self, statement: Callable[[Step], str], **lists: list[Any]) -> pl.DataFrame:
        """The rows of a statement about hours, and about minutes; each with the position of its piece.

        One statement for both would know nothing of the numbers that it sums, and sum them several times slower.
        """
        frames = [self._rows(step, statement, lists) for step in self.buckets.steps]
        return pl.concat(frames, how="diagonal_relaxed").join(self.buckets.frame(), on="piece")

    def _rows(self, step: Step, statement: Callable[[Step], str], lists: dict[str, list[Any]]) -> pl.DataFrame:
        """By what is kept of them; of many things that are told apart nothing is."""
        groups = max(len(set(ids)) for ids in lists.values())
        if groups > MOST_GROUPS:
            return self._read(step, statement, lists)

        def read(blocks: Iterable[Block]) -> pl.DataFrame:
            return self._read(step.of_blocks(blocks), statement, lists)

        blocks = step.blocks()
        asked = repr((statement(step.of_blocks(blocks[:1])), lists))
        what = hashlib.sha256(asked.encode()).digest()
        rows = self.store.blocks(what, blocks, step.bucket, read)
        return rows.join(step.pieces(), on=step.bucket).drop(step.bucket)

    def _read(self, step: Step, statement: Callable[[Step], str], lists: dict[str, list[Any]]) -> pl.DataFrame:
        """A statement gets the parameters that it names."""
        sql, given = statement(step), step.parameters | lists
        return self.store.query(sql, {name: given[name] for name in set(_PARAMETER.findall(sql))})


def _names(store: Reader, question: Question) -> Names:
    """Read again when something that they rest on has changed."""
    question, stamp = stamped(store, question)
    return store.once((question, stamp), lambda: Names.read(store, question))


def _counts(columns: Sequence[str]) -> str:
    return ", ".join(f"sum({name})::BIGINT AS {name}" for name in columns)


def _listed(rows: pl.DataFrame, keys: Sequence[str], *sums: pl.Expr) -> list[Row]:
    """One row per value of the keys, in their order, what has none last."""
    grouped = rows.group_by(keys).agg(*sums)
    return list(grouped.sort(keys, nulls_last=True).iter_rows(named=True))


def _use(scope: _Scope, grid: HourlyGrid | None) -> list[Row]:
    question = scope.question
    columns = ("gpu_id", "engine_id", "replica_gpus", "sharers", *_USE)
    only_fleet = "true" if question.fleet is None else f"{_GPU} IS NOT NULL"
    only_model = "true" if question.model is None else f"{_MODEL} IS NOT NULL"
    # grain: one row per piece, GPU and engine that stand for those like them, and size of the replica
    rows = scope.ask(
        lambda step: (
            f"""
        SELECT
            {step.place},
            {_GPU} AS gpu_id,
            {_MODEL} AS engine_id,
            replica_gpus,
            {exact.sums(_USE)},
            max(sharers) > 1 AS shared
        FROM ({step.rows("gpu_use", columns)}) AS one
        WHERE {only_fleet} AND {only_model}
        GROUP BY ALL
        """
        ),
        gpus=scope.names.alike_gpus,
        models=scope.names.alike_models,
    )
    engines = scope.names.engines.select("engine_id", "model", "url", "engine", "own_label")
    named = rows.join(scope.names.gpus, on="gpu_id").join(engines, on="engine_id", how="left")
    named = scope.names.place(named.with_columns(pl.col("engine_id").is_not_null().alias("allocated")))
    named = grid.weigh(named) if grid else named
    keys = ["position", "fleet", "model", "allocated", "gpu_name", "replica_gpus", *question.key]
    sums = (*_USE, *(WEIGHED if grid else ()))
    return _listed(named, keys, pl.sum(*sums), pl.col("shared").any(), pl.col("simulated").any())


def _engines(scope: _Scope) -> list[Row]:
    replicas = scope.names.replicas
    # grain: one row per piece, engine that stands for those like it, and span of an engine that moved.
    moves = _moves(replicas)
    rows = scope.ask(
        lambda step: (
            f"""
        SELECT
            {step.place},
            {_ENGINE} AS engine_id,
            {"span_us" if moves else "NULL::BIGINT AS span_us"},
            {_counts(_COUNTS)},
            {exact.sums(_SECONDS)}
        FROM ({step.rows("engine", ("engine_id", *_COUNTS, *_SECONDS))}) AS one {_MOVES if moves else ""}
        WHERE {_ENGINE} IS NOT NULL
        GROUP BY ALL
        """
        ),
        engines=scope.names.alike_engines,
        **moves,
    )
    by_gpu = scope.question.by == "gpu"
    rows = _of_pieces(rows) if by_gpu else rows
    rows = rows.join(_kinds(replicas), on=["engine_id", "span_us"], how="left", nulls_equal=True)
    rows = _each_gpu(rows) if by_gpu else rows
    named = scope.names.place(rows.join(scope.names.engines, on="engine_id"))
    keys = ["position", "fleet", "model", "gpu_name", "replica_gpus", *scope.question.key]
    is_unplaced = pl.col("uuids").is_null() & (pl.col("generated_tokens") > 0)
    return _listed(
        named.with_columns(_told(_FAILED, "failed"), _told(_FINISHED, "finished")),
        keys,
        *(_sum(name) for name in (*_COUNTS, "failed", "finished")),
        pl.sum(*_SECONDS),
        pl.col("engine_id").filter(is_unplaced).n_unique().alias("unplaced"),
        pl.col("simulated").any(),
    )


def _latency(scope: _Scope, metric: int) -> list[Row]:
    replicas = scope.names.replicas
    by_gpu = scope.question.by == "gpu"
    columns = ("engine_id", "lower_us", "upper_us", "n")
    # grain: one row per piece, engine that stands for those like it, latency bucket and, by GPU, span of one that moved
    moves = _moves(replicas) if by_gpu else {}
    # Few enough as they are, engines need not stand for each other.
    asked = scope.question.model is not None or scope.question.fleet is not None
    rows = scope.ask(
        lambda step: (
            f"""
        SELECT
            {step.place},
            {"one.engine_id" if step.is_one_piece else _ENGINE} AS engine_id,
            {"span_us" if moves else "NULL::BIGINT AS span_us"},
            lower_us,
            upper_us,
            sum(n)::BIGINT AS n
        FROM ({step.rows("engine_latency", columns, f"metric = {metric}")}) AS one {_MOVES if moves else ""}
        WHERE {f"{_ENGINE} IS NOT NULL" if asked else "true"}
        GROUP BY ALL
        """
        ),
        engines=scope.names.alike_engines,
        **moves,
    )
    if by_gpu:
        rows = rows.join(_kinds(replicas), on=["engine_id", "span_us"], how="left", nulls_equal=True)
        rows = rows.with_columns(_uuids().alias("gpu")).explode("gpu")
    named = scope.names.place(rows.join(scope.names.engines, on="engine_id"))
    return _listed(named, ["position", "fleet", "model", *scope.question.key, "lower_us", "upper_us"], pl.sum("n"))


def _moves(replicas: pl.DataFrame) -> dict[str, list[int]]:
    """What _MOVES is given: the spans of engines that had several; nothing where none had."""
    spans = replicas.filter(pl.col("span_us").is_not_null())
    if spans.is_empty():
        return {}
    return {"movers": spans["engine_id"].to_list(), "spans": spans["span_us"].to_list(),
            "span_ends": spans["to_us"].to_list()}  # fmt: skip


def _kinds(replicas: pl.DataFrame) -> pl.DataFrame:
    return replicas.drop("from_us", "to_us")


def _uuids() -> pl.Expr:
    """The GPUs of a row's engine, a single None while they are not known."""
    return pl.when(pl.col("uuids").is_null()).then(pl.lit([None], pl.List(pl.String))).otherwise("uuids")


def _of_pieces(rows: pl.DataFrame) -> pl.DataFrame:
    """What an engine did in a piece as one row, however it was read: its counts are shared out in whole numbers."""
    of_piece = rows.group_by("position", "piece", "piece_us", "engine_id", "span_us")
    return of_piece.agg(*(_sum(name) for name in _COUNTS), pl.sum(*_SECONDS))


def _each_gpu(rows: pl.DataFrame) -> pl.DataFrame:
    """A row per GPU of the row's engine: its part of the seconds, and of counts one in whole numbers that sum up."""
    parts, nth = pl.col("replica_gpus").fill_null(1), pl.col("nth")
    counts = (pl.col(name) * (nth + 1) // parts - pl.col(name) * nth // parts for name in _COUNTS)
    exploded = rows.with_columns(_uuids().alias("gpu"), pl.int_ranges(0, parts).alias("nth")).explode("gpu", "nth")
    return exploded.with_columns(*counts, *(pl.col(name) / parts for name in _SECONDS))


def _told(columns: Sequence[str], name: str) -> pl.Expr:
    """The sum of what is told; None where nothing is."""
    is_told = pl.any_horizontal(pl.col(*columns).is_not_null())
    return pl.when(is_told).then(pl.sum_horizontal(*columns)).alias(name)


def _sum(name: str) -> pl.Expr:
    """The same over rows."""
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
