"""Accounts of GPUs without a price of their fleet: by the list, by a market, and by neither once both are too old."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.config import Config
from app.facts.kinds import RentedPrice
from app.facts.market_prices import MarketPrice
from app.store.database import Store
from app.store.market_prices import append_market_prices
from tests.answers.accounting import NOW, SETTINGS, START, know, minutes_of, served, summed, take, value
from tests.batches import CARD, batch

# START is 2026-02-03 04:00Z; the list price of the card, $2.00, is of 2025-05-01, 278 days before
UNPRICED: dict[str, Any] = {"fleet": [{"name": "h100", "gpu": CARD}], "node": SETTINGS["node"][:1]}
LISTED = 278


def config_of(max_age_days: int = 365, **prices: Any) -> Config:
    return Config.model_validate(UNPRICED | {"prices": {"max_age_days": max_age_days, **prices}})


def ask(store: Store, usd: float, minute: int, **said: Any) -> None:
    """A market's price told at that minute after START."""
    at = START + timedelta(minutes=minute)
    known = {"gpu_name": CARD, "provider": "runpod", "market": "secure", "count": 1, "known_at": at}
    append_market_prices(store, [MarketPrice(usd_per_gpu_hour=usd, as_of=at, **(known | said))], timedelta(days=7))


def taken(store: Store, minutes: int, first: int = 0) -> Config:
    config = config_of()
    take(store, batch(1, rows=minutes_of(300, minutes, first), engine_rows=served(minutes, first)), config=config)
    return config


def test_a_list_price_that_expires_within_a_range_is_billed_up_to_there(store: Store) -> None:
    """Two hours around midnight: the GPU costs $2 in the first, and nothing is known of the second."""
    midnight = 20 * 60  # minutes after 04:00
    taken(store, 120, midnight - 60)
    whole = summed(store, midnight - 60, 120, config=config_of(LISTED + 1))
    assert value(whole["total"], "cost") == pytest.approx(4.0)
    expiring = config_of(LISTED)
    before = summed(store, midnight - 60, 60, config=expiring)
    assert value(before["total"], "cost") == pytest.approx(2.0)
    reason = "list price of 2025-05-01 is 279 days old; the limit is 278"
    after = summed(store, midnight, 60, config=expiring)["total"]["figures"]["cost"]
    assert after["value"] is None
    assert reason in after["reason"]
    both = summed(store, midnight - 60, 120, config=expiring)
    assert both["total"]["figures"]["cost"]["value"] is None
    assert reason in both["total"]["figures"]["cost"]["reason"]
    assert both["quality"]["prices"] == {"default": pytest.approx(0.5), "missing": pytest.approx(0.5)}


def test_a_market_price_counts_from_when_it_was_told(store: Store) -> None:
    """Of the hour 15 minutes at $2, 30 at $4 and 15 at $6 are $0.50 + $2 + $1.50 = $4."""
    config = taken(store, 60)
    assert value(summed(store, config=config)["total"], "cost") == pytest.approx(2.0)
    ask(store, 4.0, 15)
    ask(store, 6.0, 45)
    found = summed(store, config=config)
    assert value(found["total"], "cost") == pytest.approx(4.0)
    assert found["total"]["figures"]["cost"]["method"] == "default"  # the weaker of list and market
    assert found["quality"]["prices"] == {"default": pytest.approx(0.25), "market": pytest.approx(0.75)}
    assert found["quality"]["price_sources"][1] == "market price, runpod secure, 2026-02-03 (1 offer)"
    assert any("priced by what a market asks" in note for note in found["notes"])
    later = summed(store, 15, 45, config=config)["total"]["figures"]["cost"]
    assert (later["value"], later["method"]) == (pytest.approx(3.5), "market")


def test_an_answer_by_earlier_knowledge_does_not_see_it(store: Store) -> None:
    config = taken(store, 60)
    ask(store, 4.0, 15, known_at=NOW)
    before, then = (summed(store, config=config, known_at=at) for at in (NOW - timedelta(microseconds=1), NOW))
    assert value(before["total"], "cost") == pytest.approx(2.0)
    assert value(then["total"], "cost") == pytest.approx(3.5)  # 15 minutes at $2, 45 at $4


def test_a_price_of_the_fleet_s_own_comes_before_every_market(store: Store) -> None:
    config = taken(store, 60)
    ask(store, 4.0, 0)
    know(store, "price", "h100", RentedPrice(per_gpu_hour=1.0), minute=30)
    found = summed(store, config=config)
    assert value(found["total"], "cost") == pytest.approx(2.5)  # 30 minutes at $4, 30 at $1
    assert found["quality"]["prices"] == {"market": pytest.approx(0.5), "user": pytest.approx(0.5)}


def test_a_market_price_that_is_too_old_does_not_count(store: Store) -> None:
    """Told two days before: with a limit of one day it is too old, and so is the list."""
    taken(store, 60)
    ask(store, 4.0, -47 * 60)
    assert value(summed(store, config=config_of(2))["total"], "cost") == pytest.approx(4.0)
    old = summed(store, config=config_of(1))["total"]["figures"]["cost"]
    assert "list price of 2025-05-01 is 278 days old; the limit is 1" in old["reason"]
