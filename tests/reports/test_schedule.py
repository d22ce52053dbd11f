"""Due times and their windows: each window once, on the right local days, whatever the clocks do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.report_settings import ReportSchedule
from app.reports.schedule import due_between, next_due, request_at, window_before

MADRID = ZoneInfo("Europe/Madrid")
zones = st.sampled_from(["Europe/Madrid", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"])
moments = st.integers(0, 17 * 365 * 24 * 60).map(
    lambda minute: datetime(2010, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
)


def schedule(cron: str = "0 6 * * *", tz: str = "Europe/Madrid", **said: Any) -> ReportSchedule:
    return ReportSchedule(**{"name": "daily", "kind": "fleet-day", "cron": cron, "tz": tz, **said})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_due_times_lie_past_the_first_bound_and_up_to_and_with_the_second() -> None:
    three = [at("2026-02-03T05:00Z"), at("2026-02-04T05:00Z"), at("2026-02-05T05:00Z")]  # 06:00 in Madrid
    assert due_between(schedule(), at("2026-02-02T05:00Z"), at("2026-02-05T05:00Z")) == three
    assert due_between(schedule(), at("2026-02-03T05:00Z"), at("2026-02-05T04:59Z")) == [three[1]]
    assert due_between(schedule(), at("2026-02-03T05:00Z"), at("2026-02-03T04:00Z")) == []
    assert next_due(schedule(), at("2026-02-03T05:00Z")) == three[1]


def test_a_schedule_that_has_no_due_time_any_more_has_no_next_one() -> None:
    assert next_due(schedule("0 0 29 2 *", "UTC"), at("2026-03-01T00:00Z")) == at("2028-02-29T00:00Z")


@pytest.mark.parametrize(
    ("length", "first", "after"),
    [("day", "2026-02-28", "2026-03-01"), ("week", "2026-02-16", "2026-02-23"), ("month", "2026-02-01", "2026-03-01")],
)
def test_a_window_is_the_last_complete_one(length: Any, first: str, after: str) -> None:
    window = window_before(at("2026-03-01T05:00Z"), MADRID, length)  # a Sunday
    assert (window.first, window.after) == (first, after)
    assert window.start == at(f"{first}T00:00+01:00")
    assert window.end == at(f"{after}T00:00+01:00")


def test_an_hour_is_the_last_complete_one_of_the_local_clock() -> None:
    window = window_before(at("2026-02-03T05:05Z"), ZoneInfo("Asia/Kathmandu"), "hour")  # 10:50 there
    assert (window.first, window.after) == ("2026-02-03T09+0545", "2026-02-03T10+0545")
    assert (window.start, window.end) == (at("2026-02-03T03:15Z"), at("2026-02-03T04:15Z"))


def test_midnight_ends_the_day_before_it() -> None:
    assert window_before(at("2026-03-02T23:00Z"), MADRID, "day").first == "2026-03-02"
    assert window_before(at("2026-03-02T22:59Z"), MADRID, "day").first == "2026-03-01"


def test_days_of_23_and_25_hours() -> None:
    for day, hours in (("2026-03-30", 23), ("2026-10-26", 25)):
        window = window_before(at(f"{day}T06:00+02:00"), MADRID, "day")
        assert (window.end - window.start) / timedelta(hours=1) == hours


def test_a_day_that_a_zone_left_out_is_no_window() -> None:
    window = window_before(at("2011-12-31T06:00+14:00"), ZoneInfo("Pacific/Apia"), "day")
    assert (window.first, window.after) == ("2011-12-29", "2011-12-31")
    assert window.end - window.start == timedelta(days=1)


@given(zones, moments, st.sampled_from(["0 6 * * *", "30 2 * * *", "0 0 * * *", "59 23 * * *"]))
def test_days_are_reported_once_each_and_in_order(tz: str, begin: datetime, cron: str) -> None:
    """Three weeks of due times: their windows follow each other without overlap or gap."""
    one = schedule(cron, tz)
    due = due_between(one, begin, begin + timedelta(days=21))
    windows = list(dict.fromkeys(request_at(one, moment).window for moment in due))
    assert len(due) in (20, 21, 22)
    assert all(one.end == following.start for one, following in pairwise(windows))
    for moment in due:
        window = request_at(one, moment).window
        assert window.end <= moment
        assert moment.astimezone(ZoneInfo(tz)).date().isoformat() == window.after


@given(zones, moments)
def test_hours_are_reported_once_each_and_in_order(tz: str, begin: datetime) -> None:
    one = schedule("5 * * * *", tz, kind="hourly", window="hour")
    due = due_between(one, begin, begin + timedelta(days=2))
    windows = [request_at(one, moment).window for moment in due]
    assert all(one.end == following.start for one, following in pairwise(windows))
    assert len({(window.first, window.after) for window in windows}) == len(windows)
    assert all(window.end <= moment for window, moment in zip(windows, due, strict=True))


@given(zones, moments, st.sampled_from(["week", "month"]))
def test_weeks_and_months_follow_each_other(tz: str, begin: datetime, length: Any) -> None:
    zone = ZoneInfo(tz)
    windows = [window_before(begin + timedelta(days=number), zone, length) for number in range(70)]
    distinct = list(dict.fromkeys(windows))
    assert len(distinct) >= 3
    assert all(one.end == following.start for one, following in pairwise(distinct))
    for window in distinct:
        first = datetime.fromisoformat(window.first)
        assert first.weekday() == 0 if length == "week" else first.day == 1


def test_a_request_takes_everything_from_the_schedule() -> None:
    request = request_at(schedule(kind="hourly", boundary="site", basis="output"), at("2026-02-04T05:00Z"))
    assert (request.kind, request.tz, request.boundary, request.basis) == ("hourly", "Europe/Madrid", "site", "output")
    assert len(request.periods()) == 24
