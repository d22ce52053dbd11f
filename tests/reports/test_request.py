"""What a person may ask for, and what is said of the rest."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadParameter
from app.reports.request import NAMES, parse_request

NOW = datetime(2026, 2, 4, 23, 30, tzinfo=UTC)  # already the 5th in Madrid


def test_without_dates_it_is_yesterday_of_the_zone() -> None:
    madrid = parse_request({"kind": "fleet-day", "tz": "Europe/Madrid"}, NOW)
    assert (madrid.window.first, madrid.window.after) == ("2026-02-04", "2026-02-05")
    assert madrid.window.start == datetime(2026, 2, 3, 23, tzinfo=UTC)
    utc = parse_request({"kind": "fleet-day"}, NOW)
    assert (utc.window.first, utc.window.after, utc.tz) == ("2026-02-03", "2026-02-04", "UTC")
    assert (utc.boundary, utc.basis) == ("it", "total")


def test_to_is_the_day_after_the_last() -> None:
    request = parse_request({"kind": "fleet-day", "from": "2026-02-01", "to": "2026-02-04"}, NOW)
    assert [period.label for period in request.periods()] == ["2026-02-01", "2026-02-02", "2026-02-03"]
    since = parse_request({"kind": "fleet-day", "from": "2026-02-01"}, NOW)
    assert [period.label for period in since.periods()] == ["2026-02-01", "2026-02-02", "2026-02-03"]
    until = parse_request({"kind": "fleet-day", "to": "2026-01-01"}, NOW)
    assert [period.label for period in until.periods()] == ["2025-12-31"]


def test_hours_of_the_day_on_which_the_clocks_change() -> None:
    words = {"kind": "hourly", "from": "2026-10-25", "to": "2026-10-26", "tz": "Europe/Madrid"}
    labels = [period.label for period in parse_request(words, NOW).periods()]
    assert len(labels) == 25
    assert (labels[0], labels[-1]) == ("2026-10-25T00:00+02:00", "2026-10-25T23:00+01:00")


@given(st.dates(date(1970, 1, 2), date(2199, 12, 1)), st.integers(1, 400), st.sampled_from(["hourly", "fleet-day"]),
       st.sampled_from(["Pacific/Apia", "Asia/Kathmandu", "America/New_York"]))  # fmt: skip
def test_the_words_of_a_request_make_the_same_request(first: date, days: int, kind: str, tz: str) -> None:
    after = min(date.fromordinal(first.toordinal() + days), date(2199, 12, 31))
    words = {"kind": kind, "from": first.isoformat(), "to": after.isoformat(), "tz": tz, "boundary": "site",
             "basis": "output"}  # fmt: skip
    request = parse_request(words, NOW)
    assert request.as_words() == words
    known = words | {"known-at": "2026-02-03T04:05:06+00:00"}
    assert parse_request(known, NOW).as_words() == known
    assert tuple(known) == NAMES
    periods = request.periods()
    if periods:  # Pacific/Apia had no 2011-12-30
        assert (periods[0].start, periods[-1].end) == (request.window.start, request.window.end)


@pytest.mark.parametrize(
    ("given_words", "told"),
    [
        ({"kind": "weekly"}, "`kind`: given 'weekly'; accepted: fleet-day, hourly"),
        ({}, "`kind`: given ''; accepted: fleet-day, hourly"),
        ({"kind": "hourly", "tz": "Europe/Madird"}, "`tz`: given 'Europe/Madird'; accepted: an IANA time zone such"),
        ({"kind": "hourly", "from": "2026-02-30"}, "`from`: given '2026-02-30'; accepted: a date such as 2026-02-03"),
        ({"kind": "hourly", "to": "yesterday"}, "`to`: given 'yesterday'; accepted: a date such as 2026-02-03"),
        ({"kind": "hourly", "from": "2026-02-03T04:00"}, "`from`: given '2026-02-03T04:00'; accepted: a date such as"),
        ({"kind": "hourly", "to": "0001-01-01"}, "`to`: given '0001-01-01'; accepted: a date from 1970-01-02 to 2199"),
        ({"kind": "hourly", "to": "9999-12-31"}, "`to`: given '9999-12-31'; accepted: a date from 1970-01-02 to 2199"),
        ({"kind": "hourly", "from": "2026-02-03", "to": "2026-02-03"},
         "hold no day: `to` is the day after the last one (for 2026-02-03 alone: 2026-02-04)"),
        ({"kind": "hourly", "from": "2026-02-04", "to": "2026-02-03"}, "hold no day"),
        ({"kind": "hourly", "from": "2024-01-01", "to": "2026-01-01"}, "731 days; accepted: 400 for hourly"),
        ({"kind": "fleet-day", "from": "2000-01-01", "to": "2026-01-01"}, "days; accepted: 3660 for fleet-day"),
        ({"kind": "hourly", "boundary": "rack"}, "`boundary`: given 'rack'; accepted: gpu, it, site"),
        ({"kind": "hourly", "basis": "all"}, "`basis`: given 'all'; accepted: total, computed, output"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_what_is_accepted(given_words: dict[str, str], told: str) -> None:
    with pytest.raises(BadParameter) as refused:
        parse_request(given_words, NOW)
    assert told in str(refused.value)
