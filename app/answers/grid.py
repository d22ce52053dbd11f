"""Question: how much carbon is in a kWh of a zone: now, hour by hour, to come, and by which source?"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app import units
from app.accounting.carbon import GridFactor
from app.answers.findings import duration
from app.answers.grid_findings import BEHIND_S
from app.answers.grid_sources import grid_sources, value_as_json
from app.config import Config
from app.errors import BadParameter
from app.store.database import Store
from app.store.grid import forecast, hourly_factors
from app.store.reader import Reader
from collectors.grid.point import Kind

BEFORE, AFTER = timedelta(hours=24), timedelta(hours=72)
LONGEST = timedelta(days=400)
# A provider that was asked within so many of its periods, and answered, is live.
_LIVE_PERIODS = 2


@dataclass(frozen=True)
class GridQuery:
    """zone: of wattmix.toml or the table, or a cloud region. known_at: by what was known then; None: all there is."""

    zone: str
    start: datetime
    end: datetime
    known_at: datetime | None = None

    @classmethod
    def around(
        cls,
        zone: str,
        now: datetime,
        start: datetime | None = None,
        end: datetime | None = None,
        known_at: datetime | None = None,
    ) -> GridQuery:
        """Without a start or an end: the last day, and three days ahead. Raises BadParameter."""
        begin = start or (end or now) - BEFORE
        stop = end or max(now, begin) + AFTER
        if not begin < stop <= begin + LONGEST:
            raise BadParameter(f"`from` is before `to`, by at most {LONGEST.days} days")
        return cls(zone, begin, stop, known_at)

    def as_words(self) -> dict[str, str]:
        words = {"zone": self.zone, "from": self.start.isoformat(), "to": self.end.isoformat()}
        return words if self.known_at is None else words | {"known-at": self.known_at.isoformat()}


def grid(store: Store, config: Config, query: GridQuery, now: datetime) -> dict[str, Any]:
    """What is known of a zone. Raises UnknownName for one that neither wattmix.toml nor the table has.

    current: of the average kind: `live`, else `cached` with its age and why, else the yearly `table`.
    """
    factor = config.grid_factor(query.zone)
    start_us, end_us, now_us = (units.us_of_moment(moment) for moment in (query.start, query.end, now))
    preference = config.grid_providers()
    then = min(now, query.known_at or now)
    sources = grid_sources(store, config, then, zones=(factor.zone,), known_at=query.known_at)
    to_come = forecast(store, [factor.zone], now_us, max(end_us, now_us + 1), query.known_at, providers=preference)

    def hours(kind: Kind) -> list[dict[str, Any]]:
        found = hourly_factors(store, [factor.zone], start_us, end_us, query.known_at, kind=kind, providers=preference)
        return [_hour(row) for row in found.iter_rows(named=True)]

    return {
        "zone": factor.zone,
        "generated_at": now.isoformat(),
        "known_at": None if query.known_at is None else query.known_at.isoformat(),
        "from": query.start.isoformat(),
        "to": query.end.isoformat(),
        "current": _current(sources, factor),
        "table": _table(factor),
        "sources": sources,
        "hours": hours("average"),
        "marginal_hours": hours("marginal"),
        "forecast": [value_as_json(row) for row in to_come.iter_rows(named=True)],
    }


def grid_now(
    reader: Reader, config: Config, factors: Collection[GridFactor], now: datetime, known_at: datetime | None
) -> Iterator[dict[str, Any]]:
    """{"zone", "current"} of each zone, as `grid` has it. factors: their yearly values."""
    then = min(now, known_at or now)
    sources = grid_sources(reader, config, then, zones=[factor.zone for factor in factors], known_at=known_at)
    for factor in factors:
        mine = [source for source in sources if source["zone"] == factor.zone]
        yield {"zone": factor.zone, "current": _current(mine, factor)}


def _current(sources: list[dict[str, Any]], factor: GridFactor) -> dict[str, Any]:
    """The first source with a value of now; `why` says what is missing before it. age_s: of the provider's answer.

    is_fallback: it stands in for a provider that is asked and does not answer.
    """
    why: list[str] = []
    for source in (one for one in sources if not one["is_marginal"]):
        newest = source["newest"]
        if newest is None:
            why.append(f"{source['title']}{_silence(source)}")
        elif newest["kind"] == "average":
            is_live = _is_live(source)
            if not is_live:
                why.append(f"{source['title']}: {source['problem'] or 'nothing newer'}")
            value: dict[str, Any] = dict(newest)
            return value | {
                "from": "live" if is_live else "cached", "title": source["title"], "age_s": source["answered_age_s"],
                "value_age_s": newest["age_s"], "source": source["attribution"], "why": "; ".join(why) or None,
                "is_fallback": bool(why),
            }  # fmt: skip
    said = factor.reason or "; ".join(why) or "no provider of wattmix.toml is asked for the average of this zone"
    return _table(factor) | {
        "from": "table", "age_s": None, "kind": "average", "why": said, "is_fallback": bool(why),
    }  # fmt: skip


def _silence(source: dict[str, Any]) -> str:
    """Of one without a value of the last day, why; where asking it fails, for how long it has."""
    problem, answered_s = source["problem"], source["answered_age_s"]
    if problem is None or source["state"] == "absent":
        return f": {problem or 'no value of the last day'}"
    since = "never answered" if answered_s is None else f"not answered for {duration(answered_s)}"
    return f" has {since}: {problem}"


def _is_live(source: dict[str, Any]) -> bool:
    answered_s = source["answered_age_s"]
    is_recent = answered_s is not None and answered_s <= _LIVE_PERIODS * source["poll_s"]
    return is_recent and source["problem"] is None and source["newest"]["age_s"] <= BEHIND_S


def _table(factor: GridFactor) -> dict[str, Any]:
    """The yearly figure, of the user's own zone or of the table that ships."""
    return {
        "g_per_kwh": factor.g_per_kwh, "basis": factor.basis, "year": factor.year, "method": factor.method,
        "source": factor.source,
    }  # fmt: skip


def _hour(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "hour": units.moment_of_us(row["hour_us"]).isoformat(),
        "g_per_kwh": row["g_per_kwh"],
        "method": row["method"],
        "basis": row["basis"],
        "provider": row["provider"],
        "covered": row["covered"],
        "known_at": row["known_at"].astimezone(UTC).isoformat(),
    }
