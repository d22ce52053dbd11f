"""Log-normal latencies through an operating point's quantiles, and counts of requests in an engine's buckets."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from app.simulator.arrays import Floats, Ints

# Upper bounds of vLLM's buckets in seconds, versions 0.8 to 0.32.
TTFT_BOUNDS_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
ITL_BOUNDS_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
E2E_BOUNDS_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip

_Z99 = NormalDist().inv_cdf(0.99)
# The normal distribution from a table: between its points a straight line is right to 1e-5.
_Z = np.linspace(-8.0, 8.0, 1601)
_PHI = np.array([NormalDist().cdf(float(z)) for z in _Z])


@dataclass(frozen=True, eq=False)
class LogNormal:
    """One distribution a minute, of seconds. median_s: its median; sigma: deviation of the logarithm."""

    median_s: Floats
    sigma: Floats

    @classmethod
    def through(cls, p50_s: Floats, p99_s: Floats) -> LogNormal:
        return cls(p50_s, np.log(p99_s / p50_s) / _Z99)

    @classmethod
    def with_mean(cls, mean_s: Floats, sigma: float) -> LogNormal:
        return cls(mean_s / np.exp(sigma**2 / 2), np.full(len(mean_s), sigma))

    def times(self, factor: Floats) -> LogNormal:
        """Everything so much slower."""
        return LogNormal(self.median_s * factor, self.sigma)

    @property
    def mean_s(self) -> Floats:
        mean: Floats = self.median_s * np.exp(self.sigma**2 / 2)
        return mean

    def shares(self, bounds_s: tuple[float, ...]) -> Floats:
        """Part of each distribution in (0, b1], (b1, b2], ... (bn, infinity): a row a minute, each of sum 1."""
        z = (np.log(bounds_s)[None, :] - np.log(self.median_s)[:, None]) / self.sigma[:, None]
        below = np.interp(z, _Z, _PHI, left=0.0, right=1.0)
        ones = np.ones((len(z), 1))
        return np.diff(below, prepend=0.0 * ones, append=ones)


def draw(rng: np.random.Generator, counts: Ints, latency: LogNormal, bounds_s: tuple[float, ...]) -> Ints:
    """Counts by bucket, a row a minute, whose sums are `counts`."""
    drawn: Ints = rng.multinomial(counts, latency.shares(bounds_s))
    return drawn


def bounds_us(bounds_s: tuple[float, ...]) -> list[int]:
    return [round(bound_s * 1e6) for bound_s in bounds_s]
