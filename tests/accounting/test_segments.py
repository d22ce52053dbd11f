"""Segments partition their periods and begin where a fact changes, never before it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.periods import Period, day_start, local_days
from app.accounting.segments import Segment, cut

MINUTE = timedelta(minutes=1)


def at(clock: str, day: int = 3) -> datetime:
    return datetime.fromisoformat(f"2026-02-{day:02}T{clock}").replace(tzinfo=UTC)


def period(start: str, end: str) -> Period:
    return Period(at(start), at(end), start)


def shown(segments: list[Segment]) -> list[tuple[str, str]]:
    return [(f"{one.start:%H:%M}", f"{one.end:%H:%M}") for one in segments]


def test_without_a_change_a_period_is_one_segment() -> None:
    assert shown(cut([period("04:00", "20:00")], [])) == [("04:00", "20:00")]


def test_a_change_at_13_37_cuts_there() -> None:
    assert shown(cut([period("12:00", "16:00")], [at("13:37")])) == [
        ("12:00", "13:37"), ("13:37", "16:00"),
    ]  # fmt: skip
    assert shown(cut([period("12:00", "14:00"), period("14:00", "16:00")], [at("15:00")])) == [
        ("12:00", "14:00"), ("14:00", "15:00"), ("15:00", "16:00"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("second", "edge"), [("13:37:00", "13:37"), ("13:37:01", "13:38"), ("13:37:59.999999", "13:38")]
)
def test_a_change_within_a_minute_counts_from_the_next_one_on(second: str, edge: str) -> None:
    """A fact changes nothing before it is valid."""
    assert edge in [start for start, _ in shown(cut([period("13:00", "14:00")], [at(second)]))]


def test_two_changes_of_one_hour_and_a_period_within_an_hour() -> None:
    assert shown(cut([period("13:10", "13:50")], [at("13:20"), at("13:30"), at("13:30")])) == [
        ("13:10", "13:20"), ("13:20", "13:30"), ("13:30", "13:50"),
    ]  # fmt: skip


def test_changes_at_or_past_the_edges_cut_nothing() -> None:
    outside = [at("11:59"), at("12:00"), at("13:00"), at("13:01")]
    assert shown(cut([period("12:00", "13:00")], outside)) == [("12:00", "13:00")]


ZONES = ("UTC", "Asia/Kathmandu", "America/Los_Angeles", "Europe/Madrid", "Australia/Lord_Howe")


@given(st.sampled_from(ZONES).map(ZoneInfo), st.dates(date(2026, 1, 1), date(2026, 12, 20)), st.data())
def test_segments_partition_their_periods_whatever_changes(zone: ZoneInfo, first: date, data: st.DataObject) -> None:
    days = local_days(first, first + timedelta(days=3), zone)
    begin = days[0].start
    changes = [
        begin + timedelta(seconds=second) for second in data.draw(st.lists(st.integers(-3600, 80 * 3600), max_size=12))
    ]
    segments = cut(days, changes)
    assert (segments[0].start, segments[-1].end) == (days[0].start, days[-1].end)
    assert all(one.end == following.start for one, following in pairwise(segments))
    for one in segments:
        inside = days[one.period]
        assert inside.start <= one.start < one.end <= inside.end
        assert not any(one.start < change <= one.end - MINUTE for change in changes)
    assert cut(days, reversed(changes)) == segments


@pytest.mark.parametrize("tz", ["UTC", "Asia/Kathmandu", "Etc/GMT+8"])
def test_days_of_a_year_are_partitioned_in_utc_and_at_plus_5_45_and_minus_8(tz: str) -> None:
    zone = ZoneInfo(tz)
    days = local_days(date(2026, 1, 1), date(2027, 1, 1), zone)
    segments = cut(days, [datetime(2026, 7, 1, 13, 37, tzinfo=UTC)])
    assert len(days) == 365
    assert segments[0].start == day_start(date(2026, 1, 1), zone)
    assert segments[-1].end == day_start(date(2027, 1, 1), zone)
    assert all(one.end == following.start for one, following in pairwise(segments))
    assert sum((one.end - one.start for one in segments), timedelta()) == timedelta(days=365)
    bounds = [one.bounds_us for one in segments]
    assert bounds[0][0] == int(days[0].start.timestamp()) * 1_000_000
    assert sum(high - low for low, high in bounds) == 365 * 86_400 * 1_000_000
