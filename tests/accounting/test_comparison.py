"""Comparisons by hand: the period before, a hosted price, renting or buying, and power by load."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.comparison import (
    LoadMoment,
    LoadPoint,
    Purchase,
    against,
    break_even_tokens_per_hour,
    hosted_usd_per_mtok,
    owning_hours_per_month,
    owning_months,
    power_against_load,
    previous_period,
)
from app.accounting.figure import Figure, missing

MADRID = ZoneInfo("Europe/Madrid")
CARD = Purchase(1752.0, 0.0, 2.0, 0.0, 0.2)


def usd_per_hour(value: float) -> Figure:
    return Figure(value, "USD/h", "user")


def test_the_period_before_is_as_long() -> None:
    end = datetime(2026, 2, 3, 13, 37, tzinfo=UTC)
    before = previous_period(end - timedelta(hours=5), end, MADRID)
    assert (before.start, before.end) == (end - timedelta(hours=10), end - timedelta(hours=5))


def test_before_a_week_of_local_days_come_seven_local_days_even_where_one_has_23_hours() -> None:
    start, end = (datetime(2026, month, day, tzinfo=MADRID).astimezone(UTC) for month, day in ((3, 30), (4, 6)))
    before = previous_period(start, end, MADRID)
    assert before.start == datetime(2026, 3, 23, tzinfo=MADRID).astimezone(UTC)
    assert (before.end - before.start, end - start) == (timedelta(hours=167), timedelta(hours=168))
    assert before.end == start


def test_a_hosted_price_is_of_the_same_mix() -> None:
    # 3 M prompt tokens at $0.10 and 1 M generated at $0.50: 0.80 / 4 = $0.20 per Mtok
    assert hosted_usd_per_mtok(0.10, 0.50, 3e6, 1e6) == pytest.approx(0.20)
    assert hosted_usd_per_mtok(0.10, 0.50, 0, 0) is None


def test_break_even_is_where_both_cost_the_same() -> None:
    # $2.00 an hour against $0.20 per Mtok: 10 Mtok an hour; the study's H100 makes 11.15 at its best (3,098 tokens/s)
    found = break_even_tokens_per_hour(usd_per_hour(2.0), 0.20)
    assert (found.value, found.unit, found.method) == (pytest.approx(10e6), "tokens/h", "estimated")
    # an own GPU at $0.10 an hour that burns $0.05 per Mtok: 0.10 + 0.05 x L = 0.20 x L, L = 0.667 Mtok
    assert break_even_tokens_per_hour(usd_per_hour(0.1), 0.20, 0.05).value == pytest.approx(2e6 / 3)


def test_there_is_no_break_even_without_a_price_a_mix_or_a_chance() -> None:
    reasons = [
        break_even_tokens_per_hour(missing("USD/h", "default", "no price for X"), 0.2).reason,
        break_even_tokens_per_hour(usd_per_hour(2.0), None).reason,
        break_even_tokens_per_hour(usd_per_hour(2.0), 0.04, 0.05).reason,
    ]
    assert reasons == ["no price for X", "no tokens, so no mix to price",
                       "hosted tokens cost less than the electricity of own ones"]  # fmt: skip


@given(st.floats(0.01, 100), st.floats(0.01, 10), st.floats(0, 0.99))
def test_at_the_break_even_load_own_tokens_cost_the_hosted_price(hourly: float, hosted: float, share: float) -> None:
    marginal = hosted * share
    load = break_even_tokens_per_hour(usd_per_hour(hourly), hosted, marginal).value
    assert load is not None
    assert (hourly + marginal * load / 1e6) / (load / 1e6) == pytest.approx(hosted)


def test_hours_in_a_month_from_which_on_owning_is_cheaper() -> None:
    # $1752 over 24 months: $73 a month. Rent $0.30/h less electricity 0.4 kW x 0.20 = 0.08: 73 / 0.22 = 331.8 h
    assert owning_hours_per_month(CARD, 0.30, 400).value == pytest.approx(331.8, abs=0.05)
    assert owning_hours_per_month(CARD, 0.15, 400).reason == "never: it would take 1043 hours, and a month has 730"
    assert owning_hours_per_month(CARD, 0.05, 400).reason == "renting costs less than the electricity of an own GPU"


def test_months_after_which_a_bought_gpu_has_paid_for_itself() -> None:
    # 500 h a month save 500 x 0.22 = $110: 1752 / 110 = 15.9 months
    assert owning_months(CARD, 0.30, 400, 500).value == pytest.approx(15.927, abs=1e-3)
    upkeep = Purchase(1752.0, 0.0, 2.0, 0.2, 0.2)  # $146 a month
    assert owning_months(upkeep, 0.30, 400, 500).reason == "never: renting costs less in each month of this use"


@given(st.floats(0.1, 10), st.floats(50, 1000))
def test_at_that_many_hours_owning_costs_what_renting_does(rent: float, power_w: float) -> None:
    hours = owning_hours_per_month(CARD, rent, power_w).value
    if hours is not None:
        owning = CARD.usd_per_month + hours * CARD.electricity_usd_per_hour(power_w)
        assert owning == pytest.approx(rent * hours)


def test_power_by_load_keeps_idle_apart_and_weighs_by_time() -> None:
    moments = [
        LoadMoment(0.0, 60.0, 60), LoadMoment(0.0, 80.0, 180),  # idle: (60 x 60 + 80 x 180) / 240 = 75 W
        LoadMoment(100.0, 200.0, 60), LoadMoment(120.0, 220.0, 60),  # the first of ten bins up to 1200
        LoadMoment(1200.0, 400.0, 60), LoadMoment(1150.0, 390.0, 0),  # no time, no weight
    ]  # fmt: skip
    assert power_against_load(moments, bins=10) == [
        LoadPoint(0.0, 75.0, 240), LoadPoint(100.0, 200.0, 60), LoadPoint(120.0, 220.0, 60),
        LoadPoint(1200.0, 400.0, 60),
    ]  # fmt: skip
    assert power_against_load([]) == []


@given(st.lists(st.builds(LoadMoment, st.floats(0, 5000), st.floats(20, 700), st.floats(1, 600)), max_size=50))
def test_no_second_and_no_joule_is_lost_between_the_bins(moments: list[LoadMoment]) -> None:
    points = power_against_load(moments)
    assert sum(point.seconds for point in points) == pytest.approx(sum(moment.seconds for moment in moments))
    joules = sum(moment.power_w * moment.seconds for moment in moments)
    assert sum(point.power_w * point.seconds for point in points) == pytest.approx(joules)
    loads = [point.tokens_per_s for point in points]
    assert loads == sorted(loads)


def test_a_change_is_relative_and_needs_both() -> None:
    assert against(usd_per_hour(2.2), usd_per_hour(2.0)).value == pytest.approx(0.1)
    assert against(usd_per_hour(2.2), missing("USD/h", "user", "no GPU was seen")).reason == "before: no GPU was seen"
    assert against(usd_per_hour(2.2), usd_per_hour(0.0)).reason == "it was 0 before"


def test_shares_change_by_points() -> None:
    before = Figure(0.80, "share", "measured")
    found = against(Figure(0.90, "share", "estimated"), before)
    assert (found.value, found.unit, found.method) == (pytest.approx(10.0), "points", "estimated")
    assert against(before, missing("share", "measured", "no SLO is set")).reason == "before: no SLO is set"
