"""At what price a demand's fleets are on offer: what is in force, what the demand says, and what a list says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answers.offers import at_prices_in_force, prices_as_json, with_all_prices, with_embodied
from app.config import Config
from app.errors import DemandError
from app.facts.book import FactBook
from app.facts.fact import Fact
from app.price_settings import PriceSettings
from app.split.demand import Demand, parse_demand
from app.split.scenario import what_if
from tests.facts.builders import fact, flat, owned, rented

NOW = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)


def demand(**fleet: Any) -> Demand:
    one = {"name": "chat", "model": "m", "requests_per_s": 1, "prompt_tokens": 1, "generated_tokens": 1}
    return parse_demand({"class": [one], "fleet": [{"name": "h100", "gpu": "NVIDIA H100 PCIe"} | fleet]}, "test")


def configured(*facts: Fact, **fleet: Any) -> dict[str, Any]:
    return prices_as_json(at_prices_in_force(demand(**fleet), FactBook(facts), PriceSettings(), NOW))["h100"]


def asked(*facts: Fact, **fleet: Any) -> dict[str, Any]:
    return prices_as_json(with_all_prices(demand(**fleet), FactBook(facts), PriceSettings(), NOW))["h100"]


def price(usd_per_gpu_hour: float, source: str, usd_per_kwh: Any = None) -> dict[str, Any]:
    return {"usd_per_gpu_hour": usd_per_gpu_hour, "usd_per_kwh": usd_per_kwh, "source": source}


@given(usd=st.floats(0, 1000))
def test_the_configured_demand_has_the_price_in_force_and_a_given_one_what_it_says(usd: float) -> None:
    in_force = fact("price", "h100", rented(usd))
    assert configured(in_force, usd_per_gpu_hour=2.0) == price(usd, "test, fleet h100")
    assert asked(in_force, usd_per_gpu_hour=2.0) == price(2.0, "the demand")
    assert configured(in_force) == asked(in_force) == price(usd, "test, fleet h100")


@pytest.mark.parametrize(
    "facts",
    [
        [],
        [fact("price", "h100", rented(9.0), NOW + timedelta(seconds=1))],
        [fact("price", "h100", rented(9.0)), fact("price", "h100", None, NOW)],
        [fact("price", "another", rented(9.0))],
    ],
)
def test_without_a_price_in_force_the_demand_s_counts(facts: list[Fact]) -> None:
    assert configured(*facts, usd_per_gpu_hour=2.0) == price(2.0, "the demand")


def test_without_any_price_the_list_of_today_has_one() -> None:
    found = configured(gpu="NVIDIA A10")
    assert found == asked(gpu="NVIDIA A10")
    assert (found["usd_per_gpu_hour"], found["source"][:28]) == (1.29, "list price, neocloud, 2026-0")
    with pytest.raises(DemandError, match=r"fleet h100: no price for X1; accepted: `usd_per_gpu_hour`, or a price of"):
        configured(gpu="X1")


def test_owned_gpus_have_their_electricity_beside_the_price() -> None:
    facts = [
        fact("price", "h100", owned(currency="EUR")),
        fact("tariff", "h100", flat(0.2, currency="EUR")),
        fact("exchange_rate", "EUR", {"usd_per_unit": 1.5}),
    ]
    assert configured(*facts, usd_per_gpu_hour=2.0) == price(1.5, "test, fleet h100 (owned)", pytest.approx(0.3))


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ([fact("price", "h100", rented(1.0, currency="EUR"))], "no exchange rate for EUR on 2026-12-01"),
        ([fact("price", "h100", owned())], "no tariff of fleet h100"),
        (
            [fact("price", "h100", owned()), fact("tariff", "h100", flat(-0.1))],
            "its electricity costs less than nothing",
        ),
    ],
)
def test_a_price_in_force_that_cannot_be_planned_with_is_told(facts: list[Fact], reason: str) -> None:
    assert configured(*facts, usd_per_gpu_hour=2.0) == price(2.0, f"the demand; not the price of fleet h100: {reason}")
    with pytest.raises(DemandError, match=f"fleet h100: {reason}"):
        configured(*facts)


def test_a_price_that_a_what_if_changed_says_so() -> None:
    start = at_prices_in_force(demand(), FactBook([fact("price", "h100", rented(3.0))]), PriceSettings(), NOW)
    assert prices_as_json(what_if(start, {"usd.h100": 1.0}))["h100"] == price(1.0, "what-if")
    assert prices_as_json(what_if(start, {"usd.h100": "3"}))["h100"] == price(3.0, "test, fleet h100")


def embodied(*facts: Fact, **fleet: Any) -> tuple[float | None, str, str | None]:
    """Grams of a GPU-hour, the policy, and where they are from."""
    (offer,) = with_embodied(demand(**fleet), FactBook(facts), Config(), NOW).fleets
    return offer.embodied_g_per_gpu_hour, offer.embodied_policy, offer.embodied_source


def test_embodied_grams_that_a_demand_leaves_out_are_those_in_force() -> None:
    # 566.7 kg over 4 years of 8,760 h: 16.17 g; 350.4 kg: 10 g
    grams, policy, source = embodied()
    assert (grams, policy) == (pytest.approx(566.7 / 35.04, rel=1e-9), "full")
    assert source is not None and source.startswith("boavizta 566.7 kg a GPU")
    kg = {"kg_low": 350.4, "kg_per_gpu": 350.4, "kg_high": 350.4, "method": "user"}
    assert embodied(fact("embodied", "h100", kg))[0] == pytest.approx(10.0)
    assert embodied(fact("embodied", "h100", {"policy": "sunk"}))[:2] == (0.0, "sunk")


def test_embodied_grams_that_a_demand_says_stand() -> None:
    own = fact("embodied", "h100", {"policy": "sunk"})
    assert embodied(own, embodied_g_per_gpu_hour=3.0) == (3.0, "full", None)
    assert embodied(embodied_policy="sunk") == (None, "sunk", None)
    assert embodied(gpu="a card of nobody") == (None, "full", None)
