"""What an account can be asked for."""

from __future__ import annotations

from datetime import timedelta

from app.answers.choices import account_names
from app.facts.kinds import Membership
from app.store.choices import fleet_cards
from app.store.database import Store
from app.store.facts import place_memberships
from tests.answers.accounting import HOME_CARD, NOW, START, know, minutes_of, served, take
from tests.batches import CARD, MODEL, batch, engine, gpu


def test_an_empty_store_offers_nothing(store: Store) -> None:
    assert account_names(store) == {"fleets": [], "models": [], "labels": []}
    assert fleet_cards(store, NOW) == []


def test_all_that_was_ever_seen_is_offered(store: Store) -> None:
    rented = batch(
        1, rows=minutes_of(300), engines=[engine(labels={"team": "search"})], engine_rows=served(),
        labels={"rack": "r1", "team": "infra"},
    )  # fmt: skip
    home = batch(1, node="desk-1", gpus=[gpu("desk-1", name=HOME_CARD)], rows=minutes_of(200))
    take(store, rented, home)
    assert account_names(store) == {"fleets": ["h100", "home"], "models": [MODEL], "labels": ["rack", "team"]}
    assert fleet_cards(store, NOW) == [("h100", CARD), ("home", HOME_CARD)]


def test_cards_belong_to_the_fleet_of_the_time(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300)))
    know(store, "membership", "node-7", Membership(fleet="spare"), minute=30)
    place_memberships(store)
    assert fleet_cards(store, START) == [("h100", CARD)]
    assert fleet_cards(store, START + timedelta(hours=1)) == [("spare", CARD)]
