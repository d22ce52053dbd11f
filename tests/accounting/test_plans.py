"""Price plans and tariffs: hand-worked hours, days on which the clocks change, and billing increments."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.plans import Tariff, TariffRule, owned_rate_per_hour, rounded_s, service_s, usd

EVERY_DAY = frozenset(range(7))
WORKDAYS = frozenset(range(5))
MADRID = "Europe/Madrid"


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def night(tz: str = MADRID, weekdays: frozenset[int] = EVERY_DAY) -> Tariff:
    """0.10 from 22:00 to 06:00, else 0.20."""
    return Tariff("EUR", 0.20, tz, (TariffRule(weekdays, 22 * 60, 6 * 60, 0.10),))


def hours_at(tariff: Tariff, start: datetime, end: datetime) -> dict[float, float]:
    """Hours of [start, end) at each price, by the tariff's own edges."""
    found: dict[float, float] = {}
    for first, last in pairwise([start, *tariff.edges(start, end), end]):
        price = tariff.price_at(first)
        found[price] = found.get(price, 0.0) + (last - first).total_seconds() / 3600
    return found


# Owned GPUs


def test_owned_gpu_depreciates_in_a_straight_line_plus_fixed_cost() -> None:
    # (1600 - 400) / (4 * 8760) + 0.01 = 1200 / 35040 + 0.01 = 0.0342466 + 0.01
    assert owned_rate_per_hour(1600, 400, 4, 0.01) == pytest.approx(0.0442466, abs=5e-8)


def test_owned_gpu_kept_for_one_year_costs_its_price_in_8760_hours() -> None:
    assert owned_rate_per_hour(8760, 0, 1) == 1.0


@pytest.mark.parametrize(
    ("in_service", "retired", "seconds"),
    [
        (utc(2026, 1, 1), None, 86_400.0),
        (utc(2026, 2, 3, 6), None, 64_800.0),  # from 06:00: 18 h
        (utc(2026, 1, 1), utc(2026, 2, 3, 18), 64_800.0),  # until 18:00
        (utc(2026, 2, 3, 6), utc(2026, 2, 3, 7, 30), 5_400.0),
        (utc(2026, 2, 4), None, 0.0),
        (utc(2026, 1, 1), utc(2026, 2, 3), 0.0),
    ],
)
def test_an_owned_gpu_serves_from_its_first_day_to_its_last(
    in_service: datetime, retired: datetime | None, seconds: float
) -> None:
    assert service_s(in_service, retired, utc(2026, 2, 3), utc(2026, 2, 4)) == seconds


# Billing increments


def test_a_stretch_is_rounded_up_to_the_increment() -> None:
    # 20 min and 1 h 10 min by the hour: 1 h + 2 h
    assert rounded_s([1200.0, 4200.0], 3600.0) == 10_800.0
    # 61 s by the minute: 2 min
    assert rounded_s([61.0], 60.0) == 120.0


def test_what_fills_its_increment_is_not_rounded() -> None:
    assert rounded_s([3600.0, 7200.0], 3600.0) == 10_800.0
    # 36,000 samples of 0.1 s make 3600 s and a rounding error: that is no second hour
    assert rounded_s([sum([0.1] * 36_000)], 3600.0) == 3600.0


def test_without_an_increment_each_second_counts() -> None:
    assert rounded_s([0.5, 1200.0], 0.0) == 1200.5
    assert rounded_s([], 3600.0) == 0.0


@given(st.lists(st.floats(0.001, 1e6), max_size=10), st.floats(1.0, 86_400.0))
def test_rounding_never_takes_and_gives_less_than_an_increment_a_stretch(
    stretches: list[float], increment_s: float
) -> None:
    added = rounded_s(stretches, increment_s) - math.fsum(stretches)
    assert -1e-6 * len(stretches) - 1e-3 <= added <= increment_s * len(stretches) + 1e-3


# Currencies


def test_an_amount_is_converted_by_its_rate() -> None:
    # 3 EUR at 1.08 USD/EUR = 3.24 USD
    assert usd(3.0, 1.08) == pytest.approx(3.24, rel=1e-12)
    assert usd(3.0, None) is None


# Tariffs


def test_a_flat_tariff_has_one_price_and_no_edge() -> None:
    flat = Tariff("USD", -0.02)
    assert flat.price_at(utc(2026, 7, 1, 13)) == -0.02
    assert flat.edges(utc(2026, 1, 1), utc(2027, 1, 1)) == []
    assert flat.mean_per_kwh() == -0.02


@pytest.mark.parametrize(
    ("moment", "price"),
    [
        (utc(2026, 2, 3, 20, 59), 0.20),  # 21:59 in Madrid
        (utc(2026, 2, 3, 21), 0.10),  # 22:00
        (utc(2026, 2, 4, 4, 59), 0.10),  # 05:59 of the next day
        (utc(2026, 2, 4, 5), 0.20),  # 06:00
        (utc(2026, 7, 3, 20), 0.10),  # 22:00 in summer
        (utc(2026, 7, 4, 4), 0.20),  # 06:00
    ],
)
def test_a_night_tariff_follows_the_local_clock_across_midnight(moment: datetime, price: float) -> None:
    assert night().price_at(moment) == price


def test_an_ordinary_day_has_eight_cheap_hours() -> None:
    # 3 February 2026 in Madrid, 23:00 UTC to 23:00 UTC: 00:00-06:00 and 22:00-24:00 are cheap
    start, end = utc(2026, 2, 2, 23), utc(2026, 2, 3, 23)
    assert night().edges(start, end) == [utc(2026, 2, 3, 5), utc(2026, 2, 3, 21)]
    assert hours_at(night(), start, end) == {0.10: 8.0, 0.20: 16.0}


def test_the_night_in_which_the_clock_is_put_forward_has_seven_cheap_hours() -> None:
    # 29 March 2026, 02:00 becomes 03:00: the day has 23 hours, 22:00 to 06:00 has 7
    start, end = utc(2026, 3, 28, 21), utc(2026, 3, 29, 20)  # 22:00 to 22:00 in Madrid
    assert hours_at(night(), start, end) == {0.10: 7.0, 0.20: 16.0}


def test_the_night_in_which_the_clock_is_put_back_has_nine_cheap_hours() -> None:
    # 25 October 2026, 03:00 becomes 02:00: the day has 25 hours
    start, end = utc(2026, 10, 24, 20), utc(2026, 10, 25, 21)
    assert hours_at(night(), start, end) == {0.10: 9.0, 0.20: 16.0}


def test_a_rule_inside_the_repeated_hour_holds_both_times() -> None:
    # 02:30 to 03:00 on 25 October 2026: 00:30-01:00 UTC by the first clock, 01:30-02:00 UTC by the second
    tariff = Tariff("EUR", 0.2, MADRID, (TariffRule(EVERY_DAY, 150, 180, 0.1),))
    day = (utc(2026, 10, 24, 22), utc(2026, 10, 25, 23))
    assert tariff.edges(*day) == [
        utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1), utc(2026, 10, 25, 1, 30), utc(2026, 10, 25, 2),
    ]  # fmt: skip
    assert hours_at(tariff, *day) == {0.1: 1.0, 0.2: 24.0}


def test_a_rule_inside_the_hour_that_is_left_out_does_not_hold_that_day() -> None:
    tariff = Tariff("EUR", 0.2, MADRID, (TariffRule(EVERY_DAY, 150, 180, 0.1),))
    assert tariff.edges(utc(2026, 3, 28, 23), utc(2026, 3, 29, 22)) == []


def test_a_rule_that_begins_in_the_hour_that_is_left_out_begins_when_the_clock_jumps() -> None:
    # 02:30 to 05:00: at 01:00 UTC the clock goes from 02:00 to 03:00, within the rule
    tariff = Tariff("EUR", 0.2, MADRID, (TariffRule(EVERY_DAY, 150, 300, 0.1),))
    day = (utc(2026, 3, 28, 23), utc(2026, 3, 29, 22))
    assert tariff.edges(*day) == [utc(2026, 3, 29, 1), utc(2026, 3, 29, 3)]


def test_days_are_those_on_which_the_hours_begin() -> None:
    # Friday, 6 February 2026: its night goes on to Saturday 06:00; Saturday's and Sunday's nights are not cheap
    tariff = night(weekdays=WORKDAYS)
    assert tariff.edges(utc(2026, 2, 6, 12), utc(2026, 2, 9, 12)) == [utc(2026, 2, 6, 21), utc(2026, 2, 7, 5)]
    assert tariff.edges(utc(2026, 2, 9, 12), utc(2026, 2, 10)) == [utc(2026, 2, 9, 21)]


def test_the_first_rule_that_holds_counts_and_a_day_may_be_whole() -> None:
    sunday, peak = TariffRule(frozenset({6}), 0, 1440, 0.05), TariffRule(EVERY_DAY, 18 * 60, 22 * 60, 0.40)
    tariff = Tariff("EUR", 0.2, "UTC", (sunday, peak))
    # Saturday 7 to Monday 9 February 2026
    assert tariff.edges(utc(2026, 2, 7, 12), utc(2026, 2, 9, 12)) == [
        utc(2026, 2, 7, 18), utc(2026, 2, 7, 22), utc(2026, 2, 8), utc(2026, 2, 9),
    ]  # fmt: skip
    assert [tariff.price_at(utc(2026, 2, day, 19)) for day in (7, 8, 9)] == [0.40, 0.05, 0.40]


def test_the_mean_is_that_of_an_ordinary_week() -> None:
    # 8 of 24 hours at 0.10: (8 x 0.10 + 16 x 0.20) / 24 = 0.16667
    assert night().mean_per_kwh() == pytest.approx(4.0 / 24)
    # five such nights a week: (40 x 0.10 + 128 x 0.20) / 168
    assert night(weekdays=WORKDAYS).mean_per_kwh() == pytest.approx(29.6 / 168)


ZONES = st.sampled_from(
    ["UTC", MADRID, "Asia/Kathmandu", "America/Los_Angeles", "Australia/Lord_Howe", "America/St_Johns"]
)
RULES = st.builds(
    TariffRule,
    st.frozensets(st.integers(0, 6), min_size=1),
    st.integers(0, 47).map(lambda half: half * 30),
    st.integers(1, 48).map(lambda half: half * 30),
    st.sampled_from([0.1, 0.3, -0.05]),
)


@given(ZONES, st.lists(RULES, max_size=3), st.integers(0, 364))
def test_the_edges_of_any_day_partition_it_into_hours_of_one_price(
    zone: str, rules: list[TariffRule], number: int
) -> None:
    tariff = Tariff("EUR", 0.2, zone, tuple(rules))
    local = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone)) + timedelta(days=number)
    start, end = local.astimezone(UTC), (local + timedelta(days=1)).astimezone(UTC)
    edges = tariff.edges(start, end)
    assert edges == sorted(set(edges))
    assert sum(hours_at(tariff, start, end).values()) == pytest.approx((end - start).total_seconds() / 3600)
    minutes = [start + timedelta(minutes=minute) for minute in range(0, int((end - start).total_seconds() // 60), 10)]
    for moment in minutes:
        since = max([edge for edge in edges if edge <= moment], default=start)
        assert tariff.price_at(moment) == tariff.price_at(since)
    for edge in edges:
        assert tariff.price_at(edge) != tariff.price_at(edge - timedelta(microseconds=1))
