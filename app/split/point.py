"""Operating points: what one replica was measured to do, and how far the measurement can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from app import units
from app.split.demand import Policy, Slo, WorkloadClass
from collectors.benchmark.run import BenchmarkRun, Latency

Flag = Literal["small_sample", "burst", "saturated", "extrapolated"]

IDLE_SHARE_OF_TDP = 0.2  # design section 5: idle power where none was measured
STEADY_TIMES_E2E = 3.0
SATURATED_BELOW = 0.9
EXTRAPOLATED_FACTOR = 2.0
MAXIMUM_MARGIN = 1.25


@dataclass(frozen=True)
class OperatingPoint:
    """A benchmark run as a replica that could be bought again.

    idle_w, loaded_w: power of the whole replica without and at full load, in W; None when no power is known.
    """

    run: BenchmarkRun
    idle_w: float | None
    loaded_w: float | None

    @property
    def gpus(self) -> int:
        return self.run.gpu_count

    @property
    def qps(self) -> float | None:
        """The offered rate the point was measured at; None when all requests came at once."""
        return self.run.offered_requests_per_s

    @property
    def tokens_per_s(self) -> float:
        return self.run.total_tokens / self.run.duration_s

    def power_w(self, utilisation: float) -> float | None:
        """IT power of one replica at `utilisation` of its throughput: idle, and the rest with load."""
        if self.idle_w is None or self.loaded_w is None:
            return None
        return self.idle_w + (self.loaded_w - self.idle_w) * utilisation

    def flags(self, one: WorkloadClass) -> list[Flag]:
        """What to know before trusting the point for this class (design section 5)."""
        found: list[Flag] = []
        if any(is_small_sample(self.run.completed, slo.percentile) for slo in one.slo):
            found.append("small_sample")
        if is_burst(self.run):
            found.append("burst")
        elif is_saturated(self.run):
            found.append("saturated")
        if self._is_extrapolated(one):
            found.append("extrapolated")
        return found

    def _is_extrapolated(self, one: WorkloadClass) -> bool:
        if self.run.total_tokens == 0:
            return True
        measured, wanted = self.run.prompt_tokens / self.run.total_tokens, one.prompt_share
        low, high = sorted((measured, wanted))
        return high > EXTRAPOLATED_FACTOR * low

    def slo_value_ms(self, slo: Slo, policy: Policy) -> tuple[float | None, str]:
        """(milliseconds to hold against the SLO, what they are called); None when the metric was not measured."""
        latency = self.run.latency.get(slo.metric, Latency())
        if policy == "penalise" and is_small_sample(self.run.completed, slo.percentile):
            return _upper_bound(latency, slo, self.run.completed)
        found = latency.at_least(slo.percentile)
        if found is None:
            return None, f"p{slo.percentile:g} {slo.metric.upper()}"
        return found[1], f"p{found[0]:g} {slo.metric.upper()}"


def power_from_tdp(run: BenchmarkRun, tdp_w: float | None) -> tuple[float | None, float | None]:
    """(idle, loaded) W of the run's replica from its cards' TDP: an estimate, 20% of it when idle."""
    loaded = None if tdp_w is None else tdp_w * run.gpu_count
    return (None if loaded is None else IDLE_SHARE_OF_TDP * loaded), loaded


def is_small_sample(n: int, percentile: float) -> bool:
    """Fewer than 5 of n requests lie above the percentile."""
    return round(n * (100 - percentile), 6) < 500  # rounded: 50 x (100 - 90) is 500, and 5000 x (100 - 99.9) is not


def is_burst(run: BenchmarkRun) -> bool:
    """Arrivals lasted less than 3 x the mean end-to-end time: no steady state was reached."""
    mean_e2e_ms = run.mean_e2e_ms
    if mean_e2e_ms is None:
        return run.offered_requests_per_s is None
    return run.arrival_s < STEADY_TIMES_E2E * units.seconds(mean_e2e_ms)


def is_saturated(run: BenchmarkRun) -> bool:
    """A steady run that achieved less than 0.9 of what was offered."""
    if run.offered_requests_per_s is None or is_burst(run):
        return False
    return run.completed / run.duration_s < SATURATED_BELOW * run.offered_requests_per_s


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
