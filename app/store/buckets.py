"""Which minutes and hours a stretch of time is read from.

A segment is read from whole hours, and at its edges from minutes while they are kept; where they are not, an hour
counts where it begins. Where a node changes its fleet a segment is cut, so that within a piece each node has one fleet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import polars as pl

from app.store.gpu_rollup import HOUR_US
from app.store.ingest import MINUTE_US
from app.store.kept import Block

# (position in the caller's list, start, end) in UTC microseconds. A position may have several; none overlap.
Segment = tuple[int, int, int]
# (start, end, piece): buckets that follow each other
Run = tuple[int, int, int]
_HOURS, _MINUTES = 24, HOUR_US // MINUTE_US


@dataclass(frozen=True)
class Step:
    """The buckets of one length that are read: rows of <table>_hour or <table>_minute.

    They are read by the ranges they lie in, so that a store skips the rest of its rows unseen. apart: rows of different
    buckets are told apart by their start, not by their piece alone.
    """

    name: Literal["hour", "minute"]
    length_us: int
    runs: Sequence[Run]
    apart: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """What a statement with `rows` is given."""
        bounds = {f"{name}_{number}": us for number, run in enumerate(self._ranges()) for name, us in run.items()}
        if self.is_one_piece or self.apart:
            return bounds
        first_us = min(start for start, _, _ in self.runs) // HOUR_US * HOUR_US
        return bounds | {
            "first_hour": first_us,
            **(self._hours(first_us) if self.name == "hour" else self._minutes(first_us)),
        }

    @property
    def is_one_piece(self) -> bool:
        return not self.apart and len({piece for _, _, piece in self.runs}) == 1

    @property
    def bucket(self) -> str:
        """The column of a bucket's start."""
        return f"{self.name}_us"

    @property
    def place(self) -> str:
        """The column by which rows are told apart."""
        return self.bucket if self.apart else "piece"

    def pieces(self) -> pl.DataFrame:
        """One row per bucket: its start and its piece."""
        pairs = [(us, piece) for start, end, piece in self.runs for us in range(start, end, self.length_us)]
        return pl.DataFrame(pairs, schema={self.bucket: pl.Int64, "piece": pl.Int32}, orient="row")

    def blocks(self) -> list[Block]:
        """The days of its hours, or the hours of its minutes."""
        length_us = self.length_us * (_HOURS if self.name == "hour" else _MINUTES)
        starts = {
            start
            for span in self._ranges()
            for start in range(span["from"] // length_us * length_us, span["to"], length_us)
        }
        return [(start, start + length_us) for start in sorted(starts)]

    def of_blocks(self, blocks: Iterable[Block]) -> Step:
        """All its buckets of blocks."""
        return Step(self.name, self.length_us, [(start, end, 0) for start, end in blocks], apart=True)

    def rows(self, table: str, columns: Sequence[str], where: str = "true") -> str:
        """A SELECT of columns with the place and the end_us of their bucket."""
        bucket = self.bucket
        ranges = " OR ".join(f"{bucket} >= $from_{n} AND {bucket} < $to_{n}" for n, _ in enumerate(self._ranges()))
        return f"""
            SELECT {self._piece(bucket)} AS {self.place}, {bucket} + {self.length_us} AS end_us, {", ".join(columns)}
            FROM {table}_{self.name} WHERE ({ranges}) AND {where}
        """

    def _piece(self, bucket: str) -> str:
        """Looked up by the bucket's number: far cheaper than a join."""
        if self.apart:
            return bucket
        if self.is_one_piece:
            return f"{self.runs[0][2]}::INTEGER"
        hour = f"({bucket} - $first_hour) // {HOUR_US} + 1"
        if self.name == "hour":
            return f"list_extract($pieces::INTEGER[], {hour})"
        minute = f"list_extract($places::INTEGER[], {hour}) + {bucket} % {HOUR_US} // {MINUTE_US}"
        return f"list_extract($pieces::INTEGER[], {minute})"

    def _ranges(self) -> list[dict[str, int]]:
        """From and to of runs, those that follow each other as one."""
        found: list[dict[str, int]] = []
        for start, end, _ in sorted(self.runs):
            if found and found[-1]["to"] == start:
                found[-1]["to"] = end
            else:
                found.append({"from": start, "to": end})
        return found

    def _hours(self, first_us: int) -> dict[str, Any]:
        """The piece of each hour from the first on."""
        count = (max(end for _, end, _ in self.runs) - first_us) // HOUR_US
        pieces: list[int | None] = [None] * count
        for start, end, piece in self.runs:
            low, high = (start - first_us) // HOUR_US, (end - first_us) // HOUR_US
            pieces[low:high] = [piece] * (high - low)
        return {"pieces": pieces}

    def _minutes(self, first_us: int) -> dict[str, Any]:
        """The pieces of the minutes of each hour that is touched, and where those of an hour begin, from 1 on."""
        places: dict[int, int] = {}
        pieces: list[int | None] = []
        for start, end, piece in self.runs:
            for us in range(start, end, MINUTE_US):
                hour = (us - first_us) // HOUR_US
                if hour not in places:
                    places[hour] = len(pieces) + 1
                    pieces += [None] * _MINUTES
                pieces[places[hour] - 1 + us % HOUR_US // MINUTE_US] = piece
        return {"pieces": pieces, "places": [places.get(hour) for hour in range(max(places) + 1)]}


@dataclass(frozen=True)
class Buckets:
    """pieces: (position, start) of each. hours, minutes: the buckets of each piece."""

    pieces: list[tuple[int, int]] = field(default_factory=list)
    hours: list[Run] = field(default_factory=list)
    minutes: list[Run] = field(default_factory=list)

    @property
    def steps(self) -> list[Step]:
        """What is read."""
        steps = (Step("hour", HOUR_US, self.hours), Step("minute", MINUTE_US, self.minutes))
        return [step for step in steps if step.runs]

    def frame(self) -> pl.DataFrame:
        """One row per piece: position, piece_us."""
        schema = {"position": pl.Int64, "piece_us": pl.Int64}
        pieces = pl.DataFrame(self.pieces, schema=schema, orient="row")
        return pieces.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("piece"))


def buckets(segments: Iterable[Segment], changes: Iterable[int], oldest_minute_us: int) -> Buckets:
    """The hours and minutes that begin in the segments.

    changes: moments at which a node changes its fleet. oldest_minute_us: minutes before it may be gone.
    """
    found = Buckets()
    edges = sorted({_up_to(MINUTE_US, change) for change in changes})
    for position, start, end in segments:
        inside = edges[bisect_right(edges, start) : bisect_left(edges, end)]
        for low, high in pairwise((start, *inside, end)):
            for begin, until in _parts(low, high):
                _add(found, begin, until, oldest_minute_us)
            found.pieces.append((position, low))
    return found


def _add(found: Buckets, start: int, end: int, oldest_minute_us: int) -> None:
    is_gone = start // HOUR_US * HOUR_US < oldest_minute_us
    is_whole = start % HOUR_US == 0 and end % HOUR_US == 0
    into, length_us = (found.hours, HOUR_US) if is_gone or is_whole else (found.minutes, MINUTE_US)
    first, last = _up_to(length_us, start), _up_to(length_us, end)
    if first < last:
        into.append((first, last, len(found.pieces)))


def _parts(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut at the first and the last full hour."""
    first, last = _up_to(HOUR_US, start), end // HOUR_US * HOUR_US
    edges = (start, end) if first > last else (start, first, last, end)
    return ((low, high) for low, high in pairwise(edges) if low < high)


def _up_to(step: int, moment: int) -> int:
    return -(-moment // step) * step
