"""From what an engine has counted since its process began to what it did between two looks (design law 5).

An epoch is one process. Inside it a column's delta is its rise; at the start of a process that began since the last
look everything counts from 0; where nobody saw the start, the first look is only a baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from collectors.engine.reading import EngineReading, Histogram
from collectors.samples import LatencyMetric

MAX_INTERVAL_US = 366 * 86_400_000_000  # samples.Intervals: a longer one is not bridged
MAX_ABSENT = 1_024
_SAME_START_US = 1_000_000
_LARGEST = 2**63 - 1
_LARGEST_OF_REQUESTS = 2**31 - 1
# Columns that a row keeps in 31 bits.
_REQUESTS = frozenset(
    {"finished_stop", "finished_length", "finished_aborted", "finished_failed", "rejected", "preemptions"}
)

Key = tuple[str, str | None]


@dataclass(frozen=True)
class HistogramDelta:
    """Observations per bucket of the reading's own bounds; sum_us None where the sum fell, as a stepped clock does."""

    counts: tuple[int, ...]
    sum_us: int | None


@dataclass(frozen=True)
class Interval:
    """What one engine did in (t - dt, t]. A column or histogram that is left out is unknown for this interval.

    reading: of the moment t, with the gauges and the buckets' bounds.
    """

    reading: EngineReading
    t_us: int
    dt_us: int
    counters: Mapping[str, int]
    histograms: Mapping[LatencyMetric, HistogramDelta]

    @property
    def key(self) -> Key:
        return self.reading.label, self.reading.model


@dataclass
class _Engine:
    """The last that was seen of an engine, in its present epoch. absent: the last complete look did not show it."""

    label: str
    model: str | None
    seen_us: int
    started_us: int | None
    counters: dict[str, int]
    histograms: dict[LatencyMetric, Histogram]
    absent: bool = False


@dataclass
class _State:
    """looked_us: the last complete look, one that says of each engine of the URL whether it is there."""

    looked_us: int | None = None
    engines: list[_Engine] = field(default_factory=list)


@dataclass(frozen=True)
class _Base:
    """What a delta counts from, and since when; started_us: of the process that is continued."""

    since_us: int
    started_us: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    histograms: Mapping[LatencyMetric, Histogram] = field(default_factory=dict)


_STATE = TypeAdapter(_State)


class Differences:
    """The engines of one URL, from look to look.

    Its state goes into the spool together with the rows, so that after a restart of the agent the next delta spans it.
    """

    def __init__(self, state: object = None) -> None:
        """state: as `state()` gave it, None for a URL that was never looked at. Raises ValueError for anything else."""
        try:
            known = _State() if state is None else _STATE.validate_python(state)
        except ValidationError as problem:
            raise ValueError(f"no state of an engine's counters: {problem.error_count()} findings") from None
        self._looked_us = known.looked_us
        self._engines: dict[Key, _Engine] = {(engine.label, engine.model): engine for engine in known.engines}

    def state(self) -> dict[str, Any]:
        """All that is known, as JSON can hold it."""
        state: dict[str, Any] = _STATE.dump_python(_State(self._looked_us, list(self._engines.values())), mode="json")
        return state

    def look(self, readings: Iterable[EngineReading], t_us: int) -> list[Interval]:
        """A page was read at t_us: what its engines did since they were last seen."""
        if self._looked_us is not None and t_us <= self._looked_us:
            self._set_back(t_us)
            return []
        shown: set[Key] = set()
        intervals = []
        for reading in readings:
            key = reading.label, reading.model
            shown.add(key)
            engine = self._engines.get(key)
            base = self._base(engine, reading, t_us)
            if base is not None and 0 < t_us - base.since_us <= MAX_INTERVAL_US:
                intervals.append(_interval(base, reading, t_us))
            self._engines[key] = _seen(base or _Base(t_us), reading, t_us)
        self._looked_us = t_us
        self._mark_absent(shown)
        return intervals

    def missed(self, t_us: int, *, refused: bool = False) -> None:
        """A look at t_us failed. refused: nothing listens there, so whatever shows up later began since."""
        if self._looked_us is not None and t_us < self._looked_us:
            self._set_back(t_us)
        elif refused:
            self._looked_us = t_us

    def _base(self, engine: _Engine | None, reading: EngineReading, t_us: int) -> _Base | None:
        """What the reading's deltas count from; None where it can only be a baseline."""
        if self._looked_us is None:
            return None
        if engine is None or (engine.absent and not _is_same_start(engine, reading)):
            return _new_process(self._looked_us, reading, t_us)
        if _is_other_start(engine, reading):
            # A process that ran before the last look and was not seen then is another one behind the same address:
            # what it counted so far is not of this interval.
            began_since = (reading.started_us or 0) > engine.seen_us
            return _new_process(self._looked_us, reading, t_us) if began_since else None
        if _fell(engine, reading):
            return _new_process(self._looked_us, reading, t_us)
        return _Base(engine.seen_us, engine.started_us, engine.counters, engine.histograms)

    def _set_back(self, t_us: int) -> None:
        """The clock was set back: nothing is counted now, all of it in the next interval."""
        self._looked_us = t_us
        for engine in self._engines.values():
            engine.seen_us = min(engine.seen_us, t_us)

    def _mark_absent(self, shown: set[Key]) -> None:
        """Engines that a complete page does not show: their processes ended, or are new and idle."""
        absent = [key for key in self._engines if key not in shown]
        for key in absent:
            self._engines[key].absent = True
        for key in absent[: max(len(absent) - MAX_ABSENT, 0)]:
            del self._engines[key]


def _new_process(looked_us: int, reading: EngineReading, t_us: int) -> _Base:
    """From 0, since the last look or since the process began, whichever is later."""
    started_us = reading.started_us
    return _Base(started_us if started_us is not None and looked_us < started_us < t_us else looked_us)


def _is_same_start(engine: _Engine, reading: EngineReading) -> bool:
    return (
        engine.started_us is not None
        and reading.started_us is not None
        and abs(reading.started_us - engine.started_us) <= _SAME_START_US
    )


def _is_other_start(engine: _Engine, reading: EngineReading) -> bool:
    told = engine.started_us is not None and reading.started_us is not None
    return told and not _is_same_start(engine, reading)


def _fell(engine: _Engine, reading: EngineReading) -> bool:
    """Whether a count fell. Sums of times do not tell: a stepped clock makes one fall without a new process."""
    if any(value < engine.counters.get(name, 0) for name, value in reading.counters.items() if not _is_time(name)):
        return True
    for metric, now in reading.histograms.items():
        before = engine.histograms.get(metric)
        if before is None:
            continue
        if sum(now.counts) < sum(before.counts):
            return True
        if now.bounds_us == before.bounds_us and any(map(int.__lt__, now.counts, before.counts)):
            return True
    return False


def _interval(base: _Base, reading: EngineReading, t_us: int) -> Interval:
    counters = {name: value - base.counters.get(name, 0) for name, value in reading.counters.items()}
    histograms = {metric: _rise(base.histograms.get(metric), now) for metric, now in reading.histograms.items()}
    return Interval(
        reading=reading,
        t_us=t_us,
        dt_us=t_us - base.since_us,
        counters={name: delta for name, delta in counters.items() if 0 <= delta <= _largest(name)},
        histograms={metric: rise for metric, rise in histograms.items() if rise is not None},
    )


def _rise(before: Histogram | None, now: Histogram) -> HistogramDelta | None:
    """None where the bounds changed, or a bucket has more than a row can hold."""
    if before is None:
        before = Histogram(now.bounds_us, (0,) * len(now.counts), 0)
    if before.bounds_us != now.bounds_us:
        return None
    counts = tuple(map(int.__sub__, now.counts, before.counts))
    sum_us = now.sum_us - before.sum_us
    if max(counts) > _LARGEST_OF_REQUESTS:
        return None
    return HistogramDelta(counts, sum_us if sum_us >= 0 else None)


def _seen(base: _Base, reading: EngineReading, t_us: int) -> _Engine:
    """What is known after a look: of what it did not show, the last of the same epoch."""
    return _Engine(
        label=reading.label,
        model=reading.model,
        seen_us=t_us,
        started_us=base.started_us if reading.started_us is None else reading.started_us,
        counters={**base.counters, **reading.counters},
        histograms={**base.histograms, **reading.histograms},
    )


def _is_time(column: str) -> bool:
    return column.endswith("_us")


def _largest(column: str) -> int:
    return _LARGEST_OF_REQUESTS if column in _REQUESTS else _LARGEST
