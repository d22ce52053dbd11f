"""Operating points from live load: a replica type's bins of load as points of its operating curve (design section 5).

Two things keep chance out of the curve. Latency does not fall with load: where a bin says so, its requests and those of
the bin below are one sample, so that no lucky bin high up passes an SLO that those below it miss. And the power of each
point lies on one straight line through all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app import units
from app.accounting.latency import Bucket, Quantile, merged, quantile
from app.split.load_bin import LoadBin, ReplicaType, normal, wide_enough
from app.split.point import Flag, OperatingPoint, Window
from app.split.run_point import IDLE_SHARE_OF_TDP, TDP_ESTIMATE
from collectors.benchmark.run import Latency
from collectors.benchmark.run import LatencyMetric as RunMetric

# The last is the upper edge of the last bucket that holds a request: no request took longer.
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 100.0)
# A straight line needs two loads.
LEAST_LOADS = 2
MEASURED, SIMULATED = "measured", "simulated"
IDLE_BY_TDP = "measured under load (idle 20% of TDP, default)"
LOADED_BY_TDP = "tdp_estimate (idle measured)"


# Quantiles by metric, and by metric what those beyond the last bucket are above of.
Latencies = tuple[dict[RunMetric, Latency], dict[RunMetric, float]]


@dataclass(frozen=True)
class Idle:
    """Minutes without a token or a running request: their seconds and energy in W x s."""

    minutes: float = 0.0
    seconds: float = 0.0
    power_ws: float = 0.0

    @property
    def power_w(self) -> float | None:
        return self.power_ws / self.seconds if self.seconds else None


@dataclass(frozen=True)
class Curve:
    """Points by load. left_out: minutes by reason, of those that were measured: throttled, few_minutes."""

    kind: ReplicaType
    points: tuple[OperatingPoint, ...]
    left_out: Mapping[str, float]


@dataclass(frozen=True)
class Line:
    """Power of a replica at a load: at_zero_w + w_per_token_s x tokens/s."""

    at_zero_w: float
    w_per_token_s: float

    def power_w(self, tokens_per_s: float) -> float:
        return self.at_zero_w + self.w_per_token_s * tokens_per_s


def live_curve(
    kind: ReplicaType, bins: Iterable[LoadBin], idle: Idle, tdp_w: float | None, start: datetime, end: datetime
) -> Curve:
    """The operating curve of a type. tdp_w: of one card. start, end: the window in which it was measured."""
    unslowed, throttled = normal(bins)
    kept, few = wide_enough(unslowed)
    line = fitted(kept)
    latencies = _latencies(kept)
    points = tuple(
        _point(kind, one, _power(one, line, idle, None if tdp_w is None else tdp_w * kind.gpus), latency,
               Window(start, end, round(one.minutes), one.engines, one.low, one.high))
        for one, latency in zip(kept, latencies, strict=True)
    )  # fmt: skip
    return Curve(kind, points, {"throttled": throttled, "few_minutes": few})


def fitted(bins: Sequence[LoadBin]) -> Line | None:
    """The straight line of power against load, by least squares weighted with seconds; None below two loads."""
    if len(bins) < LEAST_LOADS:
        return None
    weight = sum(one.seconds for one in bins)
    mean_load = sum(one.seconds * one.tokens_per_s for one in bins) / weight
    mean_w = sum(one.power_ws for one in bins) / weight
    spread = sum(one.seconds * (one.tokens_per_s - mean_load) ** 2 for one in bins)
    if spread == 0:
        return None
    shared = sum(one.seconds * (one.tokens_per_s - mean_load) * (one.power_w - mean_w) for one in bins)
    slope = shared / spread
    return Line(mean_w - slope * mean_load, slope)


def _power(one: LoadBin, line: Line | None, idle: Idle, tdp_w: float | None) -> tuple[float | None, float | None, str]:
    """(idle, loaded) W of a replica at this point, and by which method."""
    by_tdp = None if tdp_w is None else IDLE_SHARE_OF_TDP * tdp_w
    idle_w = by_tdp if idle.power_w is None else idle.power_w
    if line is None:
        loaded_w = tdp_w
        method = TDP_ESTIMATE if idle.power_w is None else LOADED_BY_TDP
    else:
        loaded_w = line.power_w(one.tokens_per_s)
        method = IDLE_BY_TDP if idle.power_w is None else MEASURED
    if idle_w is None or loaded_w is None:
        return None, None, method
    return idle_w, max(idle_w, loaded_w), method


def _point(
    kind: ReplicaType,
    one: LoadBin,
    power: tuple[float | None, float | None, str],
    latency: Latencies,
    window: Window,
) -> OperatingPoint:
    idle_w, loaded_w, method = power
    prefill_s, decode_s = _engine_s(one)
    quantiles, beyond_ms = latency
    tokens = one.prompt_tokens + one.generated_tokens
    return OperatingPoint(
        point_id=point_id(kind, one),
        source="live",
        model=kind.model,
        gpu_name=kind.gpu_name,
        gpus=kind.gpus,
        qps=one.requests / one.seconds,
        tokens_per_s=one.tokens_per_s,
        prompt_share=one.prompt_tokens / tokens,
        n=one.requests,
        idle_w=idle_w,
        loaded_w=loaded_w,
        power_method=SIMULATED if kind.simulated else method,
        latency=quantiles,
        beyond_ms=beyond_ms,
        seen=_seen(kind, one),
        recorded_at=window.end,
        prefill_s_per_token=prefill_s,
        decode_s_per_token=decode_s,
        window=window,
    )


def point_id(kind: ReplicaType, one: LoadBin) -> str:
    """E.g. live:h100:org/model:2:1448, with the lower edge of the bin in tokens/s."""
    return f"live:{kind.fleet}:{kind.model}:{kind.gpus}:{one.low:.4g}"


def _seen(kind: ReplicaType, one: LoadBin) -> tuple[Flag, ...]:
    found: list[Flag] = []
    if one.queued_s > one.seconds / 2:
        found.append("saturated")
    if one.is_throttled:
        found.append("throttled")
    if kind.simulated:
        found.append("simulated")
    return tuple(found)


def _engine_s(one: LoadBin) -> tuple[float | None, float | None]:
    """Engine seconds for a prompt token and for a generated one.

    What an engine tells are sums over requests. Prompts are worked on one after the other, but running requests are
    decoded together: a second of decoding made a token for each of them.
    """
    running = one.running
    if running is None or not (one.timed_prompt_tokens and one.timed_generated_tokens):
        return None, None
    if not (one.prefill_s and one.decode_s):
        return None, None
    return one.prefill_s / one.timed_prompt_tokens, one.decode_s / one.timed_generated_tokens / max(running, 1.0)


def _latencies(bins: Sequence[LoadBin]) -> list[Latencies]:
    """For each bin its quantiles by metric, and where a quantile is beyond its last bucket, what it is above of."""
    metrics = {metric: None for one in bins for metric in one.latency}
    found: list[Latencies] = [({}, {}) for _ in bins]
    for metric in metrics:
        histograms = [one.latency.get(metric, ()) for one in bins]
        for percentile in PERCENTILES:
            for (quantiles, beyond_ms), value in zip(found, _never_falling(histograms, percentile), strict=True):
                if value is None or value.value_s is None:
                    continue
                known = quantiles.setdefault(metric, Latency()).quantiles_ms
                known[percentile] = math.inf if value.at_least else units.milliseconds(value.value_s)
                if value.at_least:
                    beyond_ms[metric] = units.milliseconds(value.value_s)
    return found


def _never_falling(histograms: Sequence[Sequence[Bucket]], percentile: float) -> list[Quantile | None]:
    """The percentile of each, none below the one before it: such neighbours are taken as one sample.

    None for one without requests. Source: pool adjacent violators (Ayer et al., 1955), on samples instead of means.
    """
    pools: list[tuple[list[int], Sequence[Bucket], Quantile]] = []
    for position, histogram in enumerate(histograms):
        if not histogram:
            continue
        members, pooled = [position], merged(histogram)
        value = quantile(pooled, percentile)
        while pools and _is_below(value, pools[-1][2]):
            before, earlier, _ = pools.pop()
            members, pooled = [*before, *members], merged([*earlier, *pooled])
            value = quantile(pooled, percentile)
        pools.append((members, pooled, value))
    found: list[Quantile | None] = [None] * len(histograms)
    for members, _, value in pools:
        for position in members:
            found[position] = value
    return found


def _is_below(one: Quantile, other: Quantile) -> bool:
    return _rank(one) < _rank(other)


def _rank(value: Quantile) -> tuple[bool, float]:
    """What is beyond the last bucket is above all that is within one."""
    return value.at_least, value.value_s or 0.0
