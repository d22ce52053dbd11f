"""Figures and latencies of an answer as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app import units
from app.accounting.figure import Figure, missing
from app.accounting.latency import Bucket, Quantile, quantile
from app.answers.replicas import labelled
from app.split.point import is_small_sample

PERCENTILES = (50, 99)


def as_json(figure: Figure) -> dict[str, Any]:
    return dict(vars(figure))


def bounds_as_json(found: Quantile, percentile: float) -> dict[str, Any]:
    """In ms, the bucket that a quantile lies in; `at_least`: only `lower` is known. n: observations behind it.

    rests_on: how many of them lie above the percentile; small_sample: these are fewer than 5.
    """
    lower_s, upper_s = found.lower_s, None if found.at_least else found.upper_s
    return {
        "lower": None if lower_s is None else units.milliseconds(lower_s),
        "upper": None if upper_s is None else units.milliseconds(upper_s),
        "at_least": found.at_least,
        "n": found.n,
        "rests_on": found.n * (100 - percentile) / 100,
        "small_sample": found.n > 0 and is_small_sample(found.n, percentile),
    }


def ttft_as_json(histogram: Sequence[Bucket], reason: str, simulated: bool) -> dict[str, Any]:
    """ttft_p50_ms and ttft_p99_ms with their bucket and n; `at_least`: only the lower bound is known."""
    found: dict[str, Any] = {}
    for percentile in PERCENTILES:
        at = quantile(histogram, percentile)
        figure = missing("ms", "measured", reason)
        if at.value_s is not None:
            figure = Figure(units.milliseconds(at.value_s), "ms", "measured")
        found[f"ttft_p{percentile}_ms"] = as_json(labelled(figure, simulated)) | bounds_as_json(at, percentile)
    return found
