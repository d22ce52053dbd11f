"""Figures and latencies of an answer as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app import units
from app.accounting.figure import Figure, missing
from app.accounting.latency import Bucket, quantile
from app.answers.replicas import labelled

PERCENTILES = (50, 99)


def as_json(figure: Figure) -> dict[str, Any]:
    return dict(vars(figure))


def ttft_as_json(histogram: Sequence[Bucket], reason: str, simulated: bool) -> dict[str, Any]:
    """ttft_p50_ms and ttft_p99_ms with their bucket and n; `at_least`: only the lower bound is known."""
    found: dict[str, Any] = {}
    lower_ms: float | None
    upper_ms: float | None
    for percentile in PERCENTILES:
        at = quantile(histogram, percentile)
        if at.value_s is None or at.lower_s is None or at.upper_s is None:
            figure, lower_ms, upper_ms = missing("ms", "measured", reason), None, None
        else:
            figure, lower_ms = Figure(units.milliseconds(at.value_s), "ms", "measured"), units.milliseconds(at.lower_s)
            upper_ms = None if at.at_least else units.milliseconds(at.upper_s)
        found[f"ttft_p{percentile}_ms"] = as_json(labelled(figure, simulated)) | {
            "lower": lower_ms, "upper": upper_ms, "at_least": at.at_least, "n": at.n,
        }  # fmt: skip
    return found
