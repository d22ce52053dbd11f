"""Minute and hour rollups of samples: incremental, idempotent, rebuilt for late data while its raw samples live."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import polars as pl

from app.store import engine_rollup, gpu_rollup, use_marks
from app.store.database import Store
from app.store.gpu_rollup import HOUR_US
from app.store.ingest import MINUTE_US
from app.store.use_rollup import roll_up_use

# A minute is rolled up once it has ended and the pushes that carry it have had time to arrive.
SETTLE_US = 15_000_000
# At most this many (GPU or engine, minute) pairs of one day in a transaction: ingest never waits long behind a rebuild.
MAX_PAIRS = 100_000
SPAN_US = 24 * HOUR_US


@dataclass(frozen=True)
class _Table:
    """A pair of rollup tables, `<name>_minute` and `<name>_hour`, and the statements that fill them."""

    name: str
    rebuild_minutes: str
    rebuild_hours: str


@dataclass(frozen=True)
class _Subject:
    """What is rolled up: the key of its rows, where its dirty minutes are noted, its tables (the first one counts).

    mark_use: notes the GPUs whose use rests on the minutes that were rebuilt.
    """

    key: str
    dirty: str
    tables: tuple[_Table, ...]
    mark_use: str


SUBJECTS = (
    _Subject(
        "gpu_id",
        "dirty_minute",
        (_Table("gpu", gpu_rollup.REBUILD_MINUTES, gpu_rollup.REBUILD_HOURS),),
        use_marks.OF_GPUS,
    ),
    _Subject(
        "engine_id",
        "dirty_engine_minute",
        (
            _Table("engine", engine_rollup.REBUILD_MINUTES, engine_rollup.REBUILD_HOURS),
            _Table("engine_latency", engine_rollup.REBUILD_LATENCY_MINUTES, engine_rollup.REBUILD_LATENCY_HOURS),
        ),
        use_marks.OF_ENGINES,
    ),
)


def _take_dirty(subject: _Subject) -> str:
    return f"""
        SELECT DISTINCT {subject.key}, minute_us FROM {subject.dirty}
        WHERE minute_us < $1 AND minute_us < (SELECT min(minute_us) FROM {subject.dirty}) + $2
        ORDER BY minute_us, {subject.key} LIMIT $3
    """


def _touched(subject: _Subject) -> str:
    """One row per pair to rebuild; a minute whose raw samples are gone is only built if it has no row yet."""
    return f"""
        CREATE OR REPLACE TEMP TABLE touched AS
        SELECT due.{subject.key}, due.minute_us
        FROM due
        WHERE due.minute_us >= $1
           OR NOT EXISTS (
               FROM {subject.tables[0].name}_minute AS built
               WHERE built.{subject.key} = due.{subject.key} AND built.minute_us = due.minute_us
           )
    """


def _touched_hours(key: str) -> str:
    return f"""
        CREATE OR REPLACE TEMP TABLE touched_hour AS
        SELECT DISTINCT {key}, minute_us // {HOUR_US} * {HOUR_US} AS hour_us FROM touched
        WHERE minute_us // {HOUR_US} * {HOUR_US} >= $1
    """


def _delete(table: str, using: str, key: str, bucket: str) -> str:
    return f"""
        DELETE FROM {table} USING {using}
        WHERE {table}.{key} = {using}.{key} AND {table}.{bucket} = {using}.{bucket}
    """


def roll_up(store: Store, now_us: int, *, oldest_raw_us: int, oldest_minute_us: int) -> int:
    """Rebuild the minutes and hours that samples have touched since, up to MAX_PAIRS each, then the use of GPUs that
    rests on them; how many minutes of GPUs and engines and hours of use that were.

    oldest_raw_us, oldest_minute_us: raw samples and minutes before these may have been deleted. An hour is rebuilt
    only while all its minutes exist. Safe to repeat: a bucket is deleted and built again from what it covers.
    """
    settled_us = now_us - MINUTE_US - SETTLE_US
    pairs = sum(_roll_up(store, subject, settled_us, oldest_raw_us, oldest_minute_us) for subject in SUBJECTS)
    return pairs + roll_up_use(store, settled_us, oldest_minute_us)


def _roll_up(store: Store, subject: _Subject, settled_us: int, oldest_raw_us: int, oldest_minute_us: int) -> int:
    due = store.query(_take_dirty(subject), [settled_us, SPAN_US, MAX_PAIRS])
    if due.is_empty():
        return 0
    first, last = _bounds(due)
    key = subject.key
    with store.transaction(beside_ingest=True, rebuilds=(first, last + MINUTE_US)) as connection:
        connection.register("due", due)
        connection.execute(_touched(subject), [-(-oldest_raw_us // MINUTE_US) * MINUTE_US])
        connection.execute(_touched_hours(key), [oldest_minute_us])
        for table in subject.tables:
            _rebuild(connection, table, key, first, last)
        connection.execute(subject.mark_use)
        connection.execute(_delete(subject.dirty, "due", key, "minute_us"))
        connection.unregister("due")
    return due.height


def _rebuild(connection: duckdb.DuckDBPyConnection, table: _Table, key: str, first: int, last: int) -> None:
    connection.execute(_delete(f"{table.name}_minute", "touched", key, "minute_us"))
    connection.execute(table.rebuild_minutes, [first, last + MINUTE_US])
    connection.execute(_delete(f"{table.name}_hour", "touched_hour", key, "hour_us"))
    connection.execute(table.rebuild_hours, [first // HOUR_US * HOUR_US, last])


def _bounds(due: pl.DataFrame) -> tuple[int, int]:
    minutes = due["minute_us"]
    return int(minutes[0]), int(minutes[-1])


def waiting_minutes(store: Store) -> int:
    """(GPU or engine, minute) pairs that wait for their rollup, or a GPU's for that of its use: the rollups' lag."""
    marks = [(one.key, one.dirty) for one in SUBJECTS] + [("gpu_id", "dirty_use_minute")]
    counts = (f"(SELECT count(*) FROM (SELECT DISTINCT {key}, minute_us FROM {dirty}))" for key, dirty in marks)
    return int(store.query(f"SELECT {' + '.join(counts)} AS n")["n"][0])
