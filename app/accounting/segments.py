"""Time cut into segments in which no fact changes: within one, a price, a tariff or a PUE is one number. Pure.

Edges are whole minutes, the smallest buckets that are kept. A change counts from the first whole minute at or after it,
so that it changes nothing before it is valid.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from app import units
from app.accounting.periods import Period

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Segment:
    """[start, end) in UTC, part of periods[period]."""

    period: int
    start: datetime
    end: datetime

    @property
    def bounds_us(self) -> tuple[int, int]:
        """Its ends in microseconds since 1970."""
        return units.us_of_moment(self.start), units.us_of_moment(self.end)


def cut(periods: Sequence[Period], changes: Iterable[datetime]) -> list[Segment]:
    """The segments of `periods`, in their order: they partition each period at `changes`."""
    edges = edges_of(changes)
    return [
        Segment(number, start, end)
        for number, period in enumerate(periods)
        for start, end in pairwise((period.start, *_inside(period, edges), period.end))
    ]


def edges_of(changes: Iterable[datetime]) -> list[datetime]:
    """From when on changes count, in order."""
    return sorted({change + (units.EPOCH - change) % _MINUTE for change in changes})


def _inside(period: Period, edges: Sequence[datetime]) -> Sequence[datetime]:
    return edges[bisect_right(edges, period.start) : bisect_left(edges, period.end)]
