"""Questions: what did a range of time cost in dollars, joules and grams, and how did that come about over time?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from app.accounting.account import FIGURES, PERCENTILES, Account
from app.accounting.comparison import against, previous_period
from app.accounting.figure import Figure, missing, weakest
from app.accounting.periods import Period
from app.answers.account import accounts_of
from app.answers.accounts import Accounts, Key
from app.answers.figures import as_json, bounds_as_json
from app.answers.quality import notes_of, quality_of
from app.answers.query import AccountQuery, Step
from app.config import Config
from app.spreadsheet import csv_text
from app.store.database import Store
from app.store.moment import moment
from collectors.samples import LATENCY_METRICS

Answer = dict[str, Any]
_OF_THE_GRID = frozenset((
    "carbon_g", "carbon_active_g", "carbon_idle_g", "carbon_unallocated_g", "g_per_mtok", "sci_g_per_mtok",
    "sci_g_per_mtok_low", "sci_g_per_mtok_high",
))  # fmt: skip


def summary(store: Store, config: Config, query: AccountQuery, now: datetime) -> Answer:
    """The whole range, its lines, and the period before it.

    {"query", "generated_at", "known_at", "period", "total": line, "previous": line, "change": {name: figure},
    "lines": [line], "quality", "notes"}; a line is {"key", "figures": {name: figure}}.
    """
    before = previous_period(query.start, query.end, query.zone)
    earlier = replace(query, start=before.start, end=before.end, by="none")
    with moment(store) as reader:
        found = accounts_of(store, config, query, [whole_range(query)], now, reader)
        previous = accounts_of(store, config, earlier, [before], now, reader)
    return summary_of(found, previous, config)


def summary_of(found: Accounts, previous: Accounts, config: Config) -> Answer:
    """The summary of accounts of a whole range, and of the period before it."""
    query, (period,), (before,) = found.query, found.periods, previous.periods
    names = query.figures or tuple(FIGURES)
    total, earlier = found.total(), previous.total()
    return heading(query, found.now) | {
        "period": period_as_json(period),
        "total": _line({}, total, names),
        "previous": {"period": period_as_json(before)} | _line({}, earlier, names),
        "change": {name: as_json(_change(name, total, earlier)) for name in names},
        "lines": [_line(found.named(key), found.line(0, key), names) for key in found.keys],
        "quality": quality_of(total),
        "notes": notes_of(found, config),
    }


def whole_range(query: AccountQuery) -> Period:
    return Period(query.start, query.end, query.start.astimezone(query.zone).isoformat(timespec="minutes"))


def _change(name: str, now: Account, before: Account) -> Figure:
    """Against the period before; grams of another basis are not held against each other."""
    found = against(now.figure(name), before.figure(name))
    bases = [account.bill.bases(account.view) for account in (now, before)]
    both = sorted(bases[0] | bases[1])
    if found.value is not None and name in _OF_THE_GRID and bases[0] != bases[1] and len(both) > 1:
        return missing(found.unit, found.method, f"its factors are {' and '.join(both)}: not comparable")
    return found


def series(store: Store, config: Config, query: AccountQuery, now: datetime) -> Answer:
    """The range step by step: {"query", ..., "step", "periods": [{"start", "end", "label"}], "lines": [...]}.

    A line is {"key", "figures": {name: {"unit", "method", "methods", "values", "reasons"}}}: a value and its method per
    period, None where there is none, with its reason; `method` is the weakest. Raises BadParameter when a step makes
    too many points.
    """
    names = query.figures or tuple(FIGURES)
    stepped = query.with_step(finest_step(query, config, now))
    periods = stepped.periods()
    found = accounts_of(store, config, stepped, periods, now)
    return heading(stepped, now) | {
        "step": stepped.step,
        "periods": [period_as_json(one) for one in periods],
        "lines": [_history(key, found, names) for key in found.keys],
        "notes": notes_of(found, config),
    }


def as_csv(answer: Answer) -> str:
    """A summary or series as CSV: a row per line (the total first), or per period and line; unrounded numbers."""
    rows = list(_rows(answer))
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["period", "start", "end", "method", "missing"]
    return csv_text(names, ([row.get(name) for name in names] for row in rows))


def _rows(answer: Answer) -> Iterator[dict[str, Any]]:
    if "periods" in answer:
        for line in answer["lines"]:
            for number, period in enumerate(answer["periods"]):
                values = {name: found["values"][number] for name, found in line["figures"].items()}
                reasons = {name: found["reasons"][number] for name, found in line["figures"].items()}
                yield _row(period, line["key"], values, reasons, line["figures"].values())
        return
    parts = [("total", {}, answer["total"]), *(("line", line["key"], line) for line in answer["lines"])]
    for part, key, line in parts:
        values = {name: figure["value"] for name, figure in line["figures"].items()}
        reasons = {name: figure["reason"] for name, figure in line["figures"].items()}
        yield {"part": part} | _row(answer["period"], key, values, reasons, line["figures"].values())


def _row(
    period: Mapping[str, Any],
    key: Mapping[str, Any],
    values: Mapping[str, Any],
    reasons: Mapping[str, str | None],
    figures: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    told: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        if reason is not None:
            told.setdefault(reason, []).append(name)
    missing = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in told.items())
    method = weakest(figure["method"] for figure in figures)
    named = {"period": period["label"], "start": period["start"], "end": period["end"]}
    return {**named, **key, **values, "method": method, "missing": missing or None}


def heading(query: AccountQuery, now: datetime) -> Answer:
    return {
        "query": query.as_words(),
        "generated_at": now.isoformat(),
        "known_at": (query.known_at or now).isoformat(),
    }


def finest_step(query: AccountQuery, config: Config, now: datetime) -> Step:
    """Where minutes are gone, hours are the finest step that shows when something was."""
    oldest_minute = now - timedelta(days=config.store.minute_days)
    return "minute" if query.start >= oldest_minute else "hour"


def _line(key: dict[str, str | None], account: Account, names: Iterable[str]) -> Answer:
    figures = {name: as_json(account.figure(name)) for name in names}
    for metric in LATENCY_METRICS:
        for percentile in PERCENTILES:
            name = f"{metric}_p{percentile}_ms"
            if name in figures:
                figures[name] |= bounds_as_json(account.quantile(metric, percentile), percentile)
    return {"key": key, "figures": figures}


def _history(key: Key, found: Accounts, names: Iterable[str]) -> Answer:
    accounts = [found.line(number, key) for number in range(len(found.periods))]
    return {
        "key": found.named(key),
        "figures": {name: _values([account.figure(name) for account in accounts]) for name in names},
    }


def _values(figures: list[Figure]) -> Answer:
    return {
        "unit": figures[0].unit,
        "method": weakest(figure.method for figure in figures if figure.value is not None),
        "methods": [figure.method for figure in figures],
        "values": [figure.value for figure in figures],
        "reasons": [figure.reason for figure in figures],
    }


def period_as_json(period: Period) -> Answer:
    return {"start": period.start.isoformat(), "end": period.end.isoformat(), "label": period.label}
