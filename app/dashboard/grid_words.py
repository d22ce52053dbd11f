"""Where a grid intensity is from, in words: a provider, live or kept and how old, or the yearly table, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.answers.findings import duration
from app.formatting import number


def grid_now_words(zones: Sequence[Mapping[str, Any]]) -> str:
    """E.g. "Grid now: DE: 300 g/kWh, live, Energy-Charts, 5 min old; EU27: 213 g/kWh, yearly average of 2024, because
    no provider of wattmix.toml is asked for the average of this zone"."""
    return "Grid now: " + "; ".join(f"{one['zone']}: {_words(one['current'])}" for one in zones)


def _words(current: Mapping[str, Any]) -> str:
    because = f", because {current['why']}" if current["why"] else ""
    if current["g_per_kwh"] is None:
        return f"not known{because}"
    meanwhile = "; hours that it has not told count by the yearly average" if current["from"] == "cached" else ""
    return f"{number(current['g_per_kwh'], 0)} g/kWh, {_source(current)}{because}{meanwhile}"


def stands_in(zones: Sequence[Mapping[str, Any]]) -> bool:
    """Whether what is told of a zone stands in for a provider that does not answer."""
    return any(one["current"]["is_fallback"] for one in zones)


def _source(current: Mapping[str, Any]) -> str:
    if current["from"] == "table":
        return "yearly average" + (f" of {current['year']}" if current["year"] else "")
    return ", ".join((current["from"], current["title"], *_ages(current)))


def _ages(current: Mapping[str, Any]) -> Iterator[str]:
    """Of the provider's last answer, if it ever gave one, and of the value, where its time is over."""
    if current["age_s"] is not None:
        yield f"{duration(current['age_s'])} old"
    if current["value_age_s"] > 0:
        yield f"of the time up to {duration(current['value_age_s'])} ago"
