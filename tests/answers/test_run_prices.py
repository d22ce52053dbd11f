"""A run is priced by the facts in force now: what a replica that was measured once would cost today."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answers.runs import Present, account_runs, run_row
from app.config import Config
from app.facts.book import FactBook
from app.facts.fact import Fact
from app.facts.settings import changes
from collectors.benchmark.run import BenchmarkRun
from tests.collectors.benchmark.runs import RUN
from tests.facts.builders import by_clock, fact, flat, owned, rented

CARD = "NVIDIA GeForce RTX 4090"
NOW = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)
# 2 GPUs for 1,800 s are one GPU-hour; 500,000 + 500,000 tokens: $/Mtok is the price of an hour
MEASURED: dict[str, Any] = {
    "gpu_name": CARD, "gpu_count": 2, "duration_s": 1800.0, "prompt_tokens": 500_000, "generated_tokens": 500_000,
    "recorded_at": datetime(2025, 6, 10, tzinfo=UTC),
}  # fmt: skip
SETTINGS = Config.model_validate({"fleet": [{"name": "mine", "gpu": CARD, "pue": 1.2, "price": rented(0.4)}]})


def row(*facts: Fact, config: Config = SETTINGS, cards: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    """The run's row in a hub with these settings, which have been facts for a year, and these facts."""
    own = changes([], config.facts(), NOW - timedelta(days=365))
    run = BenchmarkRun(**({name: getattr(RUN, name) for name in RUN.__dataclass_fields__} | MEASURED))
    (account,) = account_runs([run], Present(FactBook([*own, *facts]), config, NOW, cards))
    return run_row(account)


def test_without_other_facts_the_settings_price_a_run() -> None:
    found = row()
    assert (found["usd_per_mtok_total"], found["price_source"]) == (pytest.approx(0.4), "wattmix.toml, fleet mine")
    assert found["usd_per_kwh"] is None


@given(price=st.floats(0.001, 1000.0), days=st.integers(0, 300))
def test_a_price_in_force_changes_the_cost_by_the_ratio_of_the_prices(price: float, days: int) -> None:
    before, after = row(), row(fact("price", "mine", rented(price), NOW - timedelta(days=days), NOW, "contract"))
    for name in ("cost_per_run_usd", "usd_per_mtok_total", "usd_per_mtok_output"):
        assert after[name] / before[name] == pytest.approx(price / 0.4, rel=1e-12)
    assert after["price_source"] == "contract, fleet mine"
    priced = {"cost_per_run_usd", "usd_per_mtok_total", "usd_per_mtok_output", "usd_per_gpu_hour", "price_source"}
    assert {name for name in before if before[name] != after[name]} <= priced


@given(kind=st.sampled_from(["price", "pue", "zone"]), seconds=st.integers(1, 10**7))
def test_a_fact_that_is_valid_later_changes_nothing(kind: Any, seconds: int) -> None:
    values: dict[str, Any] = {"price": rented(9.0), "pue": {"pue": 2.0}, "zone": {"zone": "FR"}}
    assert row(fact(kind, "mine", values[kind], NOW + timedelta(seconds=seconds))) == row()


def test_a_price_that_ended_leaves_the_list_price_of_the_run_s_day() -> None:
    found = row(fact("price", "mine", None, NOW - timedelta(days=1)))
    assert found["usd_per_gpu_hour"] == 0.25  # of 2025-05; today's list has others
    assert found["price_source"].startswith("list price, ")


def test_a_price_in_euros_is_at_the_rate_of_now() -> None:
    euros = fact("price", "mine", rented(0.5, currency="EUR"), NOW)
    rates = [
        fact("exchange_rate", "EUR", {"usd_per_unit": 1.1}),
        fact("exchange_rate", "EUR", {"usd_per_unit": 1.2}, NOW),
        fact("exchange_rate", "EUR", {"usd_per_unit": 1.3}, NOW + timedelta(days=1)),
    ]
    assert row(euros, *rates)["usd_per_mtok_total"] == pytest.approx(0.6)
    unknown = row(euros)
    assert unknown["usd_per_mtok_total"] is None
    assert "no exchange rate for EUR on 2026-12-01" in unknown["missing"]


@pytest.mark.parametrize("dates", [{}, {"in_service": "2027-06-01"}, {"retired": "2026-01-01"}])
def test_an_owned_gpu_costs_its_hours_and_its_site_s_electricity(dates: dict[str, str]) -> None:
    # 8,760 / 8,760 h = $1/h, in service or not; 2 x 450 W x 0.5 h = 0.45 kWh x PUE 1.2 = 0.54 kWh at $0.30 = $0.162
    found = row(fact("price", "mine", owned(**dates), NOW), fact("tariff", "mine", flat(0.30)))
    assert found["usd_per_mtok_total"] == pytest.approx(1.162)
    assert (found["usd_per_gpu_hour"], found["usd_per_kwh"]) == (1.0, 0.30)
    assert found["price_source"] == "test, fleet mine (owned)"


def test_a_tariff_by_the_clock_counts_at_the_mean_of_its_week() -> None:
    # 12 of 24 hours at 0.40, the rest at 0.20: 0.30, at whatever hour one asks
    tariff = by_clock(0.20, ("all", "08:00", "20:00", 0.40))
    found = row(fact("price", "mine", owned(), NOW), fact("tariff", "mine", tariff))
    assert found["usd_per_kwh"] == pytest.approx(0.30)


def test_without_a_tariff_the_price_of_this_hour_counts() -> None:
    hour = NOW.replace(minute=0)
    of_hour = fact("tariff_hour", "mine", {"per_kwh": 0.1}, hour)
    assert row(fact("price", "mine", owned(), NOW), of_hour)["usd_per_kwh"] == 0.1


def test_an_owned_gpu_without_a_tariff_has_no_cost_rather_than_a_smaller_one() -> None:
    found = row(fact("price", "mine", owned(), NOW))
    assert (found["usd_per_mtok_total"], found["usd_per_gpu_hour"]) == (None, None)
    assert "no tariff of fleet mine" in found["missing"]


def test_pue_and_zone_in_force_count_too() -> None:
    before, after = row(), row(fact("pue", "mine", {"pue": 2.4}, NOW), fact("zone", "mine", {"zone": "FR"}, NOW))
    assert after["grid"].startswith("FR") and after["grid"].endswith("PUE 2.4")
    assert after["usd_per_mtok_total"] == before["usd_per_mtok_total"]


def test_a_fleet_that_only_facts_know_is_found_by_the_cards_of_its_nodes() -> None:
    prices = [fact("price", "b", rented(3.0)), fact("price", "a", rented(2.0)), fact("price", "other", rented(1.0))]
    cards = (("b", CARD), ("a", "NVIDIA-GeForce-RTX-4090"), ("other", "NVIDIA L4"))
    assert row(*prices, config=Config(), cards=cards)["price_source"] == "test, fleet a"
    assert row(*prices, cards=cards)["price_source"] == "wattmix.toml, fleet mine"
    assert row(*prices, config=Config())["price_source"].startswith("list price, ")
