"""Figures of a moment: by hand, and missing with the reason when a part is."""

from __future__ import annotations

import pytest

from app.accounting.cost import Rate
from app.accounting.figure import Figure, missing
from app.accounting.rates import (
    gpu_usd_per_hour,
    mean_power_w,
    per_second,
    sum_of_known,
    tokens_per_joule_now,
    usd_per_mtok_now,
)

RENTED = Rate(2.0, "user", "mine")
OWNED = Rate(0.05, "user", "mine", tariff_usd_per_kwh=0.2)
POWER = Figure(400.0, "W", "measured")
NO_POWER = missing("W", "measured", "lost")


def test_a_count_over_the_seconds_it_covers() -> None:
    assert per_second(90, 45.0, "req/s", "none") == Figure(2.0, "req/s", "measured")
    assert per_second(0, 45.0, "req/s", "none") == Figure(0.0, "req/s", "measured")


@pytest.mark.parametrize(("count", "seconds"), [(None, 45.0), (90, None), (90, 0.0)])
def test_no_count_or_no_seconds_is_missing_and_not_0(count: int | None, seconds: float | None) -> None:
    assert per_second(count, seconds, "req/s", "not told") == missing("req/s", "measured", "not told")


def test_the_sum_of_what_is_known_says_how_much_that_is() -> None:
    parts = [Figure(1.0, "W", "measured"), missing("W", "measured", "lost"), Figure(2.5, "W", "estimated")]
    assert sum_of_known(parts, "W", "nothing") == Figure(3.5, "W", "estimated", coverage=pytest.approx(2 / 3))


def test_a_sum_of_nothing_known_is_missing_for_the_first_reason() -> None:
    parts = [missing("W", "simulated", "away"), missing("W", "measured", "lost")]
    assert sum_of_known(parts, "W", "nothing") == missing("W", "simulated", "away")
    assert sum_of_known([], "W", "nothing") == missing("W", "measured", "nothing")


def test_mean_power_is_of_the_seconds_that_were_measured() -> None:
    # 15 kJ in 50 of 60 s: 300 W
    assert mean_power_w(15_000.0, 50.0, 60.0) == Figure(300.0, "W", "measured", coverage=pytest.approx(50 / 60))


@pytest.mark.parametrize(
    ("energy_j", "covered_s", "reason"),
    [
        (None, None, "no energy was measured"),
        (0.0, 0.0, "no energy was measured"),
        (6_000.0, 20.0, "energy was measured 33% of the time, below 50%"),
    ],
)
def test_power_of_too_few_seconds_is_missing(energy_j: float | None, covered_s: float | None, reason: str) -> None:
    assert mean_power_w(energy_j, covered_s, 60.0) == missing("W", "measured", reason)


def test_a_rented_gpu_costs_its_rate_whatever_it_draws() -> None:
    for power in (POWER, NO_POWER):
        assert gpu_usd_per_hour(RENTED, power, 1.5) == Figure(2.0, "USD/h", "user")


def test_an_owned_gpu_costs_its_electricity_too() -> None:
    # 0.4 kW x PUE 1.5 x $0.2/kWh = $0.12/h
    assert gpu_usd_per_hour(OWNED, POWER, 1.5) == Figure(pytest.approx(0.17), "USD/h", "user")
    assert gpu_usd_per_hour(OWNED, NO_POWER, 1.5) == missing("USD/h", "user", "electricity not known: lost")
    simulated = Figure(400.0, "W", "simulated")
    assert gpu_usd_per_hour(OWNED, simulated, 1.5).method == "simulated"


def test_a_gpu_without_a_price_says_so() -> None:
    rate = Rate(None, "default", "list prices", reason="no price for X1")
    assert gpu_usd_per_hour(rate, POWER, 1.0) == missing("USD/h", "default", "no price for X1")


def test_tokens_per_joule_and_per_dollar() -> None:
    tokens = Figure(1000.0, "tokens/s", "measured")
    assert tokens_per_joule_now(tokens, POWER) == Figure(2.5, "tokens/J", "measured")
    assert tokens_per_joule_now(Figure(1000.0, "tokens/s", "estimated"), POWER).method == "estimated"
    assert tokens_per_joule_now(tokens, Figure(400.0, "W", "simulated")).method == "simulated"
    # $7.20/h over 3.6 Mtok an hour
    assert usd_per_mtok_now(Figure(7.2, "USD/h", "user"), tokens) == Figure(pytest.approx(2.0), "USD/Mtok", "user")


def test_a_ratio_of_something_missing_is_missing_for_its_reason() -> None:
    tokens, cost = Figure(1000.0, "tokens/s", "measured"), Figure(7.2, "USD/h", "user")
    silent, idle = missing("tokens/s", "measured", "silent"), Figure(0.0, "tokens/s", "measured")
    assert tokens_per_joule_now(tokens, NO_POWER).reason == "lost"
    assert tokens_per_joule_now(silent, POWER).reason == usd_per_mtok_now(cost, silent).reason == "silent"
    assert usd_per_mtok_now(cost, idle).reason == "no tokens"
    assert tokens_per_joule_now(idle, POWER).value == 0.0
