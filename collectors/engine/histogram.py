"""A histogram from the buckets of a page: cumulative counts by `le` in, counts per bucket by microseconds out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from collectors.engine.reading import Histogram
from collectors.engine.series import Number, Series
from collectors.samples import MAX_BUCKETS

_MAX_BOUND_US = 2**53
_MAX_COUNT = 2**63 - 1


def read_histogram(buckets: Sequence[Series], sums: Sequence[Series], factor: int) -> Histogram | None:
    """The histogram of an engine, or None where the page does not show a sound one.

    buckets, sums: its `_bucket` and `_sum` series; those of several label sets (streamed or not) are added up.
    factor: from the page's unit of time to microseconds.
    """
    counts = _cumulative(buckets)
    total = _total_us(sums, factor)
    if counts is None or total is None:
        return None
    cut = _cut(counts, factor)
    below = 0
    parts = []
    for count in (*cut.values(), counts[math.inf]):
        parts.append(count - below)
        below = count
    return Histogram(bounds_us=tuple(cut), counts=tuple(parts), sum_us=total)


def _cumulative(buckets: Sequence[Series]) -> dict[float, int] | None:
    """Upper bound -> observations at or under it, ascending; None unless each label set has the same bounds."""
    counts: defaultdict[float, int] = defaultdict(int)
    seen: defaultdict[float, int] = defaultdict(int)
    for bucket in buckets:
        bound = _bound(bucket.labels.get("le", ""))
        count = _count(bucket.value)
        if bound is None or count is None:
            return None
        counts[bound] += count
        seen[bound] += 1
    if math.inf not in counts or len(set(seen.values())) > 1:
        return None
    ascending = dict(sorted(counts.items()))
    values = list(ascending.values())
    return ascending if values == sorted(values) and values[-1] <= _MAX_COUNT else None


def _cut(counts: dict[float, int], factor: int) -> dict[int, int]:
    """The same without its last, unbounded bucket and within what a row can hold.

    Dropping a bound of a cumulative histogram merges two neighbours, so no observation is lost: bounds that are alike
    in microseconds, that no latency lies under, and every so many of too many.
    """
    cut = {}
    for bound, count in counts.items():
        if math.isfinite(bound) and 0 < (bound_us := round(bound * factor)) <= _MAX_BOUND_US:
            cut[bound_us] = count
    excess = len(cut) - (MAX_BUCKETS - 1)
    if excess <= 0:
        return cut
    bounds = list(cut)
    kept = [bounds[(place + 1) * len(bounds) // (MAX_BUCKETS - 1) - 1] for place in range(MAX_BUCKETS - 1)]
    return {bound: cut[bound] for bound in kept}


def _total_us(sums: Sequence[Series], factor: int) -> int | None:
    total = 0.0
    for series in sums:
        if series.value is None:
            return None
        total += series.value
    total_us = total * factor
    return round(total_us) if sums and 0 <= total_us <= _MAX_COUNT else None


def _bound(written: str) -> float | None:
    try:
        bound = float(written)
    except ValueError:
        return None
    return None if math.isnan(bound) or bound == -math.inf else bound


def _count(value: Number | None) -> int | None:
    return int(value) if value is not None and value >= 0 and value == int(value) else None
