"""The one thread that writes samples: it commits many nodes' batches in one transaction.

A batch is acknowledged only after a COMMIT with no error before it in its transaction. When anything in a group fails,
all of it is rolled back and its batches are tried one by one, so that only the bad one is refused.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from datetime import UTC, datetime

import duckdb
import polars as pl

from app.errors import BatchRefused, Overloaded, StoreError
from app.store.database import Store
from app.store.ingest import Placed, check_ranges, insert_group, within
from app.store.nodes import Registry
from app.store.retention import DAY_US, raw_horizon_us
from collectors.samples import Batch

log = logging.getLogger("wattmix.writer")

MAX_QUEUE = 5_000
MAX_GROUP_BATCHES = 1_000
MAX_GROUP_ROWS = 400_000
FUTURE_S = 3600.0
STATES_EVERY_S = 2.0
# A commit costs much the same for one batch as for fifty: while several agents send at once, commits keep apart.
GATHER_S = 0.1
_LOOK_EVERY_S = 0.005

# one row per agent and epoch
_UPSERT_LEDGER = """
    INSERT INTO ledger SELECT agent, epoch, sequence FROM incoming_ledger
    ON CONFLICT (agent, epoch) DO UPDATE SET sequence = excluded.sequence
"""

# What a value in a batch can cause; anything else (a full disk, a closed file) is not the batch's fault.
_BAD_VALUE = (duckdb.ConversionException, duckdb.ConstraintException, duckdb.OutOfRangeException,
              pl.exceptions.PolarsError, OverflowError, TypeError)  # fmt: skip


@dataclass(frozen=True)
class Acknowledgement:
    """The batch is in the store. duplicate: it was there already. late_rows: rows left out for their time."""

    sequence: int
    duplicate: bool = False
    late_rows: int = 0


@dataclass
class WriterStats:
    """Counted since the hub started; what /metrics shows."""

    batches: int = 0
    duplicates: int = 0
    refused: int = 0
    overloaded: int = 0
    readings: int = 0
    late_rows: int = 0
    groups: int = 0
    group_errors: int = 0
    commit_s: float = 0.0
    last_commit: datetime | None = None


@dataclass
class _Waiting:
    batch: Batch
    readings: int
    future: Future[Acknowledgement] = field(default_factory=Future)


def utc_now() -> datetime:
    return datetime.now(UTC)


class SampleWriter:
    """Accepts batches from any thread; `close` commits what is queued and stops.

    now: the hub's clock. raw_days: how long raw samples are kept; older rows are refused and counted.
    """

    def __init__(
        self, store: Store, *, raw_days: float, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self.raw_days = raw_days
        self.raw_horizon_us = raw_horizon_us(store)
        self._now = now
        self._queue: queue.Queue[_Waiting | None] = queue.Queue(MAX_QUEUE)
        self._ledger: dict[tuple[str, str], int] = {
            (agent, epoch): sequence for agent, epoch, sequence in store.query("SELECT * FROM ledger").iter_rows()
        }
        self._registry = Registry(store)
        self._states_written = 0.0
        self._last_group = (0, 0.0)  # how many batches it had, and when it was committed
        self.stats = WriterStats()
        self._thread = threading.Thread(target=self._run, name="sample-writer", daemon=True)
        self._thread.start()

    def oldest_us(self, now_us: int) -> int:
        """Rows up to this time are refused: raw samples of it are not kept, or are gone already."""
        return max(now_us - int(self.raw_days * DAY_US), self.raw_horizon_us)

    @property
    def queued(self) -> int:
        return self._queue.qsize()

    def submit(self, batch: Batch, readings: int) -> Future[Acknowledgement]:
        """Queue a batch. The future gives its acknowledgement, or raises BatchRefused or StoreError.

        Raises Overloaded when the queue is full.
        """
        waiting = _Waiting(batch, readings)
        try:
            self._queue.put_nowait(waiting)
        except queue.Full:
            self.stats.overloaded += 1
            raise Overloaded(f"{MAX_QUEUE} batches are waiting already") from None
        return waiting.future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            group, ended = self._next_group()
            if group:
                self._commit(group)
            if ended or (not group and self._registry.has_news):
                self._write_states()

    def _write_states(self) -> None:
        """Nodes' states on their own, when no batch comes to carry them; they are rewritten with the next one."""
        try:
            with self._store.transaction() as connection:
                self._registry.write(connection, states=True)
            self._registry.commit()
        except duckdb.Error as problem:
            log.error("the nodes' states could not be written: %s", problem)

    def _next_group(self) -> tuple[list[_Waiting], bool]:
        """All that waits, up to the limits; and whether the end was asked for."""
        group: list[_Waiting] = []
        rows = 0
        try:
            item = self._queue.get(timeout=STATES_EVERY_S)
        except queue.Empty:
            return group, False
        self._gather()
        while item is not None:
            group.append(item)
            rows += sum(len(table) for table in item.batch.tables)
            if len(group) >= MAX_GROUP_BATCHES or rows >= MAX_GROUP_ROWS:
                return group, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _gather(self) -> None:
        """Let batches come together, if the last group shows that more than one agent is sending."""
        size, committed_at = self._last_group
        while size > 1 and self._queue.qsize() < size and time.monotonic() < committed_at + GATHER_S:
            time.sleep(_LOOK_EVERY_S)

    def _commit(self, group: Sequence[_Waiting]) -> None:
        began = time.perf_counter()
        try:
            answers = self._write(group)
        except Exception as problem:
            self._registry.forget()
            self.stats.group_errors += 1
            if len(group) > 1:
                log.warning("a group of %d batches was rolled back (%s); trying them one by one", len(group), problem)
                for waiting in group:
                    self._commit([waiting])
            else:
                self._refuse(group[0], problem)
            return
        self.stats.groups += 1
        self.stats.commit_s += time.perf_counter() - began
        self.stats.last_commit = self._now()
        self._last_group = (len(group), time.monotonic())
        for waiting, answer in zip(group, answers, strict=True):
            self._count(waiting, answer)
            _resolve(waiting.future, answer)

    def _write(self, group: Sequence[_Waiting]) -> list[Acknowledgement]:
        """One transaction: ledger, ids, samples. Answers in the group's order."""
        now = self._now()
        ledger: dict[tuple[str, str], int] = {}
        answers: list[Acknowledgement] = []
        accepted: list[tuple[Placed, int]] = []
        for waiting in group:
            key = (waiting.batch.agent, waiting.batch.epoch)
            highest = ledger.get(key, self._ledger.get(key, 0))
            if waiting.batch.sequence <= highest:
                answers.append(Acknowledgement(waiting.batch.sequence, duplicate=True))
                continue
            ledger[key] = waiting.batch.sequence
            placed = self._place(waiting.batch, now)
            if placed.late_rows:
                waiting.readings = placed.batch.readings
            accepted.append((placed, waiting.batch.sequence - highest - 1))
            answers.append(Acknowledgement(waiting.batch.sequence, late_rows=placed.late_rows))
        if not accepted:
            return answers
        with self._store.transaction() as connection:
            insert_group(connection, [placed for placed, _ in accepted])
            self._write_ledger(connection, ledger)
            # States of the batches before these: this group's are noted once they are committed.
            self._registry.write(connection, states=self._states_due())
        self._registry.commit()
        self._ledger |= ledger
        for placed, skipped in accepted:
            self._registry.note(placed.batch, placed.node_id, now, late_rows=placed.late_rows, skipped_batches=skipped)
        return answers

    def _place(self, batch: Batch, now: datetime) -> Placed:
        now_us = int(now.timestamp() * 1e6)
        kept, late = within(batch, self.oldest_us(now_us), now_us + int(FUTURE_S * 1e6))
        node_id = self._registry.node_id(kept, now)
        gpu_ids = self._registry.gpu_ids(batch, node_id, now)
        engines = self._registry.engines
        return Placed(kept, node_id, gpu_ids, engines.ids(kept, node_id, now), engines.layouts(kept), late)

    def _states_due(self) -> bool:
        due = time.monotonic() - self._states_written > STATES_EVERY_S
        if due:
            self._states_written = time.monotonic()
        return due

    def _write_ledger(self, connection: duckdb.DuckDBPyConnection, ledger: dict[tuple[str, str], int]) -> None:
        rows = [(agent, epoch, sequence) for (agent, epoch), sequence in ledger.items()]
        frame = pl.DataFrame(rows, schema=["agent", "epoch", "sequence"], orient="row")
        connection.register("incoming_ledger", frame)
        connection.execute(_UPSERT_LEDGER)
        connection.unregister("incoming_ledger")

    def _refuse(self, waiting: _Waiting, problem: Exception) -> None:
        if isinstance(problem, _BAD_VALUE):
            self.stats.refused += 1
            _resolve(waiting.future, _blame(waiting.batch, problem))
            return
        log.error("a batch could not be committed: %s", problem)
        _resolve(waiting.future, StoreError(f"the store could not commit: {_first_line(problem)}"))

    def _count(self, waiting: _Waiting, answer: Acknowledgement) -> None:
        if answer.duplicate:
            self.stats.duplicates += 1
            return
        self.stats.batches += 1
        self.stats.readings += waiting.readings
        self.stats.late_rows += answer.late_rows


def _blame(batch: Batch, problem: Exception) -> BatchRefused:
    """The refusal of a batch that the store would not take: by the field where that can be told."""
    try:
        check_ranges(batch)
    except BatchRefused as refusal:
        return refusal
    return BatchRefused(f"the batch cannot be stored: {_first_line(problem)}")


def _first_line(problem: Exception) -> str:
    return (str(problem) or type(problem).__name__).splitlines()[0]


def _resolve(future: Future[Acknowledgement], answer: Acknowledgement | Exception) -> None:
    """Give a caller its answer, unless it has gone away meanwhile."""
    with contextlib.suppress(InvalidStateError):
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
