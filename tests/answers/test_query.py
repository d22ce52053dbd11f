"""What an account is asked for: words to a query and back, mistakes in words, and the steps of a range."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.account import FIGURES
from app.answers.query import GROUPS, MOST_POINTS, NAMES, STEPS, AccountQuery, parse_query
from app.errors import BadParameter

NOW = datetime(2026, 2, 4, 5, 6, 7, tzinfo=UTC)
ZONES = ("UTC", "Europe/Madrid", "Asia/Kathmandu", "America/Los_Angeles", "Australia/Lord_Howe")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_without_words_it_is_the_last_day_up_to_this_minute() -> None:
    query = parse_query({}, NOW)
    assert (query.start, query.end) == (at("2026-02-03T05:06Z"), at("2026-02-04T05:06Z"))
    assert (query.tz, query.by, query.basis, query.view, query.boundary) == ("UTC", "none", "total", "bill", "it")
    assert (query.step, query.fleet, query.model, query.known_at, query.figures) == (None, None, None, None, None)


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ({"from": "2026-02-01", "to": "2026-02-03"}, "2026-01-31T23:00Z", "2026-02-02T23:00Z"),
        ({"from": "2026-10-25", "to": "2026-10-26"}, "2026-10-24T22:00Z", "2026-10-25T23:00Z"),
        ({"from": "2026-02-03T13:37+01:00", "to": "2026-02-03T13:00Z"}, "2026-02-03T12:37Z", "2026-02-03T13:00Z"),
        ({"from": "2026-02-03T13:37 01:00", "to": "2026-02-04"}, "2026-02-03T12:37Z", "2026-02-03T23:00Z"),
        ({"from": "90m", "to": "2026-02-03T13:00:59Z"}, "2026-02-03T11:30Z", "2026-02-03T13:00Z"),
        ({"from": "7d", "to": "2026-02-03T13:00Z"}, "2026-01-27T13:00Z", "2026-02-03T13:00Z"),
        ({"from": "24h"}, "2026-02-03T05:06Z", "2026-02-04T05:06Z"),
    ],
)
def test_ends_are_local_days_moments_or_so_long_before(words: dict[str, str], start: str, end: str) -> None:
    query = parse_query({"tz": "Europe/Madrid", **words}, NOW)
    assert (query.start, query.end) == (at(start), at(end))


moments = st.integers(0, 36 * 365 * 24 * 60).map(
    lambda minute: datetime(1990, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
)
texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)


@given(
    moments, st.integers(1, 60 * 24 * 400), st.sampled_from(ZONES), st.sampled_from([None, *STEPS]),
    st.sampled_from([*GROUPS, "label:team"]), st.none() | texts, st.none() | texts,
    st.none() | moments, st.none() | st.lists(st.sampled_from(list(FIGURES)), min_size=1, unique=True).map(tuple),
)  # fmt: skip
def test_words_and_query_are_each_others(
    start: datetime, minutes: int, tz: str, step: Any, by: str, fleet: str | None, model: str | None,
    known_at: datetime | None, figures: Any,
) -> None:  # fmt: skip
    query = AccountQuery(
        start,
        start + timedelta(minutes=minutes),
        tz,
        step,
        by,
        fleet,
        model,
        "output",
        "idle",
        "site",
        known_at,
        figures,
    )
    words = query.as_words()
    assert set(words) <= set(NAMES)
    assert parse_query(words, datetime(2030, 1, 1, tzinfo=UTC)) == query


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"form": "x"}, "`form`: no such parameter; accepted: from, to, tz, step, by, fleet, model"),
        ({"tz": "Madrid"}, "`tz`: given 'Madrid'; accepted: an IANA time zone such as Europe/Madrid"),
        ({"from": "03.02.2026"}, "`from`: given '03.02.2026'; accepted: a day such as 2026-02-03, or a moment with its "
                                 "time zone such as 2026-02-03T04:05Z, or so long before `to`: 90m, 24h, 7d"),
        ({"to": "2026-02-03T04:05:06"}, "`to`: given '2026-02-03T04:05:06'; accepted: a day"),
        ({"to": "9999-99-99"}, "`to`: given '9999-99-99'; accepted: a day"),
        ({"to": "1200-01-01"}, "`to`: given '1200-01-01'; accepted: a moment from 1970-01-02 to 2199-12-31"),
        ({"from": "2026-02-03", "to": "2026-02-03"}, "hold no minute: `to` is exclusive"),
        ({"from": "2010-01-01", "to": "2026-01-01"}, "5844 days; accepted: 3660"),
        ({"step": "week"}, "`step`: given 'week'; accepted: minute, 5min, 15min, hour, day"),
        ({"by": "team"}, "given 'team'; accepted: none, fleet, model, fleet_model, node, gpu, replica, label:<name>"),
        ({"by": "label:"}, "`by`: given 'label:'"),
        ({"basis": "all"}, "`basis`: given 'all'; accepted: total, computed, output"),
        ({"view": "spent"}, "`view`: given 'spent'; accepted: bill, used, idle, unallocated"),
        ({"boundary": "rack"}, "`boundary`: given 'rack'; accepted: gpu, it, site"),
        ({"known-at": "2026-02-03"}, "`known-at`: given '2026-02-03'; accepted: a moment with its time zone"),
        ({"known-at": "2027-02-03T00:00Z"}, "given '2027-02-03T00:00Z'; accepted: a moment that has passed"),
        ({"figures": "cost,watts"}, "`figures`: given 'watts'; accepted: gpu_hours, cost, "),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_what_is_accepted(words: dict[str, str], told: str) -> None:
    with pytest.raises(BadParameter) as refused:
        parse_query(words, NOW)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("length", "step"),
    [
        ("90m", "minute"),
        ("33h", "minute"),
        ("34h", "5min"),
        ("6d", "5min"),
        ("7d", "15min"),
        ("30d", "hour"),
        ("365d", "day"),
    ],
)
def test_the_finest_step_that_fits_is_chosen(length: str, step: str) -> None:
    assert parse_query({"from": length}, NOW).with_step().step == step


def test_a_coarser_step_is_chosen_where_minutes_are_gone() -> None:
    assert parse_query({"from": "90m"}, NOW).with_step("hour").step == "hour"


def test_a_step_with_too_many_points_is_refused() -> None:
    with pytest.raises(
        BadParameter, match=r"`step`: given 'minute': 43200 points .* at most 2000; accepted: hour, day"
    ):
        parse_query({"from": "30d", "step": "minute"}, NOW).with_step()


@given(moments, st.integers(1, 60 * 24 * 60), st.sampled_from(ZONES), st.sampled_from(STEPS))
def test_steps_partition_the_range_and_are_at_most_2000(start: datetime, minutes: int, tz: str, step: Any) -> None:
    query = AccountQuery(start, start + timedelta(minutes=minutes), tz, step)
    if query.points(step) > MOST_POINTS:
        return
    periods = query.periods()
    assert (periods[0].start, periods[-1].end) == (query.start, query.end)
    assert all(one.end == following.start for one, following in pairwise(periods))
    assert all(one.start < one.end for one in periods)
    assert len({one.label for one in periods}) == len(periods)
    assert len(periods) <= query.points(step) + 2


def test_days_are_local_and_the_first_and_last_may_be_parts() -> None:
    query = parse_query(
        {"from": "2026-10-24T20:00Z", "to": "2026-10-26T12:00Z", "tz": "Europe/Madrid", "step": "day"}, NOW
    )
    assert [(one.label, (one.end - one.start) / timedelta(hours=1)) for one in query.periods()] == [
        ("2026-10-24", 2.0), ("2026-10-25", 25.0), ("2026-10-26", 13.0),
    ]  # fmt: skip
