"""Local days and hours: they partition the time in every zone, and each has the length that its clocks say."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.accounting.periods import Period, day_start, local_days, local_hours, time_zone

ZONES = ("Europe/Madrid", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "UTC")
HOUR = timedelta(hours=1)

zones = st.sampled_from(ZONES).map(ZoneInfo)
dates = st.dates(date(1990, 1, 1), date(2037, 12, 31))


def of_day(year: int, month: int, day: int, zone: str) -> list[Period]:
    first = date(year, month, day)
    return local_days(first, first + timedelta(days=1), ZoneInfo(zone))


def hours_of(year: int, month: int, day: int, zone: str) -> list[Period]:
    [period] = of_day(year, month, day, zone)
    return local_hours(period.start, period.end, ZoneInfo(zone))


def length_h(period: Period) -> float:
    return (period.end - period.start) / HOUR


@given(zones, dates, st.integers(0, 40))
@example(ZoneInfo("Pacific/Apia"), date(2011, 12, 20), 20)
@example(ZoneInfo("Australia/Lord_Howe"), date(2026, 4, 1), 10)
def test_days_partition_the_time_without_overlap_or_gap(zone: ZoneInfo, first: date, count: int) -> None:
    end = first + timedelta(days=count)
    days = local_days(first, end, zone)
    assert all(one.end == next_one.start for one, next_one in pairwise(days))
    assert sum((day.end - day.start for day in days), timedelta()) == day_start(end, zone) - day_start(first, zone)
    assert all(day.start < day.end for day in days)
    if days:
        assert (days[0].start, days[-1].end) == (day_start(first, zone), day_start(end, zone))


@given(zones, dates, st.integers(0, 86_399))
@example(ZoneInfo("Pacific/Apia"), date(2011, 12, 30), 0)
def test_a_moment_lies_in_the_day_that_its_local_clock_shows(zone: ZoneInfo, day: date, second: int) -> None:
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=second)
    shown = moment.astimezone(zone).date()
    [period] = local_days(shown, shown + timedelta(days=1), zone)
    assert period.label == shown.isoformat()
    assert period.start <= moment < period.end


@given(zones, dates, st.integers(1, 5))
@example(ZoneInfo("Australia/Lord_Howe"), date(2026, 4, 4), 3)
@example(ZoneInfo("Australia/Lord_Howe"), date(2026, 10, 3), 3)
@example(ZoneInfo("Europe/Madrid"), date(2026, 10, 25), 1)
def test_hours_partition_their_days_and_no_label_appears_twice(zone: ZoneInfo, first: date, count: int) -> None:
    start, end = day_start(first, zone), day_start(first + timedelta(days=count), zone)
    hours = local_hours(start, end, zone)
    assert all(one.end == next_one.start for one, next_one in pairwise(hours))
    assert (hours[0].start, hours[-1].end) == (start, end)
    assert all(timedelta() < hour.end - hour.start <= HOUR for hour in hours)
    assert len({hour.label for hour in hours}) == len(hours)
    assert [datetime.fromisoformat(hour.label) for hour in hours] == [hour.start for hour in hours]


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        ((2026, 2, 3), "Europe/Madrid", 24),
        ((2026, 3, 29), "Europe/Madrid", 23),  # 02:00 -> 03:00
        ((2026, 10, 25), "Europe/Madrid", 25),  # 03:00 -> 02:00
        ((2026, 3, 8), "America/New_York", 23),
        ((2026, 11, 1), "America/New_York", 25),
        ((2026, 10, 4), "Australia/Lord_Howe", 23.5),  # 02:00 -> 02:30
        ((2026, 4, 5), "Australia/Lord_Howe", 24.5),  # 02:00 -> 01:30
        ((2018, 11, 4), "America/Sao_Paulo", 23),  # midnight itself is skipped
        ((2026, 3, 29), "Asia/Kathmandu", 24),
    ],
)
def test_a_day_is_as_long_as_its_clocks_say(day: tuple[int, int, int], zone: str, hours: float) -> None:
    [period] = of_day(*day, zone)
    assert length_h(period) == hours
    assert sum(map(length_h, hours_of(*day, zone))) == hours


def test_a_day_in_madrid_begins_an_hour_or_two_before_utcs() -> None:
    [winter], [summer] = of_day(2026, 2, 3, "Europe/Madrid"), of_day(2026, 7, 3, "Europe/Madrid")
    assert (winter.start, winter.end) == (datetime(2026, 2, 2, 23, tzinfo=UTC), datetime(2026, 2, 3, 23, tzinfo=UTC))
    assert summer.start == datetime(2026, 7, 2, 22, tzinfo=UTC)
    assert (winter.label, summer.label) == ("2026-02-03", "2026-07-03")


def test_an_hour_in_kathmandu_begins_at_a_quarter_past_utcs() -> None:
    # UTC+05:45: local midnight is 18:15 UTC, and every hour after it begins at a quarter past
    hours = hours_of(2026, 2, 3, "Asia/Kathmandu")
    assert hours[0] == Period(
        datetime(2026, 2, 2, 18, 15, tzinfo=UTC), datetime(2026, 2, 2, 19, 15, tzinfo=UTC), "2026-02-03T00:00+05:45"
    )
    assert len(hours) == 24


def test_the_doubled_hour_has_two_labels_and_the_skipped_one_none() -> None:
    autumn = [hour.label for hour in hours_of(2026, 10, 25, "Europe/Madrid")]
    assert autumn[1:5] == [
        "2026-10-25T01:00+02:00", "2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00",
    ]  # fmt: skip
    spring = [hour.label for hour in hours_of(2026, 3, 29, "Europe/Madrid")]
    assert spring[1:3] == ["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"]


def test_half_an_hour_that_is_skipped_or_doubled_is_a_shorter_hour() -> None:
    autumn = hours_of(2026, 4, 5, "Australia/Lord_Howe")
    assert [(hour.label[11:], length_h(hour)) for hour in autumn[1:4]] == [
        ("01:00+11:00", 1.0), ("01:30+10:30", 0.5), ("02:00+10:30", 1.0),
    ]  # fmt: skip
    spring = hours_of(2026, 10, 4, "Australia/Lord_Howe")
    assert [(hour.label[11:], length_h(hour)) for hour in spring[1:4]] == [
        ("01:00+10:30", 1.0), ("02:30+11:00", 0.5), ("03:00+11:00", 1.0),
    ]  # fmt: skip


def test_a_day_that_a_zone_left_out_has_no_period() -> None:
    days = local_days(date(2011, 12, 28), date(2012, 1, 2), ZoneInfo("Pacific/Apia"))
    assert [(day.label, length_h(day)) for day in days] == [
        ("2011-12-28", 24), ("2011-12-29", 24), ("2011-12-31", 24), ("2012-01-01", 24),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["Europe/Madrd", "", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Europe"])
def test_an_unknown_zone_is_refused_with_what_is_accepted(name: str) -> None:
    with pytest.raises(ValueError, match="an IANA time zone such as Europe/Madrid"):
        time_zone(name)


def test_a_misspelt_zone_is_told_its_neighbour() -> None:
    with pytest.raises(ValueError, match=r"did you mean Europe/Madrid\?"):
        time_zone("Europe/Madird")
    assert time_zone("Europe/Madrid") == ZoneInfo("Europe/Madrid")
