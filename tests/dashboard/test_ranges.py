"""Ranges of time by their names, in local days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.dashboard.ranges import PRESETS, bounds

MADRID = ZoneInfo("Europe/Madrid")
# 2026-03-29 is the day of 23 hours; 14:37:21 in Madrid.
NOW = datetime(2026, 3, 29, 12, 37, 21, tzinfo=UTC)
UNUSED = date(2026, 1, 1)


def local(day: str) -> datetime:
    return datetime.combine(date.fromisoformat(day), datetime.min.time(), MADRID).astimezone(UTC)


@pytest.mark.parametrize(
    ("preset", "start", "end"),
    [
        ("today", "2026-03-29", None),
        ("yesterday", "2026-03-28", "2026-03-29"),
        ("this month", "2026-03-01", None),
        ("last month", "2026-02-01", "2026-03-01"),
    ],
)
def test_days_are_local_and_what_lasts_ends_now(preset: str, start: str, end: str | None) -> None:
    found = bounds(preset, NOW, MADRID, UNUSED, UNUSED)  # type: ignore[arg-type]
    assert found == (local(start), local(end) if end else NOW.replace(second=0))


def test_rolling_ranges_are_so_many_hours_up_to_the_minute() -> None:
    upto = NOW.replace(second=0)
    lengths = {"last 24 h": 24, "last 7 days": 168, "last 30 days": 720}
    for preset, hours in lengths.items():
        assert bounds(preset, NOW, MADRID, UNUSED, UNUSED) == (upto - timedelta(hours=hours), upto)  # type: ignore[arg-type]


def test_last_month_of_january_is_december() -> None:
    january = datetime(2026, 1, 1, 3, tzinfo=UTC)
    assert bounds("last month", january, MADRID, UNUSED, UNUSED) == (local("2025-12-01"), local("2026-01-01"))


def test_a_range_of_ones_own_is_its_local_days_and_never_ends_after_now() -> None:
    first, after = date(2026, 3, 28), date(2026, 3, 29)
    assert bounds("custom", NOW, MADRID, first, after) == (local("2026-03-28"), local("2026-03-29"))
    assert bounds("custom", NOW, MADRID, after, date(2026, 5, 1)) == (local("2026-03-29"), NOW.replace(second=0))


def test_each_preset_has_bounds() -> None:
    for preset in PRESETS:
        start, end = bounds(preset, NOW, MADRID, UNUSED, date(2026, 1, 2))
        assert start < end <= NOW
