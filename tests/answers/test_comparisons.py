"""What else could be paid, and what is paid for nothing: hosted prices, renting or owning, idle GPUs, today's split."""

from __future__ import annotations

from typing import Any

import pytest

from app.answers.hosted import hosted_comparison
from app.answers.idle import idle_gpus
from app.answers.owning import rent_or_own
from app.answers.split_today import split_today
from app.config import Config
from app.facts.kinds import ExchangeRate, FlatTariff, HostedPrice, OwnedPrice, RentedPrice
from app.split.demand import Demand, parse_demand
from app.store.database import Store
from tests.answers.accounting import CONFIG, HOME_CARD, NOW, asked, idle, know, minutes_of, served, take
from tests.batches import CARD, MODEL, batch, engine, gpu, uuid_of

EARLIER = -1_000_000


def at_home(card: str = HOME_CARD, **said: Any) -> Any:
    known = {"node": "desk-1", "gpus": [gpu("desk-1", name=card)], "engines": [engine(gpus=[uuid_of("desk-1")])]}
    return batch(1, rows=minutes_of(200), **{**known, "engine_rows": served(), **said})


def test_a_hosted_price_of_another_model_is_held_against_the_whole_bill(store: Store) -> None:
    """$2 for the engine's GPU and $2 for the one without: $4 for 9,000 tokens, of which 6,000 are prompt tokens."""
    rows = [*minutes_of(300), *minutes_of(50, gpu=1)]
    take(store, batch(1, rows=rows, gpus=[gpu(), gpu(index=1)], engine_rows=served()))
    know(store, "hosted_price", "example-ai/other", HostedPrice(input_usd_per_mtok=1, output_usd_per_mtok=4))
    (row,) = hosted_comparison(store, CONFIG, asked(), NOW)
    assert (row["model"], row["cost"]["value"]) == (None, pytest.approx(4.0))
    # (6,000 x 1 + 3,000 x 4) / 9,000 = $2 per Mtok: $4 an hour buy 2 Mtok
    assert row["hosted_usd_per_mtok"]["value"] == pytest.approx(2.0)
    assert row["hosted_cost"]["value"] == pytest.approx(0.018)
    assert row["break_even_tokens_per_hour"]["value"] == pytest.approx(2e6)
    assert row["tokens_per_hour"]["value"] == pytest.approx(9000)


def test_a_hosted_price_is_on_the_basis_that_is_asked(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    know(store, "hosted_price", f"example-ai/{MODEL}", HostedPrice(input_usd_per_mtok=1, output_usd_per_mtok=4))
    (row,) = hosted_comparison(store, CONFIG, asked(basis="output"), NOW)
    # $0.018 and $2 over 3,000 generated tokens
    assert row["model"] == MODEL
    assert row["hosted_usd_per_mtok"]["value"] == pytest.approx(6.0)
    assert row["usd_per_mtok"]["value"] == pytest.approx(2.0 / 3000 * 1e6)


def test_a_hosted_price_without_tokens_says_so(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=idle()))
    know(store, "hosted_price", f"example-ai/{MODEL}", HostedPrice(input_usd_per_mtok=1, output_usd_per_mtok=4))
    (row,) = hosted_comparison(store, CONFIG, asked(), NOW)
    assert row["hosted_usd_per_mtok"]["reason"] == "no tokens"
    assert row["break_even_tokens_per_hour"]["reason"] == "no tokens, so no mix to price"


def test_only_hosted_prices_in_force_count(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    price = HostedPrice(input_usd_per_mtok=1, output_usd_per_mtok=4)
    know(store, "hosted_price", "example-ai/past", price, minute=-60)
    know(store, "hosted_price", "example-ai/past", None, minute=-30)
    know(store, "hosted_price", "example-ai/later", price, minute=90)
    assert hosted_comparison(store, CONFIG, asked(), NOW) == []


def test_a_rented_card_is_held_against_what_it_costs_new(store: Store) -> None:
    """H100 at $2.00; 300 W x PUE 1.2 x EUR 0.1902 x 1.10; $27,000 in 4 years: $562.50 a month."""
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    know(store, "exchange_rate", "EUR", ExchangeRate(usd_per_unit=1.1), minute=EARLIER)
    (row,) = rent_or_own(store, CONFIG, asked(), NOW)
    assert (row["fleet"], row["card"], row["plan"], row["rent_usd_per_hour"]) == ("h100", CARD, "rented", 2.0)
    assert row["site_power_w"]["value"] == pytest.approx(360.0)
    saved = 2.0 - 0.36 * 0.1902 * 1.1
    assert row["hours_per_month"]["value"] == pytest.approx(562.5 / saved)
    assert row["months_to_pay_back"]["value"] == pytest.approx(27_000 / (saved * 730))
    assert "estimate of 2026" in row["purchase_source"]
    assert row["tariff_source"] == "average of businesses in EU27, 2025-H1"


def test_the_fleet_s_own_tariff_goes_before_the_average(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    know(store, "tariff", "h100", FlatTariff(per_kwh=0.5), minute=EARLIER)
    (row,) = rent_or_own(store, CONFIG, asked(), NOW)
    assert (row["tariff_usd_per_kwh"], row["tariff_source"]) == (0.5, "tariff of fleet h100")


def test_an_owned_card_is_held_against_the_list_price_of_renting(store: Store) -> None:
    take(store, at_home())
    (row,) = rent_or_own(store, CONFIG, asked(), NOW)
    assert (row["plan"], row["purchase_usd"], row["life_years"]) == ("owned", 1752.0, 2.0)
    assert row["rent_source"].startswith("list price")
    saved = row["rent_usd_per_hour"] - 0.2 * 0.2
    assert row["hours_per_month"]["value"] == pytest.approx(73 / saved)


def test_what_is_not_known_is_named(store: Store) -> None:
    take(store, at_home(card="Prototype X1"))
    know(store, "price", "home", RentedPrice(per_gpu_hour=1.0, currency="SEK"), minute=EARLIER)
    know(store, "tariff", "home", None, minute=EARLIER)
    (row,) = rent_or_own(store, CONFIG, asked(), NOW)
    reason = row["hours_per_month"]["reason"]
    assert "no purchase price of Prototype X1 is known" in reason
    assert "no exchange rate for SEK" in reason
    assert "no exchange rate for EUR" in reason
    foreign = OwnedPrice(purchase=9000, life_years=3, currency="SEK")
    know(store, "price", "home", foreign, minute=EARLIER + 1)
    (row,) = rent_or_own(store, CONFIG, asked(), NOW)
    assert row["purchase_usd"] is None
    assert "no exchange rate for SEK" in row["purchase_source"]


def test_idle_gpus_are_listed_by_what_they_cost(store: Store) -> None:
    rows = [*minutes_of(300, 30), *minutes_of(100, 30, first=30), *minutes_of(50, gpu=1), *minutes_of(300, gpu=2)]
    cards = [gpu(index=number) for number in range(3)]
    engines = [engine(), engine(url="http://127.0.0.1:8001/metrics", gpus=[uuid_of("node-7", 2)])]
    work = [*served(30), *idle(30, first=30), *served(60, engine=1)]
    take(store, batch(1, rows=rows, gpus=cards, engines=engines, engine_rows=work))
    found = idle_gpus(store, CONFIG, asked(), NOW)
    assert [(one["gpu"], one["wasted"]["value"]) for one in found["gpus"]] == [
        (uuid_of("node-7", 1), pytest.approx(2.0)), (uuid_of("node-7", 0), pytest.approx(1.0)),
    ]  # fmt: skip
    assert (found["others"], found["total"]["value"]) == (0, pytest.approx(3.0))
    assert idle_gpus(store, CONFIG, asked(), NOW, most=1)["others"] == 1


def demand(model: str) -> Demand:
    return parse_demand(
        {
            "class": [
                {"name": "chat", "model": model, "requests_per_s": 1, "prompt_tokens": 100, "generated_tokens": 50},
                {"name": "batch", "model": model, "requests_per_s": 3, "prompt_tokens": 100, "generated_tokens": 50},
            ],
            "fleet": [{"name": "h100", "gpu": CARD, "usd_per_gpu_hour": 2.0}],
        },
        "test",
    )


def answer(given: Demand) -> dict[str, Any]:
    """Each class on two replicas of h100, at $4 an hour."""
    rates = {one.name: one.tokens_per_s for one in given.classes}
    return {
        "status": "optimal", "reason": None, "usd_per_hour": 4.0, "tokens_per_s": sum(rates.values()),
        "shares": [{"fleet": "h100", "tokens_per_s": rate} for rate in rates.values()],
        "replicas": [{"fleet": "h100", "count": 2, "gpu": CARD, "gpus_per_replica": 1, "usd_per_hour": 4.0}],
    }  # fmt: skip


def test_the_demand_is_scaled_to_the_busiest_hour_when_engines_serve_its_model(store: Store) -> None:
    """9,000 tokens an hour are 2.5 a second: of the demand's 600 a second, chat keeps a quarter. Before it: half."""
    work = [*served(30, first=-60), *served(60)]
    take(store, batch(1, rows=minutes_of(300, 120, first=-60), engine_rows=work))
    found = split_today(store, CONFIG, asked(-60, 120), NOW, demand(MODEL.rsplit("/", 1)[-1]), answer)
    assert found["tokens_per_s"] == pytest.approx(13_500 / 7200)
    assert (found["busiest"], found["step"], found["left_out"]) == ("2026-02-03T04:00+00:00", "hour", [])
    assert found["is_scaled"]
    assert found["changes"] == {"rps.chat": pytest.approx(2.5 / 600), "rps.batch": pytest.approx(7.5 / 600)}
    assert found["demand_tokens_per_s"] == pytest.approx(2.5)
    (fleet,) = found["fleets"]
    # scraped for 30 and 60 of 120 minutes
    assert (fleet["token_share"], fleet["replicas"]) == (pytest.approx(1.0), pytest.approx(0.75))
    assert (fleet["recommended_token_share"], fleet["recommended_replicas"]) == (pytest.approx(1.0), 2)
    assert (fleet["usd_per_hour"]["value"], fleet["recommended_usd_per_hour"]) == (pytest.approx(2.0), 4.0)


def test_models_that_the_demand_does_not_have_are_left_out_of_the_comparison(store: Store) -> None:
    """$2 an hour and half of the engines; a GPU without an engine is in neither side, too."""
    other = engine(url="http://127.0.0.1:8001/metrics", model="org/other", gpus=[uuid_of("node-7", 1)])
    rows = [*minutes_of(300), *minutes_of(300, gpu=1), *minutes_of(50, gpu=2)]
    cards = [gpu(index=number) for number in range(3)]
    work = [*served(), *served(engine=1)]
    take(store, batch(1, rows=rows, gpus=cards, engines=[engine(), other], engine_rows=work))
    found = split_today(store, CONFIG, asked(), NOW, demand(MODEL), answer)
    (fleet,) = found["fleets"]
    assert (found["left_out"], found["tokens_per_s"]) == (["org/other"], pytest.approx(2.5))
    assert (fleet["usd_per_hour"]["value"], fleet["replicas"]) == (pytest.approx(2.0), pytest.approx(1.0))
    unscaled = split_today(store, CONFIG, asked(), NOW, demand("org/third"), answer)
    assert unscaled["left_out"] == []
    assert unscaled["fleets"][0]["usd_per_hour"]["value"] == pytest.approx(6.0)


def test_a_demand_of_another_model_stands_as_it_is(store: Store) -> None:
    take(store, at_home())
    found = split_today(store, CONFIG, asked(), NOW, demand("org/other"), answer)
    assert (found["is_scaled"], found["changes"], found["demand_tokens_per_s"]) == (False, {}, pytest.approx(600.0))
    assert [(one["fleet"], one["recommended_replicas"]) for one in found["fleets"]] == [("h100", 2), ("home", 0)]
    assert found["fleets"][0]["usd_per_hour"]["reason"] == "no GPU was seen"


def test_nothing_measured_is_no_share(store: Store) -> None:
    found = split_today(store, Config(), asked(), NOW, demand(MODEL), answer)
    assert [one["token_share"] for one in found["fleets"]] == [None]
