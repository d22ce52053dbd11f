"""Points in order: each moment once, the newest word on it, the finest resolution; and long ranges in pieces."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from collectors.grid.point import IntensityPoint
from collectors.http.problem import UnusableAnswer

# An answer about "now" that is older than this is not about now.
MAX_LATEST_AGE = timedelta(hours=24)
_FINEST = timedelta(minutes=1)
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


def tidy(
    points: Iterable[IntensityPoint], start: datetime | None = None, end: datetime | None = None
) -> tuple[IntensityPoint, ...]:
    """The points of one zone that start in [start, end), in order; those of one basis and kind do not overlap.

    Of two points of the same stretch the one revised last counts, then one with a value, then the later in the list.
    Where resolutions are mixed, the finer counts and the coarser fills what it leaves. Averages stand after what is
    marginal at the same time.
    """
    apart: dict[tuple[str, str], list[IntensityPoint]] = {}
    for point in points:
        apart.setdefault((point.kind, point.basis), []).append(point)
    found = (point for alike in apart.values() for point in _tidy(alike, start, end))
    return tuple(sorted(found, key=lambda point: (point.start, point.kind == "average")))


def _tidy(points: Iterable[IntensityPoint], start: datetime | None, end: datetime | None) -> list[IntensityPoint]:
    chosen: dict[tuple[datetime, datetime], IntensityPoint] = {}
    for point in points:
        if (start is not None and point.start < start) or (end is not None and point.start >= end):
            continue
        rival = chosen.get((point.start, point.end))
        if rival is None or _rank(point) >= _rank(rival):
            chosen[point.start, point.end] = point
    ordered = sorted(chosen.values(), key=lambda point: point.start)
    if any(sooner.end > later.start for sooner, later in pairwise(ordered)):
        ordered = _without_overlap(sorted(ordered, key=lambda point: point.end - point.start))
    return ordered


def newest(points: Iterable[IntensityPoint], now: datetime) -> IntensityPoint:
    """What is best known about now: the value that covers it, else the last value before, else the last gap.

    Of an average and a marginal value that both do, the average.

    Raises UnusableAnswer where there is nothing up to now, or only what is older than a day.
    """
    begun = [point for point in tidy(points) if point.start <= now]
    if not begun:
        raise UnusableAnswer("the answer holds nothing up to now", "empty")
    best = sorted(begun, key=lambda point: (point.g_per_kwh is not None, point.end > now, point.kind == "average"))[-1]
    if now - best.end > MAX_LATEST_AGE:
        raise UnusableAnswer(f"the newest value ends {best.end:%Y-%m-%d %H:%M}Z, more than a day ago", "no_recent_data")
    return best


def chunks(start: datetime, end: datetime, longest: timedelta) -> list[tuple[datetime, datetime]]:
    """[start, end) in pieces of at most `longest`. Raises ValueError for a range that is none or lacks a time zone."""
    if start.tzinfo is None or end.tzinfo is None or start >= end:
        raise ValueError(f"a range has time zones and ends after it starts, not {start} to {end}")
    pieces, begin = [], start.astimezone(UTC)
    while begin < end:
        stop = min(begin + longest, end.astimezone(UTC))
        pieces.append((begin, stop))
        begin = stop
    return pieces


def step_of(starts: Sequence[datetime], otherwise: timedelta) -> timedelta:
    """The smallest distance of two starts: the resolution of a series that does not tell it.

    Raises UnusableAnswer below a minute, which no grid is told at.
    """
    ordered = sorted(set(starts))
    step = min((later - sooner for sooner, later in pairwise(ordered)), default=otherwise)
    if step < _FINEST:
        raise UnusableAnswer(f"its times are only {step.total_seconds():g} s apart")
    return step


def _rank(point: IntensityPoint) -> tuple[datetime, bool]:
    return point.revised_at or _LONG_AGO, point.g_per_kwh is not None


def _without_overlap(finest_first: Sequence[IntensityPoint]) -> list[IntensityPoint]:
    taken: list[IntensityPoint] = []  # ordered by start, without overlap
    for point in finest_first:
        index = bisect_left(taken, point.end, key=lambda other: other.start)
        begin, free = point.start, []
        first = index
        while first > 0 and taken[first - 1].end > point.start:
            first -= 1
        for other in taken[first:index]:
            if other.start > begin:
                free.append((begin, other.start))
            begin = max(begin, other.end)
        if begin < point.end:
            free.append((begin, point.end))
        pieces = [dataclasses.replace(point, start=since, end=until) for since, until in free]
        taken[first:index] = sorted([*taken[first:index], *pieces], key=lambda one: one.start)
    return taken
