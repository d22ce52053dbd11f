"""Question: what moved grams per token, when was the grid clean, and when and where would the same work emit least?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from app import units
from app.accounting.account import Account
from app.accounting.carbon import GridFactor
from app.accounting.carbon_line import carbon_line
from app.accounting.comparison import previous_period
from app.accounting.decomposition import Part, effects, g_per_mtok
from app.accounting.windows import Stretch, best_window
from app.answers.account import accounts_of
from app.answers.accounts import Accounts
from app.answers.grid import grid_now
from app.answers.query import MOST_POINTS, AccountQuery
from app.answers.query import NAMES as QUERY_NAMES
from app.answers.summary import heading, summary_of, whole_range
from app.answers.terms import fleet_grid
from app.config import Config
from app.reference.grid import table_factors
from app.store.database import Store
from app.store.facts import fact_book
from app.store.grid import forecast, hourly_factors
from app.store.moment import moment
from app.store.reader import Reader

Answer = dict[str, Any]
# What it takes of a query: it is of one range, by fleet, and has figures of its own.
NAMES = tuple(name for name in QUERY_NAMES if name not in ("step", "by", "figures"))
# Local weekdays from Monday on, and hours of their clock.
Heat = list[list[float | None]]
WINDOW_HOURS = (1, 2, 4, 8)
_FIGURES = ("g_per_mtok",)
_HORIZON = timedelta(hours=72)


def carbon(store: Store, config: Config, query: AccountQuery, now: datetime) -> Answer:
    """{"query", ..., "basis", "grid_now", "moved", "load_kw", "intensity", "elsewhere", "ahead"}.

    basis: what the grams stand on, in one line. grid_now: where each zone's intensity of now is from, and how old it
    is. moved: g/Mtok before and now, and by how much mix, energy and grid moved it. load_kw, intensity: means by local
    weekday and hour, of the site's power and of each zone's g/kWh, each basis apart. elsewhere: the same energy in
    other zones of the same basis. ahead: each zone's forecast and its best windows.
    """
    return carbon_and_summary(store, config, replace(query, by="fleet", step=None, figures=_FIGURES), now)[0]


def carbon_and_summary(store: Store, config: Config, query: AccountQuery, now: datetime) -> tuple[Answer, Answer]:
    """Both of one reading of the range. query: of the summary; it is by fleet and has g_per_mtok among its figures."""
    before = previous_period(query.start, query.end, query.zone)
    earlier = replace(query, start=before.start, end=before.end)
    with moment(store) as reader:
        found = accounts_of(store, config, query, [whole_range(query)], now, reader)
        previous = accounts_of(store, config, earlier, [before], now, reader)
        return _carbon(store, config, found, previous, reader), summary_of(found, previous, config)


def _carbon(store: Store, config: Config, found: Accounts, previous: Accounts, reader: Reader) -> Answer:
    query, now = found.query, found.now
    own = _grids(store, config, query, found)
    zones = sorted(own)
    providers = config.grid_providers()
    return heading(query, now) | {
        "query": query.as_words(NAMES),
        "basis": carbon_line(found.total()),
        "grid_now": list(grid_now(reader, config, [own[zone] for zone in zones], now, query.known_at)),
        "moved": _moved(previous, found),
        "load_kw": _load(store, config, query, now, reader),
        "intensity": _intensity(reader, query, zones, providers),
        "elsewhere": list(_elsewhere(found.total(), list(own.values()))),
        "ahead": list(_ahead(reader, zones, now, query, providers)),
    }


def _grids(store: Store, config: Config, query: AccountQuery, found: Accounts) -> dict[str, GridFactor]:
    """Zones of the fleets that were seen, as they are at the end of the range, with their yearly values."""
    book, at = fact_book(store, query.known_at), query.end - timedelta(microseconds=1)
    fleets = [dict(key)["fleet"] for key in found.keys] or [None]
    return {grid.zone: grid for grid in (fleet_grid(book, config, fleet, at) for fleet in fleets)}


def _moved(before: Accounts, now: Accounts) -> Answer:
    """Effects are None for `reason` where the grams or tokens of a fleet are not known."""
    parts, reason = [], None
    for found in (before, now):
        told = {str(dict(key)["fleet"]): _part(found.line(0, key)) for key in found.keys}
        reason = reason or next((part for part in told.values() if isinstance(part, str)), None)
        parts.append({name: part for name, part in told.items() if isinstance(part, Part)})
    known = effects(*parts) if reason is None else None
    if known is None:
        return {"before": None, "now": None, "effects": None, "reason": reason or "a period has no tokens"}
    return {"before": g_per_mtok(parts[0]), "now": g_per_mtok(parts[1]), "effects": known, "reason": None}


def _part(account: Account) -> Part | str:
    """What a fleet did, or why that is not known. One without an engine made no tokens."""
    tokens, joules, grams = account.tokens(), account.joules(boundary="site"), account.grams()
    made = tokens.value if account.served.models else 0.0
    for figure, value in ((tokens, made), (joules, joules.value), (grams, grams.value)):
        if value is None:
            return str(figure.reason)
    return Part(units.mtok(made or 0.0), units.kwh(joules.value or 0.0), grams.value or 0.0)


def _load(store: Store, config: Config, query: AccountQuery, now: datetime, reader: Reader) -> Heat:
    """Mean kW of the site; of a long range its last hours."""
    first = max(query.start, query.end - timedelta(hours=MOST_POINTS))
    asked = replace(query, start=first, by="none", step="hour", boundary="site", figures=("energy_site_kwh",))
    periods = asked.periods()
    found = accounts_of(store, config, asked, periods, now, reader, engines=False)
    rows = []
    for number, period in enumerate(periods):
        joules = found.total(number).joules(boundary="site").value
        seconds = (min(period.end, now) - period.start).total_seconds()
        if joules is not None and seconds > 0:
            rows.append((period.start, joules, seconds))
    return _heat([(start.astimezone(query.zone), units.kw(joules / seconds)) for start, joules, seconds in rows])


def _intensity(
    reader: Reader, query: AccountQuery, zones: Sequence[str], providers: Mapping[str, Sequence[str]]
) -> list[Answer]:
    start_us, end_us = units.us_of_moment(query.start), units.us_of_moment(query.end)
    rows = hourly_factors(reader, zones, start_us, end_us, query.known_at, providers=providers)
    found = []
    for (zone, basis), mine in rows.group_by("zone", "basis", maintain_order=True):
        values = [
            (units.moment_of_us(row["hour_us"]).astimezone(query.zone), row["g_per_kwh"])
            for row in mine.iter_rows(named=True)
        ]
        names = sorted(mine["provider"].unique())
        found.append({"zone": zone, "basis": basis, "providers": names, "g_per_kwh": _heat(values)})
    return found


def _heat(values: Sequence[tuple[datetime, float]]) -> Heat:
    cells: dict[tuple[int, int], list[float]] = {}
    for local, value in values:
        cells.setdefault((local.weekday(), local.hour), []).append(value)
    return [
        [sum(cell) / len(cell) if (cell := cells.get((day, hour))) else None for hour in range(24)] for day in range(7)
    ]


def _elsewhere(total: Account, own: Sequence[GridFactor]) -> Iterator[Answer]:
    """Zones of the tables and the fleets' own, which are `is_own`, by their yearly values."""
    joules = total.joules(boundary="site").value
    bases = {factor.basis for factor in own if factor.g_per_kwh is not None}
    if joules is None or len(bases) != 1:
        return
    named = {factor.zone: factor for factor in (*table_factors(), *own)}
    for factor in sorted(named.values(), key=lambda one: one.g_per_kwh or 0.0):
        if factor.basis in bases and factor.g_per_kwh is not None:
            yield {
                "zone": factor.zone, "g_per_kwh": factor.g_per_kwh, "year": factor.year, "basis": factor.basis,
                "carbon_g": units.kwh(joules) * factor.g_per_kwh, "is_own": factor in own,
            }  # fmt: skip


def _ahead(
    reader: Reader, zones: Sequence[str], now: datetime, query: AccountQuery, providers: Mapping[str, Sequence[str]]
) -> Iterator[Answer]:
    """Of each zone the average forecast of the provider that comes first."""
    now_us, end_us = units.us_of_moment(now), units.us_of_moment(now + _HORIZON)
    rows = forecast(reader, zones, now_us, end_us, query.known_at, providers=providers)
    average = rows.filter(pl.col("kind") == "average")
    for zone in zones:
        mine = average.filter(pl.col("zone") == zone)
        if mine.is_empty():
            continue
        first = mine.row(0, named=True)
        chosen = mine.filter(pl.col("provider") == first["provider"], pl.col("basis") == first["basis"])
        stretches = [
            Stretch(max(units.moment_of_us(row["start_us"]), now), units.moment_of_us(row["end_us"]), row["g_per_kwh"])
            for row in chosen.sort("start_us").iter_rows(named=True)
        ]
        yield {
            "zone": zone, "provider": first["provider"], "basis": first["basis"],
            "issued_at": (first["issued_at"] or first["known_at"]).isoformat(),
            "values": [{"start": one.start.isoformat(), "end": one.end.isoformat(), "g_per_kwh": one.g_per_kwh}
                       for one in stretches],
            "windows": [window for hours in WINDOW_HOURS if (window := _window(stretches, hours))],
        }  # fmt: skip


def _window(stretches: Sequence[Stretch], hours: int) -> Answer | None:
    found = best_window(stretches, timedelta(hours=hours))
    if found is None:
        return None
    return {"hours": hours, "start": found.start.isoformat(), "end": found.end.isoformat(),
            "g_per_kwh": found.g_per_kwh, "saved_share": found.saved_share}  # fmt: skip
