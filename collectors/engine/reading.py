"""What one look at an engine's metrics gives: counters since its process began, gauges of the moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from collectors.samples import EngineKind, LatencyMetric


@dataclass(frozen=True)
class Histogram:
    """A latency histogram since the process began.

    bounds_us: ascending upper bounds, the unbounded last bucket left out. counts: per bucket (not cumulative over the
    buckets), one more than bounds_us. sum_us: sum of all observations.
    """

    bounds_us: tuple[int, ...]
    counts: tuple[int, ...]
    sum_us: int


@dataclass(frozen=True)
class EngineReading:
    """One engine at one moment.

    counters: column of EngineSamples -> its value since the process began, in the column's unit; a column that the
    page does not show is left out. started_us: UTC microseconds, None where the page does not tell.
    """

    kind: EngineKind
    label: str
    model: str | None
    version: str | None = None
    started_us: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    histograms: Mapping[LatencyMetric, Histogram] = field(default_factory=dict)
    running: int | None = None
    waiting: int | None = None
    kv_usage_ppm: int | None = None
