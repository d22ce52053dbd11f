"""When deferrable work emits least: the window of a forecast with the lowest mean intensity. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise


@dataclass(frozen=True)
class Stretch:
    """g/kWh that is forecast for [start, end)."""

    start: datetime
    end: datetime
    g_per_kwh: float


@dataclass(frozen=True)
class Window:
    """g_per_kwh: its mean over time. saved_share: by how much less than the mean of all that is forecast."""

    start: datetime
    end: datetime
    g_per_kwh: float
    saved_share: float


def best_window(forecast: Sequence[Stretch], length: timedelta) -> Window | None:
    """The window of that length with the lowest mean, the first of equal ones; None where no such time is forecast.

    forecast: in order of time, without overlap. A window lies in stretches without a gap. The mean is piecewise linear
    in where the window begins, so its least is where the window begins or ends with a stretch.
    """
    whole = _mean(forecast)
    found: Window | None = None
    for run in _runs(forecast):
        starts = {one.start for one in run} | {one.end - length for one in run}
        for start in sorted(start for start in starts if run[0].start <= start and start + length <= run[-1].end):
            mean = _mean(_cut(run, start, start + length))
            if found is None or mean < found.g_per_kwh - 1e-9:
                found = Window(start, start + length, mean, 1 - mean / whole if whole else 0.0)
    return found


def _runs(forecast: Sequence[Stretch]) -> list[list[Stretch]]:
    """Stretches that follow each other without a gap."""
    runs = [[forecast[0]]] if forecast else []
    for before, after in pairwise(forecast):
        if before.end == after.start:
            runs[-1].append(after)
        else:
            runs.append([after])
    return runs


def _cut(run: Sequence[Stretch], start: datetime, end: datetime) -> list[Stretch]:
    inside = (one for one in run if one.end > start and one.start < end)
    return [Stretch(max(one.start, start), min(one.end, end), one.g_per_kwh) for one in inside]


def _mean(stretches: Sequence[Stretch]) -> float:
    seconds = [(one.end - one.start).total_seconds() for one in stretches]
    return sum(one.g_per_kwh * s for one, s in zip(stretches, seconds, strict=True)) / sum(seconds) if seconds else 0.0
