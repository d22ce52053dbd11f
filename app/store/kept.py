"""Sums by hour or minute, and names, kept in memory: pages ask for the same month again and again, and little changes.

A block (a day of hours, an hour of minutes) is kept until one of its hours is built anew. A moment of the store takes
only blocks as they were when it began.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import polars as pl

from app.store.gpu_rollup import HOUR_US

# Of more GPUs or engines that are told apart, blocks are too long to keep: they are read each time.
MOST_GROUPS = 300
MOST_ROWS = 1_500_000
MOST_MADE = 64

Made = TypeVar("Made")
# (start, end) of a block in UTC microseconds
Block = tuple[int, int]


class Kept:
    """Used by any thread. Of what is kept the part that was longest not asked for goes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: defaultdict[int, int] = defaultdict(int)
        self._blocks: OrderedDict[tuple[Hashable, Block], tuple[int, pl.DataFrame]] = OrderedDict()
        self._rows = 0
        self._made: OrderedDict[Hashable, Any] = OrderedDict()

    def once(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """What was made of it before, unless that is long ago. what: all that it depends on."""
        with self._lock:
            if what in self._made:
                self._made.move_to_end(what)
                return cast(Made, self._made[what])
        made = make()
        with self._lock:
            self._made[what] = made
            while len(self._made) > MOST_MADE:
                self._made.popitem(last=False)
        return made

    @contextmanager
    def changing(self, span: Block) -> Iterator[None]:
        """While hours that lie in a span are committed anew: no moment begins meanwhile."""
        with self._lock:
            yield
            for hour_us in _hours(span):
                self._versions[hour_us] += 1

    @contextmanager
    def versions(self) -> Iterator[Mapping[int, int]]:
        """How often each hour was built anew, while a moment begins: nothing changes meanwhile."""
        with self._lock:
            yield dict(self._versions)

    def get(self, what: Hashable, block: Block, versions: Mapping[int, int]) -> pl.DataFrame | None:
        """The rows of a block as of those versions, if they are kept."""
        with self._lock:
            version, rows = self._blocks.get((what, block), (-1, None))
            if rows is None or version != _version(block, versions):
                return None
            self._blocks.move_to_end((what, block))
            return rows

    def put(self, what: Hashable, block: Block, versions: Mapping[int, int], rows: pl.DataFrame) -> None:
        """Keep the rows of a block that were read as of those versions."""
        with self._lock:
            _, before = self._blocks.pop((what, block), (0, None))
            self._rows -= 0 if before is None else _size(before)
            self._blocks[what, block] = (_version(block, versions), rows)
            self._rows += _size(rows)
            while self._rows > MOST_ROWS:
                _, (_, oldest) = self._blocks.popitem(last=False)
                self._rows -= _size(oldest)


def _hours(span: Block) -> range:
    return range(span[0] // HOUR_US * HOUR_US, span[1], HOUR_US)


def _version(block: Block, versions: Mapping[int, int]) -> int:
    """It grows with each of its hours that is built anew."""
    return sum(versions.get(hour_us, 0) for hour_us in _hours(block))


def _size(rows: pl.DataFrame) -> int:
    """A block without rows takes its place, too."""
    return rows.height + 1
