"""The agent's spool: batches on disk until the hub has acknowledged them.

One SQLite file in WAL mode with synchronous=FULL: what `append` has returned survives a killed process and a power cut.
A batch is named by (epoch, sequence). The epoch is random and made with the file; the sequence counts from 1 and is
never used twice within an epoch, because it lives in the file and moves in the transaction that stores the batch. So
does the meter's state: after a crash, counters go on from exactly the readings that were stored.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors.samples import Batch, encode
from collectors.spool_file import SpoolError, SpoolLock, is_corrupt, open_file, set_aside

DEFAULT_MAX_BYTES = 512_000_000
DEFAULT_MAX_AGE_S = 6 * 86_400.0  # below the hub's 7 days of raw data: what arrives later would be refused there
KEPT_REJECTED = 20

_FREE_PAGES = 256  # kept for the next batches; what is free beyond them goes back to the disk

_ADD = "INSERT INTO batch (sequence, body, first_t_us, last_t_us, readings) VALUES (?, ?, ?, ?, ?)"
_OLDEST = "SELECT sequence, body, first_t_us, last_t_us, readings FROM batch ORDER BY sequence LIMIT 1"
_OLDEST_SIZE = "SELECT sequence, first_t_us, last_t_us FROM batch ORDER BY sequence LIMIT 1"
_SIZES = "SELECT count(*), coalesce(sum(length(body)), 0) FROM batch"
_PUT = "INSERT INTO state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_SET_ASIDE = """
    INSERT OR REPLACE INTO rejected (sequence, body, reason) SELECT sequence, body, ? FROM batch WHERE sequence = ?
"""
_FORGET_REJECTED = """
    DELETE FROM rejected WHERE sequence NOT IN (SELECT sequence FROM rejected ORDER BY sequence DESC LIMIT ?)
"""


@dataclass(frozen=True)
class Entry:
    """A stored batch. body: the bytes as they are sent; first_t_us, last_t_us: UTC microseconds its rows cover."""

    epoch: str
    sequence: int
    body: bytes
    first_t_us: int
    last_t_us: int
    readings: int


@dataclass(frozen=True)
class SpoolFigures:
    """What the spool holds, and what it has lost since its file was made.

    bytes: of the stored batches' bodies; dropped_batches: given up for size or age; rejected_batches: refused by the
    hub; corrupt_files: spool files set aside so far.
    """

    batches: int
    bytes: int
    oldest_t_us: int | None
    dropped_batches: int
    rejected_batches: int
    corrupt_files: int


class Spool:
    """One process's spool; safe to use from several threads. A method that raises SpoolError has changed nothing.

    max_bytes, max_age_s: bounds; the oldest batches beyond them are dropped and counted. Age is measured from the
    newest batch's own time. A corrupt file is set aside beside the spool and a new one begins, with a new epoch.
    """

    _connection: sqlite3.Connection
    _epoch: str
    _batches: int
    _bytes: int

    def __init__(self, path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES, max_age_s: float = DEFAULT_MAX_AGE_S) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_age_us = int(max_age_s * 1e6)
        self._guard = threading.RLock()
        self._lock = SpoolLock(path)
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise

    @property
    def epoch(self) -> str:
        """32 hex digits that name this spool file."""
        return self._epoch

    def append(self, batch: Batch, state: Mapping[str, Any] | None = None, *, lost_batches: int = 0) -> int:
        """Store `batch` under the next sequence, and `state` with it, or neither. Returns the sequence.

        The batch's own epoch and sequence are replaced. lost_batches: batches that never reached the spool, to count.
        """
        first_t_us, last_t_us = time_span(batch)
        with self._transaction() as connection:
            sequence = int(self._get("next_sequence", 1))
            body = encode(batch.model_copy(update={"epoch": self._epoch, "sequence": sequence}))
            connection.execute(_ADD, (sequence, body, first_t_us, last_t_us, batch.readings))
            self._batches, self._bytes = self._batches + 1, self._bytes + len(body)
            dropped = self._bound(keep=sequence, oldest_us=last_t_us - self._max_age_us) + lost_batches
            if dropped:
                self._put("dropped_batches", self._get("dropped_batches", 0) + dropped)
            for key, value in {**(state or {}), "next_sequence": sequence + 1}.items():
                self._put(key, value)
        return sequence

    def oldest(self) -> Entry | None:
        """The batch to send next, or None when all are acknowledged."""
        with self._transaction(reads=True) as connection:
            row = connection.execute(_OLDEST).fetchone()
            return None if row is None else Entry(self._epoch, *row)

    def acknowledge(self, entry: Entry) -> None:
        """The hub has `entry`: forget it. It is no error when it is gone already (dropped for size meanwhile)."""
        with self._transaction():
            if entry.epoch == self._epoch:
                self._delete(entry.sequence)
        self._shrink()

    def reject(self, entry: Entry, reason: str) -> None:
        """The hub will never take `entry`: put it aside, with the reason, and count it. The last few are kept."""
        with self._transaction() as connection:
            if entry.epoch != self._epoch:
                return
            connection.execute(_SET_ASIDE, (reason, entry.sequence))
            connection.execute(_FORGET_REJECTED, (KEPT_REJECTED,))
            if self._delete(entry.sequence):
                self._put("rejected_batches", self._get("rejected_batches", 0) + 1)

    def rejected(self) -> dict[int, str]:
        """Sequence -> reason of the batches that were put aside and are still kept."""
        with self._transaction(reads=True) as connection:
            return dict(connection.execute("SELECT sequence, reason FROM rejected ORDER BY sequence").fetchall())

    def state(self, key: str) -> Any:
        """What `append` stored under `key`; None if nothing."""
        with self._transaction(reads=True):
            return self._get(key, None)

    def figures(self) -> SpoolFigures:
        """What it holds and has lost."""
        with self._transaction(reads=True) as connection:
            oldest = connection.execute(_OLDEST_SIZE).fetchone()
            lost = [self._get(key, 0) for key in ("dropped_batches", "rejected_batches", "corrupt_files")]
            return SpoolFigures(self._batches, self._bytes, oldest[1] if oldest else None, *lost)

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        with self._guard:
            self._connection.close()
            self._lock.release()

    def _open(self) -> None:
        try:
            try:
                self._connection = open_file(self.path)
            except sqlite3.DatabaseError as problem:
                if not is_corrupt(problem):
                    raise
                number = set_aside(self.path)
                self._connection = open_file(self.path)
                self._put("corrupt_files", number)
            if self._get("epoch", None) is None:
                self._put("epoch", secrets.token_hex(16))
            self._epoch = str(self._get("epoch", None))
            self._batches, self._bytes = self._connection.execute(_SIZES).fetchone()
        except sqlite3.Error as problem:
            raise SpoolError.of(self.path, problem) from problem
        except OSError as problem:
            raise SpoolError(f"the spool {self.path} cannot be set aside: {problem.strerror}") from problem

    @contextmanager
    def _transaction(self, *, reads: bool = False) -> Iterator[sqlite3.Connection]:
        """All or nothing, one thread at a time. Raises SpoolError; when the file was corrupt a new one has begun."""
        with self._guard:
            before = (self._batches, self._bytes)
            try:
                self._connection.execute("BEGIN" if reads else "BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except sqlite3.Error as problem:
                self._roll_back(before)
                if not is_corrupt(problem):
                    raise SpoolError.of(self.path, problem) from problem
                self._connection.close()
                self._open_anew()
                raise SpoolError(f"the spool {self.path} was corrupt: it is set aside and a new one begun") from problem
            except BaseException:
                self._roll_back(before)
                raise

    def _roll_back(self, before: tuple[int, int]) -> None:
        self._batches, self._bytes = before
        # Where SQLite rolled back by itself, or the file is closed, there is nothing to roll back.
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")

    def _open_anew(self) -> None:
        """Set the file aside even where its quick check passes: a statement has just found it damaged."""
        try:
            number = set_aside(self.path)
        except OSError as problem:
            raise SpoolError(f"the corrupt spool {self.path} cannot be set aside: {problem.strerror}") from problem
        self._open()
        self._put("corrupt_files", number)

    def _bound(self, *, keep: int, oldest_us: int) -> int:
        """Drop the oldest while they are too old or too much, never `keep`. Returns how many."""
        dropped = 0
        while True:
            sequence, _, last_t_us = self._connection.execute(_OLDEST_SIZE).fetchone()
            if sequence == keep or (last_t_us >= oldest_us and self._bytes <= self._max_bytes):
                return dropped
            self._delete(sequence)
            dropped += 1

    def _delete(self, sequence: int) -> bool:
        gone = self._connection.execute("DELETE FROM batch WHERE sequence = ? RETURNING length(body)", (sequence,))
        sizes = gone.fetchall()
        self._batches, self._bytes = self._batches - len(sizes), self._bytes - sum(size for (size,) in sizes)
        return bool(sizes)

    def _shrink(self) -> None:
        """Give a part of the free space back to the disk: a file that grew in an outage gets small again."""
        with self._guard, suppress(sqlite3.Error):
            free = self._connection.execute("PRAGMA freelist_count").fetchone()[0]
            if free > _FREE_PAGES:
                self._connection.execute(f"PRAGMA incremental_vacuum({min(free - _FREE_PAGES, 64)})").fetchall()

    def _get(self, key: str, default: Any) -> Any:
        row = self._connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    def _put(self, key: str, value: Any) -> None:
        self._connection.execute(_PUT, (key, json.dumps(value)))


def time_span(batch: Batch) -> tuple[int, int]:
    """UTC microseconds of the first and last row of a batch; its sending time where it has no rows."""
    times = [t_us for table in batch.tables for t_us in table.t_us] or [batch.node.sent_at_us]
    return min(times), max(times)
