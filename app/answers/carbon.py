"""Question: what moved grams per token, when was the grid clean, and when and where would the same work emit least?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from app import units
from app.accounting.account import Account
from app.accounting.carbon_line import carbon_line
from app.accounting.comparison import previous_period
from app.accounting.decomposition import Part, effects, g_per_mtok
from app.accounting.periods import Period
from app.accounting.windows import Stretch, best_window
from app.answers.account import accounts_of
from app.answers.accounts import Accounts
from app.answers.query import MOST_POINTS, AccountQuery
from app.answers.summary import heading
from app.config import Config
from app.facts.kinds import ZoneFact
from app.reference.grid import table_factors
from app.store.database import Store
from app.store.facts import fact_book
from app.store.gpu_rollup import HOUR_US
from app.store.grid import forecast, hourly_factors
from app.store.moment import moment
from app.store.names import Reader

Answer = dict[str, Any]
# Local weekdays from Monday on, and hours of their clock.
Heat = list[list[float | None]]
WINDOW_HOURS = (1, 2, 4, 8)
_HORIZON = timedelta(hours=72)


def carbon(store: Store, config: Config, query: AccountQuery, now: datetime) -> Answer:
    """{"query", ..., "basis", "moved", "load_kw", "intensity", "elsewhere", "ahead"}.

    basis: what the grams stand on, in one line. moved: g/Mtok before and now, and by how much mix, energy and grid
    moved it. load_kw, intensity: means by local weekday and hour, of the site's power and of each zone's g/kWh.
    elsewhere: the same energy in other zones of the same basis. ahead: each zone's forecast and its best windows.
    """
    with moment(store) as reader:
        return _carbon(store, config, query, now, reader)


def _carbon(store: Store, config: Config, query: AccountQuery, now: datetime, reader: Reader) -> Answer:
    asked = replace(query, by="fleet", step=None, figures=None)
    before = previous_period(query.start, query.end, query.zone)
    range_ = Period(query.start, query.end, query.start.isoformat())
    found = accounts_of(store, config, asked, [range_], now, reader)
    earlier = replace(asked, start=before.start, end=before.end)
    previous = accounts_of(store, config, earlier, [before], now, reader)
    zones = _zones(store, config, query, found)
    providers = config.grid_providers()
    return heading(query, now) | {
        "basis": carbon_line(found.total()),
        "moved": _moved(previous, found),
        "load_kw": _load(store, config, query, now, reader),
        "intensity": _intensity(reader, query, zones, providers),
        "elsewhere": list(_elsewhere(config, found.total(), zones)),
        "ahead": list(_ahead(reader, zones, now, query, providers)),
    }


def _zones(store: Store, config: Config, query: AccountQuery, found: Accounts) -> list[str]:
    """Of the fleets that were seen, as they are at the end of the range."""
    book, at = fact_book(store, query.known_at), query.end - timedelta(microseconds=1)
    fleets = [dict(key)["fleet"] for key in found.keys] or [None]
    values = (book.value("zone", fleet, at) for fleet in fleets)
    return sorted({value.zone if isinstance(value, ZoneFact) else config.defaults.zone for value in values})


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
    found = accounts_of(store, config, asked, periods, now, reader)
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
    start_us, end_us = _us(query.start) // HOUR_US * HOUR_US, -(-_us(query.end) // HOUR_US) * HOUR_US
    rows = hourly_factors(reader, zones, start_us, end_us, query.known_at, providers=providers)
    found = []
    for (zone,), mine in rows.group_by("zone", maintain_order=True):
        values = [
            (_moment(row["hour_us"]).astimezone(query.zone), row["g_per_kwh"]) for row in mine.iter_rows(named=True)
        ]
        bases, names = sorted(mine["basis"].unique()), sorted(mine["provider"].unique())
        found.append({"zone": zone, "basis": " + ".join(bases), "providers": names, "g_per_kwh": _heat(values)})
    return found


def _heat(values: Sequence[tuple[datetime, float]]) -> Heat:
    cells: dict[tuple[int, int], list[float]] = {}
    for local, value in values:
        cells.setdefault((local.weekday(), local.hour), []).append(value)
    return [
        [sum(cell) / len(cell) if (cell := cells.get((day, hour))) else None for hour in range(24)] for day in range(7)
    ]


def _elsewhere(config: Config, total: Account, zones: Sequence[str]) -> Iterator[Answer]:
    """Zones of the tables and of wattmix.toml, by their yearly values; the fleets' own are `is_own`."""
    joules = total.joules(boundary="site").value
    own = [config.grid_factor(zone) for zone in zones]
    bases = {factor.basis for factor in own}
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
    rows = forecast(reader, zones, _us(now), _us(now + _HORIZON), query.known_at, providers=providers)
    average = rows.filter(pl.col("kind") == "average")
    for zone in zones:
        mine = average.filter(pl.col("zone") == zone)
        if mine.is_empty():
            continue
        first = mine.row(0, named=True)
        chosen = mine.filter(pl.col("provider") == first["provider"], pl.col("basis") == first["basis"])
        stretches = [
            Stretch(max(_moment(row["start_us"]), now), _moment(row["end_us"]), row["g_per_kwh"])
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


def _us(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)


def _moment(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1e6, UTC)
