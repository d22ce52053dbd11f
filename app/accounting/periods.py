"""Local days and hours of a time zone as periods of UTC: days of 23 and 25 hours, and offsets of 30 or 45 minutes.

A day runs from its first midnight to the next day's, so that days follow each other without overlap or gap, whatever
the clocks do in between; a day that a zone left out (Pacific/Apia, 2011-12-30) has no time and no period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Period:
    """[start, end) in UTC. label: how a person names it, e.g. a local day or the local start of an hour."""

    start: datetime
    end: datetime
    label: str


def time_zone(name: str) -> ZoneInfo:
    """The IANA time zone of that name. Raises ValueError that says what is accepted."""
    if name not in zone_names():
        near = get_close_matches(name, zone_names(), n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"an IANA time zone such as Europe/Madrid, America/New_York or UTC{meant}")
    return ZoneInfo(name)


@cache
def zone_names() -> frozenset[str]:
    """Every zone of this system's time zone database."""
    return frozenset(available_timezones())


def day_start(day: date, zone: ZoneInfo) -> datetime:
    """When a local day begins, in UTC; its first midnight, or the end of the gap that swallowed it."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def local_days(first: date, end: date, zone: ZoneInfo) -> list[Period]:
    """The local days of [first, end), each labelled by its date."""
    days = (first + number * ONE_DAY for number in range((end - first).days))
    periods = (Period(day_start(day, zone), day_start(day + ONE_DAY, zone), day.isoformat()) for day in days)
    return [period for period in periods if period.start < period.end]


def local_hours(start: datetime, end: datetime, zone: ZoneInfo) -> list[Period]:
    """The local hours of [start, end), each labelled by its local start with the offset: no label appears twice.

    Where the clocks move by less than an hour, one hour of that day is shorter.
    """
    return list(_hours(start, end, zone))


def _hours(start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[Period]:
    begin = start
    while begin < end:
        local = begin.astimezone(zone)
        into = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
        upto = min(begin + timedelta(hours=1) - into, end)
        yield Period(begin, upto, local.isoformat(timespec="minutes"))
        begin = upto
