"""Terms of fleets at any moment: from facts, converted, else from lists and settings; and where they change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.accounting import carbon
from app.accounting.carbon import EmbodiedCarbon, Spread
from app.accounting.periods import Period
from app.accounting.segments import Segment, cut
from app.answers.terms import DatedTerms, fleet_terms
from app.config import Config
from app.facts.book import FactBook
from app.facts.carbon import Embodied, MarketFactor
from app.facts.fact import Fact
from app.facts.kinds import (
    ExchangeRate,
    FactValue,
    FlatTariff,
    Kind,
    LatencySlo,
    OwnedPrice,
    Pue,
    RentedPrice,
    TariffHour,
    TimeOfUseTariff,
    ZoneFact,
)

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
CARD = "NVIDIA GeForce RTX 4090"
CONFIG = Config()


def fact(kind: Kind, subject: str, value: FactValue | None, valid_from: datetime = LONG_AGO) -> Fact:
    return Fact(kind, subject, valid_from, LONG_AGO, "a contract", value)


def terms(*facts: Fact, fleet: str | None = "home", at: datetime = NOON, config: Config = CONFIG) -> Any:
    return fleet_terms(FactBook(facts), config, fleet, CARD, at)


def test_a_rented_price_is_in_dollars_and_has_its_electricity_in_it() -> None:
    found = terms(
        fact("price", "home", RentedPrice(currency="EUR", per_gpu_hour=0.5, billing_increment_s=60)),
        fact("exchange_rate", "EUR", ExchangeRate(usd_per_unit=1.08)),
        fact("tariff", "home", FlatTariff(per_kwh=0.3)),
    )
    assert (found.usd_per_gpu_hour, found.method, found.source) == (
        pytest.approx(0.54),
        "user",
        "a contract, fleet home",
    )
    assert (found.is_owned, found.usd_per_kwh, found.billing_increment_s) == (False, None, 60)


def test_an_owned_price_has_a_tariff_of_its_own_currency() -> None:
    found = terms(
        fact("price", "home", OwnedPrice(purchase=1752, life_years=2)),
        fact("tariff", "home", FlatTariff(currency="EUR", per_kwh=0.25)),
        fact("exchange_rate", "EUR", ExchangeRate(usd_per_unit=1.2)),
    )
    assert (found.usd_per_gpu_hour, found.usd_per_kwh, found.is_owned) == (pytest.approx(0.1), pytest.approx(0.3), True)


def test_what_is_not_known_has_a_reason() -> None:
    in_eur = terms(fact("price", "home", RentedPrice(currency="EUR", per_gpu_hour=0.5)))
    assert (in_eur.usd_per_gpu_hour, in_eur.reason) == (None, "no exchange rate for EUR on 2026-02-03")
    no_tariff = terms(fact("price", "home", OwnedPrice(purchase=1752, life_years=2)))
    assert (no_tariff.usd_per_kwh, no_tariff.no_tariff) == (None, "no tariff of fleet home")
    nowhere = terms(fact("zone", "home", ZoneFact(zone="XX-1")))
    assert nowhere.grid.g_per_kwh is None
    assert nowhere.grid.reason.startswith("no grid intensity for zone 'XX-1'")


@pytest.mark.parametrize("fleet", ["home", None])
def test_without_a_price_it_is_the_list_price_of_the_day(fleet: str | None) -> None:
    found = terms(fleet=fleet)
    assert found.method == "default"
    assert found.source.startswith("list price")
    assert terms(fleet=fleet, at=LONG_AGO).reason.startswith("no price for RTX 4090 on or before 2020-01-01")


def test_pue_zone_and_host_are_the_fleets_else_those_of_all_else_the_settings() -> None:
    given = {"zone": [{"name": "A", "g_per_kwh": 100.0, "basis": "direct", "source": "s"}],
             "defaults": {"zone": "A", "pue": 1.3, "host_w_per_gpu": 50.0}}  # fmt: skip
    config = Config.model_validate(given)
    everyone = fact("pue", "*", Pue(pue=1.4))
    own = (fact("pue", "home", Pue(pue=1.1)), fact("zone", "home", ZoneFact(zone="FR")))
    assert [terms(*facts, config=config).pue for facts in ((), (everyone,), (everyone, *own))] == [1.3, 1.4, 1.1]
    assert (terms(config=config).grid.g_per_kwh, terms(*own, config=config).grid.zone) == (100.0, "FR")
    assert terms(config=config).host_w == 50.0


def test_service_begins_and_ends_the_price_and_not_the_electricity() -> None:
    plan = OwnedPrice(purchase=1752, life_years=2, in_service=NOON, retired=NOON + timedelta(days=1))
    facts = (fact("price", "home", plan), fact("tariff", "home", FlatTariff(per_kwh=0.3)))
    moments = (NOON - timedelta(seconds=1), NOON, NOON + timedelta(days=1))
    found = [terms(*facts, at=moment) for moment in moments]
    assert [one.usd_per_gpu_hour for one in found] == [0.0, pytest.approx(0.1), 0.0]
    assert [one.usd_per_kwh for one in found] == [0.3] * 3
    assert [one.in_service for one in found] == [False, True, False]


def test_making_a_card_is_by_the_fleets_own_fact_else_that_of_all_else_the_settings() -> None:
    table = EmbodiedCarbon(Spread(185.1, 185.1, 185.1), "boavizta", "default")
    assert terms().embodied == table
    by_pcf = Config.model_validate({"defaults": {"embodied_method": "pcf"}})
    unknown = terms(config=by_pcf).embodied
    assert (unknown.kg, unknown.reason) == (None, "no pcf figure of making RTX 4090; boavizta has one")
    everyone = fact("embodied", "*", Embodied(life_years=6))
    assert terms(everyone, config=by_pcf).embodied == EmbodiedCarbon(table.kg, "boavizta", "default", 6.0)
    assert terms(everyone, fleet=None, config=by_pcf).embodied.life_years == 6.0
    own = fact("embodied", "home", Embodied(method="user", kg_per_gpu=200, kg_high=250))
    assert terms(everyone, own).embodied == EmbodiedCarbon(Spread(200.0, 200.0, 250.0), "user", "user")
    named = fact("embodied", "home", Embodied(method="pcf", kg_per_gpu=90))  # a footprint that the table does not have
    assert terms(everyone, named).embodied == EmbodiedCarbon(Spread(90.0, 90.0, 90.0), "pcf", "user")
    sunk = terms(everyone, fact("embodied", "home", Embodied(policy="sunk"))).embodied
    assert (sunk.policy, sunk.method, sunk.g_per_gpu_hour) == ("sunk", "user", Spread(0.0, 0.0, 0.0))


def test_a_suppliers_factor_is_its_fleets_alone_and_has_the_facts_source() -> None:
    factor = fact("market_factor", "home", MarketFactor(g_per_kwh=45.0))
    assert terms(factor).market == carbon.MarketFactor(45.0, "a contract")
    assert [terms(factor, fleet=fleet).market for fleet in ("other", None)] == [None, None]
    ended = fact("market_factor", "home", None, NOON)
    assert terms(factor, ended).market is None


def dated(
    *facts: Fact, fleets: tuple[str | None, ...] = ("home",), hours: int = 24
) -> tuple[DatedTerms, list[Segment]]:
    found = DatedTerms(FactBook(facts), CONFIG, fleets, NOON, NOON + timedelta(hours=hours))
    return found, cut([Period(NOON, NOON + timedelta(hours=hours), "x")], found.changes)


def test_times_with_the_same_terms_have_one_state() -> None:
    """Two days of a night tariff are two prices, whatever the number of nights."""
    rules = [{"from": "22:00", "to": "06:00", "per_kwh": 0.1}]
    tariff = TimeOfUseTariff.model_validate({"tz": "UTC", "per_kwh": 0.3, "rules": rules})
    found, segments = dated(
        fact("price", "home", OwnedPrice(purchase=1752, life_years=2)), fact("tariff", "home", tariff), hours=48
    )
    assert [f"{one.start:%H:%M}" for one in segments] == ["12:00", "22:00", "06:00", "22:00", "06:00"]
    assert [found.state_of(one) for one in segments] == [0, 1, 0, 1, 0]
    assert [found.of(state, "home", CARD).usd_per_kwh for state in (0, 1)] == [0.3, 0.1]


def test_each_kind_of_change_cuts() -> None:
    hours = [NOON + timedelta(hours=number) for number in range(1, 10)]
    price = OwnedPrice(purchase=1752, life_years=2, in_service=hours[0])
    found, segments = dated(
        fact("price", "home", price),
        fact("tariff", "home", FlatTariff(currency="EUR", per_kwh=0.2)),
        fact("tariff_hour", "home", TariffHour(per_kwh=-0.1), hours[1]),
        fact("pue", "home", Pue(pue=1.5), hours[3]),
        fact("zone", "home", ZoneFact(zone="FR"), hours[4]),
        fact("exchange_rate", "EUR", ExchangeRate(usd_per_unit=1.1)),
        fact("exchange_rate", "EUR", ExchangeRate(usd_per_unit=1.2), hours[5]),
        fact("slo", "m", LatencySlo(max_ms=50), hours[6]),
        fact("market_factor", "home", MarketFactor(g_per_kwh=45.0), hours[7]),
        fact("embodied", "*", Embodied(method="pcf"), hours[8]),
        fact("price", "elsewhere", RentedPrice(per_gpu_hour=1.0), hours[6] + timedelta(minutes=5)),
    )
    assert [one.start for one in segments] == [NOON, *hours]
    states = [found.state_of(one) for one in segments]
    assert states == [0, 1, 2, 1, 3, 4, 5, 6, 7, 8]  # after its own price's hour, the tariff is as before
    of_hour = found.of(found.state_of(segments[2]), "home", CARD)
    assert (of_hour.usd_per_kwh, of_hour.pue) == (-0.1, 1.0)
    assert found.slo("m", hours[6]) == LatencySlo(max_ms=50)
    assert found.slo("m", hours[5]) is None


def test_a_change_within_a_minute_holds_from_the_next_one_on() -> None:
    late = NOON + timedelta(minutes=37, seconds=20)
    found, segments = dated(
        fact("price", "home", RentedPrice(per_gpu_hour=2.0)), fact("price", "home", RentedPrice(per_gpu_hour=3.0), late)
    )
    assert segments[1].start == NOON + timedelta(minutes=38)
    assert [found.of(found.state_of(one), "home", CARD).usd_per_gpu_hour for one in segments] == [2.0, 3.0]
