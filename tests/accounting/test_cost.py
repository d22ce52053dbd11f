from __future__ import annotations

import pytest

from app.accounting.cost import Rate, window_cost_usd
from app.accounting.energy import site_energy_j
from app.accounting.figure import Figure, missing

NO_ENERGY = missing("J", "tdp_estimate", "no TDP for X")
SITE_ENERGY = Figure(3.888e6, "J", "tdp_estimate")  # 1.08 kWh


def test_rented_gpus_cost_rate_times_gpu_hours() -> None:
    # table 2, row 6: 2 x RTX 4090 at $0.25/h for 66.47 s: 0.50 * 66.47 / 3600 = 0.0092319
    cost = window_cost_usd(Rate(0.25, "user", "table 1"), 2, 66.47, NO_ENERGY)
    assert cost.value == pytest.approx(0.0092319, abs=5e-8)
    assert (cost.unit, cost.method) == ("USD", "user")


def test_rented_gpus_pay_no_electricity() -> None:
    assert window_cost_usd(Rate(2.0, "user", "x"), 1, 3600.0, SITE_ENERGY).value == 2.0


def test_owned_gpus_pay_electricity_for_the_site_energy() -> None:
    # 2 GPUs x 450 W x 1 h = 0.9 kWh; PUE 1.2 -> 1.08 kWh at $0.30 = 0.324; 2 x $0.05 x 1 h = 0.10; together 0.424
    site = site_energy_j(Figure(2 * 450 * 3600.0, "J", "tdp_estimate"), 1.2)
    cost = window_cost_usd(Rate(0.05, "user", "owned", tariff_usd_per_kwh=0.30), 2, 3600.0, site)
    assert cost.value == pytest.approx(0.424, rel=1e-12)
    assert cost.method == "estimated"


def test_a_negative_tariff_lowers_the_cost() -> None:
    # 1.08 kWh at -$0.05 = -0.054; 0.10 - 0.054 = 0.046
    cost = window_cost_usd(Rate(0.05, "user", "owned", tariff_usd_per_kwh=-0.05), 2, 3600.0, SITE_ENERGY)
    assert cost.value == pytest.approx(0.046, rel=1e-12)


def test_owned_gpus_without_known_energy_have_no_cost_rather_than_a_partial_one() -> None:
    cost = window_cost_usd(Rate(0.05, "user", "owned", tariff_usd_per_kwh=0.30), 2, 3600.0, NO_ENERGY)
    assert cost == missing("USD", "user", "electricity not known: no TDP for X")


@pytest.mark.parametrize(
    ("reason", "expected"), [("no price for GeForce RTX 4070", "no price for GeForce RTX 4070"), (None, "no price")]
)
def test_no_price_is_missing_with_its_reason_never_free(reason: str | None, expected: str) -> None:
    cost = window_cost_usd(Rate(None, "default", "list prices", reason=reason), 1, 3600.0, SITE_ENERGY)
    assert cost == missing("USD", "default", expected)


def test_a_price_of_zero_is_a_price() -> None:
    assert window_cost_usd(Rate(0.0, "user", "already paid"), 8, 3600.0, NO_ENERGY).value == 0.0
