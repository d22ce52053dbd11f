"""Cron in a time zone: by the wall clock where hours are named, by real time where every hour is meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import cron

MINUTE = timedelta(minutes=1)
MADRID = ZoneInfo("Europe/Madrid")

moments = st.integers(0, 12 * 365 * 24 * 60).map(lambda minute: datetime(2015, 1, 1, tzinfo=UTC) + minute * MINUTE)


def due(expression: str, zone: str, after: str, count: int) -> list[str]:
    """The next due times in local time, as the zone's clocks show them."""
    found = cron.due_times(expression, ZoneInfo(zone), datetime.fromisoformat(after))
    return [moment.astimezone(ZoneInfo(zone)).strftime("%d %H:%M%z") for moment in islice(found, count)]


def test_a_time_that_is_skipped_is_due_once_right_after() -> None:
    # Madrid, 2026-03-29: 02:00 -> 03:00
    assert due("30 2 * * *", "Europe/Madrid", "2026-03-27T12:00Z", 3) == [
        "28 02:30+0100",
        "29 03:00+0200",
        "30 02:30+0200",
    ]


def test_a_time_that_comes_twice_is_due_the_first_time() -> None:
    # Madrid, 2026-10-25: 03:00 -> 02:00
    assert due("30 2 * * *", "Europe/Madrid", "2026-10-24T12:00Z", 2) == ["25 02:30+0200", "26 02:30+0100"]


@pytest.mark.parametrize("after", ["2026-10-25T00:30Z", "2026-10-25T01:10Z", "2026-10-25T01:30Z", "2026-10-25T01:59Z"])
def test_asked_from_within_the_doubled_hour_it_is_not_due_again(after: str) -> None:
    assert due("30 2 * * *", "Europe/Madrid", after, 1) == ["26 02:30+0100"]


@pytest.mark.parametrize("expression", ["0 2,3 * * *", "0 2-3 * * *", "0,30 2 * * *", "*/15 2 * * *"])
def test_several_times_in_the_skipped_hour_are_due_once(expression: str) -> None:
    first, second = islice(cron.due_times(expression, MADRID, datetime(2026, 3, 29, 0, 30, tzinfo=UTC)), 2)
    assert first == datetime(2026, 3, 29, 1, tzinfo=UTC)  # 03:00 in Madrid
    assert second == datetime(2026, 3, 30, tzinfo=UTC)  # 02:00 the next day


def test_each_hour_goes_by_real_time() -> None:
    assert due("5 * * * *", "Europe/Madrid", "2026-10-24T23:30Z", 4) == [
        "25 02:05+0200", "25 02:05+0100", "25 03:05+0100", "25 04:05+0100",
    ]  # fmt: skip
    assert due("5 * * * *", "Europe/Madrid", "2026-03-29T00:00Z", 2) == ["29 01:05+0100", "29 03:05+0200"]


def test_every_second_hour_goes_by_the_wall_clock() -> None:
    assert due("0 */2 * * *", "Europe/Madrid", "2026-03-28T23:30Z", 2) == ["29 03:00+0200", "29 04:00+0200"]
    assert due("0 */2 * * *", "Europe/Madrid", "2026-10-24T23:30Z", 2) == ["25 02:00+0200", "25 04:00+0100"]


def test_a_shift_of_half_an_hour() -> None:
    # Lord Howe: 2026-10-04 02:00 -> 02:30, 2026-04-05 02:00 -> 01:30
    assert due("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", 2) == ["04 02:30+1100", "05 02:15+1100"]
    assert due("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00Z", 2) == ["05 01:45+1100", "06 01:45+1030"]


def test_a_day_that_a_zone_left_out_is_made_up_for_at_its_end() -> None:
    assert due("0 6 * * *", "Pacific/Apia", "2011-12-29T12:00Z", 3) == [
        "29 06:00-1000",
        "31 00:00+1400",
        "31 06:00+1400",
    ]


@given(
    st.sampled_from(["30 2 * * *", "0 0 * * *", "15 1,2 * * *", "5 * * * *", "*/20 2 * * *", "0 6 * * 1", "0 0 1 * *"]),
    st.sampled_from(["Europe/Madrid", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"]),
    moments,
)  # fmt: skip
def test_due_times_ascend_and_do_not_depend_on_where_one_begins(expression: str, zone: str, after: datetime) -> None:
    found = list(islice(cron.due_times(expression, ZoneInfo(zone), after), 20))
    assert all(one < following for one, following in pairwise([after, *found]))
    for number, moment in enumerate(found[:-1]):
        assert next(cron.due_times(expression, ZoneInfo(zone), moment)) == found[number + 1]


@given(
    st.sampled_from(["Europe/Madrid", "America/New_York", "Asia/Kathmandu"]),
    moments,
)
def test_a_daily_time_is_due_once_on_each_local_day(zone: str, after: datetime) -> None:
    found = islice(cron.due_times("30 2 * * *", ZoneInfo(zone), after), 400)
    days = [moment.astimezone(ZoneInfo(zone)).date() for moment in found]
    assert all(following - one == timedelta(days=1) for one, following in pairwise(days))


@pytest.mark.parametrize(
    "expression",
    ["", "0 6 * *", "0 6 * * * *", "@daily", "60 * * * *", "0 24 * * *", "0 6 0 * *", "0 6 * 13 *", "a b c d e",
     "0 0 30 2 *", "*/0 * * * *", "5-1 * * * *", "0 6 * * MOON", "0 6 * * * # daily", "1," * 200 + "1 * * * *"],
)  # fmt: skip
def test_a_mistake_is_told_with_what_is_accepted(expression: str) -> None:
    with pytest.raises(ValueError, match="five fields, minute hour day month weekday, such as '0 6"):
        cron.check(expression)


@given(st.lists(st.text("0123456789*/-,#LWMONSU ", max_size=6), min_size=5, max_size=5).map(" ".join))
def test_what_is_accepted_is_due_sometime_and_can_be_said(expression: str) -> None:
    try:
        cron.check(expression)
    except ValueError:
        return
    assert cron.in_words(expression)
    assert list(islice(cron.due_times(expression, MADRID, datetime(2026, 3, 28, tzinfo=UTC)), 1))


def test_in_words() -> None:
    assert cron.in_words("0 6 * * *") == "At 06:00 every day"
    assert cron.in_words("5 * * * *") == "At minute 5 of every hour"
