"""Which prices changed within a range: what charts mark."""

from __future__ import annotations

from datetime import timedelta

from app.answers.price_changes import price_changes
from app.facts.kinds import OwnedPrice, Pue, RentedPrice, TariffHours, TimeOfUseTariff
from app.store.database import Store
from tests.answers.accounting import START, asked, know, minutes_of, take
from tests.batches import batch


def at(minute: int) -> str:
    return (START + timedelta(minutes=minute)).isoformat()


def test_changes_are_told_with_what_they_became(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300)))
    know(store, "price", "h100", RentedPrice(per_gpu_hour=4.0), minute=30)
    know(store, "pue", "h100", Pue(pue=1.3), minute=40)
    know(store, "price", "h100", None, minute=50)
    know(store, "price", "h100", RentedPrice(per_gpu_hour=9.0), minute=90)
    assert price_changes(store, asked()) == [
        {"at": at(30), "fleet": "h100", "kind": "price", "what": "rented, 4 USD per GPU-hour"},
        {"at": at(40), "fleet": "h100", "kind": "pue", "what": "PUE 1.3"},
        {"at": at(50), "fleet": "h100", "kind": "price", "what": "ended"},
    ]
    assert price_changes(store, asked(fleet="home")) == []


def test_the_clock_of_a_tariff_is_no_change_and_the_tariff_is(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300)))
    night = TariffHours.model_validate({"from": "04:20", "to": "04:40", "per_kwh": 0.1})
    know(store, "tariff", "home", TimeOfUseTariff(tz="UTC", per_kwh=0.3, rules=(night,)), minute=10)
    (found,) = price_changes(store, asked())
    assert (found["at"], found["kind"]) == (at(10), "tariff")
    assert found["what"].startswith("0.3 USD/kWh, and by the clock of UTC")


def test_owned_gpus_change_their_price_when_they_come_into_service(store: Store) -> None:
    price = OwnedPrice(purchase=1752, life_years=2, in_service=START + timedelta(minutes=25))
    know(store, "price", "home", price, minute=-60)
    assert [(one["at"], one["fleet"]) for one in price_changes(store, asked())] == [(at(25), "home")]


def test_only_what_was_known_counts(store: Store) -> None:
    know(store, "price", "h100", RentedPrice(per_gpu_hour=4.0), minute=30)
    assert price_changes(store, asked(known_at=START)) == []
