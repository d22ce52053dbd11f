"""Operating points: what one replica was measured to do at one load, and how far the measurement can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from app.split.demand import Policy, Slo, WorkloadClass
from collectors.benchmark.run import Latency, LatencyMetric

Flag = Literal["small_sample", "burst", "saturated", "throttled", "simulated", "extrapolated"]
PointSource = Literal["run", "live"]

EXTRAPOLATED_FACTOR = 2.0
MAXIMUM_MARGIN = 1.25


@dataclass(frozen=True)
class Window:
    """When a live point was measured: minutes of replicas within [start, end), at loads of [low, high) tokens/s.

    engines: that were at this load on the day with most of them.
    """

    start: datetime
    end: datetime
    minutes: int
    engines: int
    low_tokens_per_s: float
    high_tokens_per_s: float


@dataclass(frozen=True)
class OperatingPoint:
    """A replica that could be bought again, as a benchmark run or a bin of live load measured it.

    qps: the rate it was measured at, None when all requests came at once. prompt_share: of its tokens, None without
    any. n: finished requests behind its latencies. seen: what its load says of it (burst, saturated), and its source.
    beyond_ms: by metric, what quantiles in the unbounded last bucket are above of; they are infinite. window: of a live
    point.
    prefill_s_per_token, decode_s_per_token: engine seconds for a token, None where only totals are known.
    idle_w, loaded_w: power of the whole replica without and at full load, in W; None when no power is known.
    """

    point_id: str
    source: PointSource
    model: str
    gpu_name: str
    gpus: int
    qps: float | None
    tokens_per_s: float
    prompt_share: float | None
    n: int
    idle_w: float | None
    loaded_w: float | None
    power_method: str
    latency: Mapping[LatencyMetric, Latency] = field(default_factory=dict)
    seen: tuple[Flag, ...] = ()
    recorded_at: datetime | None = None
    source_file: str | None = None
    source_index: int | None = None
    prefill_s_per_token: float | None = None
    decode_s_per_token: float | None = None
    beyond_ms: Mapping[LatencyMetric, float] = field(default_factory=dict)
    window: Window | None = None

    def tokens_per_s_for(self, one: WorkloadClass) -> float:
        """What the replica makes of this class's tokens in the engine time that its own tokens took.

        With timings per token of prefill and decode each class is worth its own engine seconds; without them total
        tokens count as they are (design section 5).
        """
        measured = self._engine_s_per_token(self.prompt_share)
        wanted = self._engine_s_per_token(one.prompt_share)
        return self.tokens_per_s * measured / wanted if measured and wanted else self.tokens_per_s

    def _engine_s_per_token(self, prompt_share: float | None) -> float | None:
        if prompt_share is None or self.prefill_s_per_token is None or self.decode_s_per_token is None:
            return None
        return prompt_share * self.prefill_s_per_token + (1 - prompt_share) * self.decode_s_per_token

    def power_w(self, utilisation: float) -> float | None:
        """IT power of one replica at `utilisation` of its throughput: idle, and the rest with load."""
        if self.idle_w is None or self.loaded_w is None:
            return None
        return self.idle_w + (self.loaded_w - self.idle_w) * utilisation

    def flags(self, one: WorkloadClass) -> list[Flag]:
        """What to know before trusting the point for this class (design section 5)."""
        found: list[Flag] = []
        if any(is_small_sample(self.n, slo.percentile) for slo in one.slo):
            found.append("small_sample")
        found += self.seen
        if self._is_extrapolated(one):
            found.append("extrapolated")
        return found

    def _is_extrapolated(self, one: WorkloadClass) -> bool:
        if self.prompt_share is None:
            return True
        low, high = sorted((self.prompt_share, one.prompt_share))
        return high > EXTRAPOLATED_FACTOR * low

    def slo_value_ms(self, slo: Slo, policy: Policy) -> tuple[float | None, str]:
        """(milliseconds to hold against the SLO, what they are called); None when the metric was not measured."""
        latency = self.latency.get(slo.metric, Latency())
        if policy == "penalise" and is_small_sample(self.n, slo.percentile):
            return _upper_bound(latency, slo, self.n)
        found = latency.at_least(slo.percentile)
        if found is None:
            return None, f"p{slo.percentile:g} {slo.metric.upper()}"
        measured = f"p{found[0]:g} {slo.metric.upper()}"
        stands_in = "" if found[0] == slo.percentile else f" (stands in for p{slo.percentile:g})"
        return found[1], measured + stands_in

    def slo_reason(self, slo: Slo, value: float, name: str) -> str:
        """How a value (of `slo_value_ms`) misses its limit."""
        if math.isinf(value):
            return f"{name} >= {self.beyond_ms[slo.metric]:g} ms (beyond its last bucket), limit {slo.max_ms:g} ms"
        return f"{name} {value:.1f} ms > {slo.max_ms:g} ms"


def is_small_sample(n: int, percentile: float) -> bool:
    """Fewer than 5 of n requests lie above the percentile."""
    return round(n * (100 - percentile), 6) < 500  # rounded: 50 x (100 - 90) is 500, and 5000 x (100 - 99.9) is not


def _upper_bound(latency: Latency, slo: Slo, n: int) -> tuple[float | None, str]:
    """95% upper bound of a quantile: the order statistic that is above it with 95% confidence, else 1.25 x maximum.

    Source: design section 5, policy `penalise`; the order statistic by the binomial distribution.
    """
    rank = upper_order_statistic(n, slo.percentile / 100)
    maximum = latency.quantiles_ms.get(100.0)
    name = f"p{slo.percentile:g} {slo.metric.upper()}"
    if rank is not None:
        found = latency.at_least(100 * rank / n)
        if found:
            return found[1], f"95% upper bound of {name}"
    if maximum is None:
        return None, f"maximum {slo.metric.upper()} (small sample, penalised)"
    return MAXIMUM_MARGIN * maximum, f"1.25 x maximum {slo.metric.upper()} (small sample, penalised)"


def upper_order_statistic(n: int, p: float, confidence: float = 0.95) -> int | None:
    """Smallest 1-based rank r with P(Binomial(n, p) <= r - 1) >= confidence; None when even the maximum falls short."""
    if n == 0 or not 0 < p < 1:
        return None
    cumulative = 0.0
    for below in range(n):
        log_mass = math.lgamma(n + 1) - math.lgamma(below + 1) - math.lgamma(n - below + 1)
        cumulative += math.exp(log_mass + below * math.log(p) + (n - below) * math.log1p(-p))
        if cumulative >= confidence:
            return below + 1
    return None
