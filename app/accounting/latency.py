"""Latencies from merged histogram buckets: quantiles with their bucket, attainment with its bounds.

Percentiles are never averaged: buckets of engines, minutes and versions are summed, and the quantile is read off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WILSON_Z = 1.959963984540054  # 97.5% quantile of the normal distribution


@dataclass(frozen=True)
class Bucket:
    """`n` observations in (lower_s, upper_s]; upper_s is infinite for the last bucket of a histogram."""

    lower_s: float
    upper_s: float
    n: int


@dataclass(frozen=True)
class Quantile:
    """A quantile in seconds, linear inside its bucket.

    value_s: None without observations; the lower bound where the bucket is unbounded (`at_least`).
    lower_s, upper_s: the bucket the quantile certainly lies in. n: observations behind it.
    """

    value_s: float | None
    lower_s: float | None
    upper_s: float | None
    n: int

    @property
    def at_least(self) -> bool:
        """Whether only a lower bound is known."""
        return self.upper_s is not None and math.isinf(self.upper_s)


@dataclass(frozen=True)
class Attainment:
    """Share of requests at or under a limit: `low` and `high` hold what the buckets leave open and the 95% Wilson
    interval of the sample; None without requests."""

    low: float | None
    high: float | None
    n: int


def merged(buckets: Iterable[Bucket]) -> list[Bucket]:
    """Buckets of any layouts as one ascending histogram, cut only where no observation's place is in doubt.

    A boundary of one layout that lies inside an occupied bucket of another is dropped; the others stay exact. So equal
    layouts merge bucket by bucket, and different ones on their common boundaries or better.
    """
    occupied = sorted((b for b in buckets if b.n), key=lambda b: (b.lower_s, b.upper_s))
    result: list[Bucket] = []
    for bucket in occupied:
        if result and bucket.lower_s < result[-1].upper_s:
            last = result.pop()
            bucket = Bucket(last.lower_s, max(last.upper_s, bucket.upper_s), last.n + bucket.n)
        result.append(bucket)
    return result


def quantile(histogram: Sequence[Bucket], percentile: float) -> Quantile:
    """The percentile (0 to 100) of a merged histogram; its rank is the smallest that holds that share."""
    n = sum(bucket.n for bucket in histogram)
    if not n:
        return Quantile(None, None, None, 0)
    rank = min(max(math.ceil(n * percentile / 100 - 1e-9), 1), n)
    below = 0
    for bucket in histogram:
        if rank <= below + bucket.n:
            break
        below += bucket.n
    if math.isinf(bucket.upper_s):
        return Quantile(bucket.lower_s, bucket.lower_s, bucket.upper_s, n)
    inside = (rank - below) / bucket.n
    return Quantile(bucket.lower_s + inside * (bucket.upper_s - bucket.lower_s), bucket.lower_s, bucket.upper_s, n)


@dataclass(frozen=True)
class Held:
    """Requests at or under a limit: surely so many, and perhaps so many more, whose bucket leaves it open; of n."""

    surely: int = 0
    perhaps: int = 0
    n: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(self.surely + other.surely, self.perhaps + other.perhaps, self.n + other.n)

    def attainment(self) -> Attainment:
        """Their share. Source: design section 4, Latency; the interval by E. B. Wilson (1927)."""
        if not self.n:
            return Attainment(None, None, 0)
        low, high = wilson(self.surely, self.n)[0], wilson(self.surely + self.perhaps, self.n)[1]
        return Attainment(low, high, self.n)


def held(histogram: Iterable[Bucket], limit_s: float, *, misses: int = 0) -> Held:
    """What is at or under `limit_s`; `misses` are requests that failed or were aborted without a latency.

    A limit inside an occupied bucket leaves its observations open: none of them, or all.
    """
    buckets = list(histogram)
    return Held(
        surely=sum(bucket.n for bucket in buckets if bucket.upper_s <= limit_s),
        perhaps=sum(bucket.n for bucket in buckets if bucket.lower_s < limit_s < bucket.upper_s),
        n=sum(bucket.n for bucket in buckets) + misses,
    )


def attainment(histogram: Sequence[Bucket], limit_s: float, *, misses: int = 0) -> Attainment:
    """Share of requests at or under `limit_s`."""
    return held(histogram, limit_s, misses=misses).attainment()


def wilson(hits: int, n: int, z: float = WILSON_Z) -> tuple[float, float]:
    """The Wilson score interval of a share."""
    share, z2 = hits / n, z * z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # At shares of 0 and 1 the interval touches them; rounding must not move it past.
    return max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0)
