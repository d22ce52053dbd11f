"""Question: which providers are asked about which zones, what do they say of now, and how is asking them going?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from app import units
from app.answers.asking import as_text, asking_as_json
from app.answers.grid_findings import source_findings, source_state
from app.config import Config
from app.grid_settings import GridSettings
from app.store.grid import latest
from app.store.reader import Reader
from app.store.source_states import GridState, read_grid_states
from collectors.grid.point import how_known
from collectors.grid.registry import PROVIDERS

# What is older says nothing of now.
LONGEST_AGE = timedelta(hours=24)
Row = Mapping[str, Any]


def grid_sources(
    reader: Reader,
    config: Config,
    now: datetime,
    *,
    zones: Collection[str] | None = None,
    known_at: datetime | None = None,
) -> list[dict[str, Any]]:
    """Each provider and zone of wattmix.toml in its order, with its newest value of the last day and its findings.

    zones: only these.
    """
    asked = [(one, name) for one in config.grid for name in one.zones if zones is None or name in zones]
    if not asked:
        return []
    states = read_grid_states(reader)
    newest = _newest(reader, {name for _, name in asked}, now, known_at)
    return [
        _source(
            settings,
            states.get((settings.provider, name), GridState(settings.provider, name)),
            newest.get((settings.provider, name)),
            config.grid_factor(name).label,
            now,
        )
        for settings, name in asked
    ]


def _newest(reader: Reader, zones: set[str], now: datetime, known_at: datetime | None) -> dict[tuple[str, str], Row]:
    """By provider and zone: of several bases the value that begins last, and an average before a marginal one."""
    since_us, now_us = (units.us_of_moment(moment) for moment in (now - LONGEST_AGE, now))
    found: dict[tuple[str, str], Row] = {}
    for row in latest(reader, sorted(zones), since_us, now_us, known_at).iter_rows(named=True):
        key = (row["provider"].split(": ")[0], row["zone"])
        if key not in found or _rank(row) > _rank(found[key]):
            found[key] = row
    return found


def _rank(row: Row) -> tuple[bool, int]:
    return row["kind"] == "average", row["start_us"]


def _source(settings: GridSettings, state: GridState, row: Row | None, table: str, now: datetime) -> dict[str, Any]:
    known = PROVIDERS[settings.provider]
    source = {
        "provider": settings.provider,
        "title": known.title,
        "attribution": known.attribution,
        "zone": state.place,
        "zone_there": settings.zones[state.place],
        "is_marginal": settings.is_marginal,
        "poll_s": settings.poll_s,
        **asking_as_json(state, now),
        "forecast_problem": state.forecast_problem,
        "newest": None if row is None else value_as_json(row) | {"age_s": _value_age_s(row, now)},
        "table": table,
    }  # fmt: skip
    source["state"] = source_state(source)
    return source | {"findings": source_findings(source)}


def value_as_json(row: Row) -> dict[str, Any]:
    """A value of the store. method: measured, estimated or forecast."""
    return {
        "start": units.moment_of_us(row["start_us"]).isoformat(),
        "end": units.moment_of_us(row["end_us"]).isoformat(),
        "g_per_kwh": row["g_per_kwh"],
        "method": how_known(is_forecast=row["is_forecast"], estimated=row["estimated"]),
        "estimation_method": row["estimation_method"],
        "kind": row["kind"],
        "basis": row["basis"],
        "provider": row["provider"],
        "issued_at": as_text(row["issued_at"]),
        "revised_at": as_text(row["revised_at"]),
        "known_at": as_text(row["known_at"]),
    }


def _value_age_s(row: Row, now: datetime) -> float:
    """How long ago the stretch of a value was over; 0 while it lasts."""
    return max(0.0, (now - units.moment_of_us(row["end_us"])).total_seconds())
