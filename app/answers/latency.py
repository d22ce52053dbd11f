"""Question: how long did requests take, over time and in the whole range, and did they keep their SLOs?

Percentiles are read off the merged buckets of all engines of a line, never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app import units
from app.accounting.account import PERCENTILES, Account
from app.accounting.latency import Quantile, held, merged
from app.accounting.periods import Period
from app.answers.account import accounts_of
from app.answers.accounts import Key
from app.answers.figures import as_json, bounds_as_json
from app.answers.query import AccountQuery
from app.answers.summary import finest_step, heading, period_as_json
from app.config import Config
from app.errors import BadParameter
from app.facts.kinds import LatencySlo
from app.store.database import Store
from app.store.facts import fact_book
from collectors.samples import LATENCY_METRICS, LatencyMetric

# A day; what takes longer is a batch.
MOST_MS = 86_400_000.0
_SLO = ("slo_attainment_low", "slo_attainment_high")


@dataclass(frozen=True)
class Wanted:
    """metrics: which latencies. max_ms: what a single one of them is held against; None: the SLO of each model."""

    metrics: tuple[LatencyMetric, ...] = LATENCY_METRICS
    max_ms: float | None = None

    def as_words(self) -> dict[str, str]:
        """What `parse_wanted` takes."""
        words: dict[str, str] = {"metric": self.metrics[0]} if len(self.metrics) == 1 else {}
        return words if self.max_ms is None else {**words, "max-ms": f"{self.max_ms!r}"}

    @property
    def quantiles(self) -> tuple[str, ...]:
        return tuple(f"{metric}_p{percentile}_ms" for metric in self.metrics for percentile in PERCENTILES)

    def against_limit(self, account: Account) -> Account:
        """The account with its requests held against max_ms, where there is one."""
        if self.max_ms is None:
            return account
        if not account.served.models:
            return replace(account, held=None)
        failed = int(account.served.count("failed").value or 0)
        buckets = account.latency.get(self.metrics[0], ())
        return replace(account, held=held(buckets, units.seconds(self.max_ms), misses=failed))


def parse_wanted(given: Mapping[str, str]) -> Wanted:
    """Of `metric` (all without it) and `max-ms`, which needs a metric. Raises BadParameter."""
    metric, limit = given.get("metric"), given.get("max-ms")
    if metric is not None and metric not in LATENCY_METRICS:
        raise BadParameter(f"`metric`: given {metric!r}; accepted: {', '.join(LATENCY_METRICS)}")
    if limit is None:
        return Wanted() if metric is None else Wanted((metric,))
    if metric is None:
        raise BadParameter(f"`max-ms` needs a `metric`; accepted: {', '.join(LATENCY_METRICS)}")
    try:
        max_ms = float(limit)
    except ValueError:
        max_ms = math.nan
    if not 0 < max_ms <= MOST_MS:
        raise BadParameter(f"`max-ms`: given {limit!r}; accepted: milliseconds above 0, up to {MOST_MS:g}")
    return Wanted((metric,), max_ms)


def latency(
    store: Store, config: Config, query: AccountQuery, now: datetime, wanted: Wanted | None = None
) -> dict[str, Any]:
    """Quantiles by line, whole and step by step, and each model's SLO.

    {"query", ..., "metrics", "max_ms", "step", "periods", "total": line, "lines": [line], "slos": [...]}. A line is
    {"key", "whole": {metric: {"p50": figure, ..., "histogram"}}, "attainment": {"low": figure, "high": figure},
    "steps": {metric: {"p50": {"values", "lower", "upper", "at_least", "small_sample"}, ..., "n"}}, "attainment_steps":
    {"low": [share], "high": [share]}}; the total has no key and no steps. Lines without an engine are left out.
    """
    wanted = wanted or Wanted()
    asked = replace(query, figures=(*wanted.quantiles, *(_SLO if wanted.max_ms is None else ())))
    stepped = asked.with_step(finest_step(query, config, now))
    range_ = Period(query.start, query.end, query.start.isoformat())
    whole = accounts_of(store, config, asked, [range_], now)
    periods = stepped.periods()
    steps = accounts_of(store, config, stepped, periods, now)
    lines = {key: [steps.line(number, key) for number in range(len(periods))] for key in whole.keys}
    return heading(replace(stepped, figures=query.figures), now) | {
        "metrics": list(wanted.metrics),
        "max_ms": wanted.max_ms,
        "step": stepped.step,
        "periods": [period_as_json(one) for one in periods],
        "total": _total(whole.total(), wanted),
        "lines": [
            _line(key, whole.line(0, key), accounts, wanted)
            for key, accounts in lines.items()
            if whole.line(0, key).served.models
        ],
        "slos": list(_slos(store, config, query, range_, now)),
    }


def _total(whole: Account, wanted: Wanted) -> dict[str, Any]:
    return {
        "whole": {metric: _whole(whole, metric) for metric in wanted.metrics},
        "attainment": _attainment(whole, wanted),
    }


def _line(key: Key, whole: Account, steps: Sequence[Account], wanted: Wanted) -> dict[str, Any]:
    return {
        "key": dict(key),
        **_total(whole, wanted),
        "steps": {metric: _steps(steps, metric) for metric in wanted.metrics},
        "attainment_steps": _attainment_steps(steps, wanted),
    }


def _whole(of: Account, metric: LatencyMetric) -> dict[str, Any]:
    """p50, p90, p99: figures with their buckets."""
    found: dict[str, Any] = {}
    for percentile in PERCENTILES:
        figure = of.figure(f"{metric}_p{percentile}_ms")
        found[f"p{percentile}"] = as_json(figure) | bounds_as_json(of.quantile(metric, percentile), percentile)
    return found | {"histogram": list(_histogram(of, metric))}


def _histogram(of: Account, metric: LatencyMetric) -> Iterator[dict[str, Any]]:
    """Requests by latency bucket in ms, without empty ones; upper None: unbounded."""
    buckets = merged(of.latency.get(metric, ()))
    n = sum(bucket.n for bucket in buckets)
    for bucket in buckets:
        upper = None if math.isinf(bucket.upper_s) else units.milliseconds(bucket.upper_s)
        yield {"lower": units.milliseconds(bucket.lower_s), "upper": upper, "n": bucket.n, "share": bucket.n / n}


def _attainment(of: Account, wanted: Wanted) -> dict[str, Any]:
    limited = wanted.against_limit(of)
    return {name.removeprefix("slo_attainment_"): as_json(limited.figure(name)) for name in _SLO}


def _steps(accounts: Iterable[Account], metric: LatencyMetric) -> dict[str, Any]:
    accounts = list(accounts)
    found: dict[str, Any] = {
        f"p{percentile}": _bounds([one.quantile(metric, percentile) for one in accounts], percentile)
        for percentile in PERCENTILES
    }
    return found | {"n": [one.quantile(metric, 50).n for one in accounts]}


def _bounds(found: Sequence[Quantile], percentile: float) -> dict[str, Any]:
    """A value per step in ms with the bucket that it lies in; None where there was no request."""
    rows = [bounds_as_json(one, percentile) for one in found]
    return {"values": [_ms(one.value_s) for one in found]} | {
        name: [row[name] for row in rows] for name in ("lower", "upper", "at_least", "small_sample")
    }


def _attainment_steps(accounts: Iterable[Account], wanted: Wanted) -> dict[str, Any]:
    """low, high: a share per step, None where there was no request or nothing limits them."""
    limited = [wanted.against_limit(one) for one in accounts]
    return {name.removeprefix("slo_attainment_"): [one.figure(name).value for one in limited] for name in _SLO}


def _slos(store: Store, config: Config, query: AccountQuery, whole: Period, now: datetime) -> Iterator[dict[str, Any]]:
    """Each SLO in force at the range's end, with how its model did; changes: how often it changed in the range.

    Requests are held against the SLO of their time.
    """
    book = fact_book(store, query.known_at)
    models = [model for model in book.subjects("slo") if query.model in (None, model)]
    if not models:
        return
    by_model = accounts_of(store, config, replace(query, by="model", figures=_SLO), [whole], now)
    for model in models:
        fact = book.at("slo", model, min(query.end, now))
        if fact is None or not isinstance(fact.value, LatencySlo):
            continue
        account = by_model.line(0, (("model", model),))
        low, high = (account.figure(name) for name in _SLO)
        yield {
            "model": model,
            "metric": fact.value.metric,
            "percentile": fact.value.percentile,
            "max_ms": fact.value.max_ms,
            "source": fact.source,
            "attainment": {"low": as_json(low), "high": as_json(high)},
            "requests": account.held.n if account.held else 0,
            "changes": len(book.changes("slo", model, query.start, query.end)),
            "verdict": _verdict(low.value, high.value, fact.value.percentile / 100),
        }


def _verdict(low: float | None, high: float | None, wanted: float) -> str:
    """`open`: the sample and its buckets allow both."""
    if low is None or high is None:
        return "no requests"
    return "met" if low >= wanted else "missed" if high < wanted else "open"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else units.milliseconds(seconds)
