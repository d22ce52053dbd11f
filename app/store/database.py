"""Opens the DuckDB file and guards it: one process owns it, one thread writes at a time, and one beside it rolls up."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars as pl

from app.errors import StoreBusy, StoreError
from app.store.hub_file import read_hub_file
from app.store.kept import Block, Kept, Made
from app.store.schema import migrate

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # For a new file: a row group's narrow columns fill 64 KiB blocks far better than the usual 256 KiB.
    "default_block_size": "65536",
    # Small commits go to the log; folding it into the file less often saves the hub a third of its work.
    "checkpoint_threshold": "128MB",
}

Purpose = Literal["user", "demo"]
Query = Callable[[str, list[Any] | dict[str, Any]], pl.DataFrame]


class Store:
    """An open store. Reads use a cursor each (MVCC); writes go through `transaction`, one at a time, rollups beside."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection = connection
        self._write_lock = threading.Lock()
        self._rollup_lock = threading.Lock()
        self.path = path
        self.benchmarks_revision = 0
        self.facts_revision = 0
        self.kept = Kept()

    @classmethod
    def open(cls, path: Path, *, purpose: Purpose = "user") -> Store:
        """Open or create the file and bring its schema up to date.

        Raises StoreBusy when another process owns it, StoreSchemaError for a newer or foreign file, else StoreError.
        """
        connection = _connect(path)
        try:
            connection.execute("SET TimeZone = 'UTC'")
            migrate(connection, str(path))
            if connection.execute("SELECT count(*) FROM store_purpose").fetchone() == (0,):
                connection.execute("INSERT INTO store_purpose VALUES ($1)", [purpose])
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def close(self) -> None:
        with self._write_lock, self._rollup_lock:
            self._connection.close()

    @property
    def purpose(self) -> Purpose:
        row = self._connection.cursor().execute("SELECT purpose FROM store_purpose").fetchone()
        return "demo" if row == ("demo",) else "user"

    def query(self, sql: str, parameters: list[Any] | dict[str, Any] | None = None) -> pl.DataFrame:
        """Rows of a SELECT as a Polars frame."""
        with self._connection.cursor() as cursor:
            frame: pl.DataFrame = cursor.sql(sql, params=parameters or []).pl()
            return frame

    def once(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """As a Reader: nothing is kept, as it may change from read to read."""
        return make()

    def blocks(
        self, what: Hashable, blocks: Sequence[Block], start: str, read: Callable[[Sequence[Block]], pl.DataFrame]
    ) -> pl.DataFrame:
        """As a Reader: nothing is kept."""
        return read(blocks)

    @contextmanager
    def snapshot(self) -> Iterator[Query]:
        """Several reads of one moment, by the function that is given: what is committed meanwhile is not seen."""
        with self.versioned_snapshot() as (query, _):
            yield query

    @contextmanager
    def versioned_snapshot(self) -> Iterator[tuple[Query, Mapping[int, int]]]:
        """A snapshot with the versions that its rollups have, see Kept."""
        with self._connection.cursor() as cursor:
            with self.kept.versions() as versions:
                cursor.execute("BEGIN")
                cursor.execute("SELECT 1 FROM store_purpose").fetchall()  # from here on it sees what it sees now
            yield (lambda sql, parameters: cursor.sql(sql, params=parameters).pl()), versions
            cursor.execute("ROLLBACK")

    @contextmanager
    def transaction(
        self, *, beside_ingest: bool = False, rebuilds: Block | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A write: committed when the block ends, rolled back when anything in it raises.

        beside_ingest: goes on while samples are written, as rollups do: it sees the store as it was at its beginning,
        and only touches tables that ingest does not, or rows of them that were there then. rebuilds: the span of time
        whose minutes and hours it builds anew.

        DuckDB answers COMMIT without an error after a failed statement, though it keeps nothing. So an error inside the
        block leads to ROLLBACK and goes on to the caller, and one that the block has swallowed is found by a statement
        before COMMIT, which fails in an aborted transaction.
        """
        lock = self._rollup_lock if beside_ingest else self._write_lock
        with lock, self._connection.cursor() as cursor:
            cursor.execute("BEGIN")
            try:
                yield cursor
                cursor.execute("SELECT 1")
                with self.kept.changing(rebuilds) if rebuilds else nullcontext():
                    cursor.execute("COMMIT")
            except BaseException:
                _roll_back(cursor)
                raise


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        cursor.execute("ROLLBACK")
    except duckdb.TransactionException:
        return  # a failed COMMIT has already ended the transaction


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.stat().st_size == 0:
            path.unlink()  # what a crash leaves between the file's creation and its first bytes
        return duckdb.connect(str(path), config=SETTINGS)
    except OSError as problem:
        raise StoreError(f"{path}: its folder cannot be made: {problem.strerror}. Name another with --db.") from None
    except duckdb.IOException as problem:
        raise _explain(path, str(problem)) from None
    except duckdb.Error as problem:
        raise StoreError(f"{path}: DuckDB cannot open it: {problem}") from None


def _explain(path: Path, problem: str) -> StoreError:
    if "Could not set lock on file" in problem:
        holder = re.search(r"\(PID (\d+)\)", problem)
        pid = int(holder[1]) if holder else None
        hub = read_hub_file(path)
        if hub and hub.pid == pid:
            served = f"{path} is served by the hub with pid {pid} at {hub.address}"
            return StoreBusy(f"{served}. Use that one, or stop it.", pid)
        return StoreBusy(f"{path} is in use by the process with pid {pid}. Wait for it, or stop it.", pid)
    if "not a valid DuckDB database file" in problem:
        return StoreError(f"{path} is not a DuckDB file. Name another file with --db.")
    return StoreError(f"{path}: DuckDB cannot open it: {problem}")
