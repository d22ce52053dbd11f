"""From what engines did between looks to the columns of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collectors.engine.difference import Interval
from collectors.samples import LATENCY_METRICS, Engine, EngineSamples, LatencyMetric

EngineKey = tuple[str, str, str | None]
Bounds = dict[LatencyMetric, tuple[int, ...]]
_GAUGES = ("running", "waiting", "kv_usage_ppm")
_BY_HISTOGRAM = {f"{metric}_{part}" for metric in LATENCY_METRICS for part in ("us", "buckets")}
_COUNTS = tuple(
    name
    for name in EngineSamples.model_fields
    if name not in {"engine", "t_us", "dt_us", *_GAUGES, *_BY_HISTOGRAM}
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One interval of one engine of a page."""

    url: str
    interval: Interval

    @property
    def key(self) -> EngineKey:
        return self.url, *self.interval.key


def bounds_by_engine(rows: Iterable[Row]) -> dict[EngineKey, Bounds]:
    """The buckets' bounds that each engine showed last."""
    found: dict[EngineKey, Bounds] = {}
    for row in rows:
        bounds = found.setdefault(row.key, {})
        bounds |= {metric: histogram.bounds_us for metric, histogram in row.interval.reading.histograms.items()}
    return found


def table_of(rows: Sequence[Row], engines: Sequence[Engine]) -> EngineSamples | None:
    """The rows as columns; None without rows. Every row's engine is among `engines`."""
    if not rows:
        return None
    position = {engine.key: place for place, engine in enumerate(engines)}
    filled = [_values(row.interval, position[row.key], engines[position[row.key]]) for row in rows]
    columns: dict[str, Any] = {name: [values.get(name) for values in filled] for name in EngineSamples.model_fields}
    return EngineSamples(**columns)


def _values(interval: Interval, position: int, engine: Engine) -> dict[str, Any]:
    values: dict[str, Any] = {"engine": position, "t_us": interval.t_us, "dt_us": interval.dt_us}
    values |= {name: getattr(interval.reading, name) for name in _GAUGES}
    values |= {name: interval.counters.get(name) for name in _COUNTS}
    for metric, rise in interval.histograms.items():
        # An engine that came back with other buckets within one batch: the batch has room for one set of bounds.
        if interval.reading.histograms[metric].bounds_us == tuple(getattr(engine, f"{metric}_bounds_us")):
            values |= {f"{metric}_us": rise.sum_us, f"{metric}_buckets": list(rise.counts)}
    return values


def as_lists(bounds: Mapping[LatencyMetric, tuple[int, ...]]) -> dict[str, list[int]]:
    """Bounds as the fields of Engine."""
    return {f"{metric}_bounds_us": list(bounds.get(metric, ())) for metric in LATENCY_METRICS}
