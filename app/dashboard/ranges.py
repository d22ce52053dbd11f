"""Ranges of time as people name them, in the days of a time zone. Pure: the moment of asking is passed in."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from app.accounting.periods import ONE_DAY, day_start

Preset = Literal[
    "last 24 h", "today", "yesterday", "last 7 days", "last 30 days", "this month", "last month", "custom"
]  # fmt: skip
PRESETS: tuple[Preset, ...] = get_args(Preset)
_HOURS: dict[Preset, timedelta] = {"last 24 h": ONE_DAY, "last 7 days": 7 * ONE_DAY, "last 30 days": 30 * ONE_DAY}


def bounds(preset: Preset, now: datetime, zone: ZoneInfo, first: date, after: date) -> tuple[datetime, datetime]:
    """[start, end) in UTC of whole minutes, never past `now`. first, after: the local days of `custom`.

    A range that lasts ends now, so that what has not been yet is not counted as time without use.
    """
    upto = now.replace(second=0, microsecond=0)
    if preset in _HOURS:
        return upto - _HOURS[preset], upto
    begin, end = days(preset, now.astimezone(zone).date(), first, after)
    return day_start(begin, zone), min(day_start(end, zone), upto)


def days(preset: Preset, today: date, first: date, after: date) -> tuple[date, date]:
    """The local days [begin, end) of a preset of days."""
    month = today.replace(day=1)
    found: dict[Preset, tuple[date, date]] = {
        "today": (today, today + ONE_DAY),
        "yesterday": (today - ONE_DAY, today),
        "this month": (month, today + ONE_DAY),
        "last month": ((month - ONE_DAY).replace(day=1), month),
        "custom": (first, after),
    }
    return found[preset]
