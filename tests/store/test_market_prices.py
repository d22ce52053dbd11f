"""Market prices in the store: appended when they say otherwise or grow old, never changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from app.facts.market_prices import MarketPrice
from app.store.database import Store
from app.store.facts import fact_book
from app.store.market_prices import append_market_prices, end_market_prices, last_market_prices, read_market_prices
from app.store.source_states import PriceState, read_price_states, write_state
from tests.facts.builders import t

WEEK = timedelta(days=7)
PRICE = MarketPrice("NVIDIA L4", "runpod", "secure", 0.6, 1, t(11, 1), t(11, 1))


def told(usd: float, day: int, hour: int = 0, **said: object) -> MarketPrice:
    return replace(PRICE, usd_per_gpu_hour=usd, as_of=t(11, day, hour), known_at=t(11, day, hour), **said)  # type: ignore[arg-type]


def test_a_price_is_added_when_it_differs_from_the_last(store: Store) -> None:
    assert append_market_prices(store, [PRICE], WEEK) == 1
    assert append_market_prices(store, [told(0.6, 1, 6), PRICE], WEEK) == 0
    assert append_market_prices(store, [told(0.7, 2)], WEEK) == 1
    assert append_market_prices(store, [told(0.6, 3)], WEEK) == 1
    assert append_market_prices(store, [told(0.6, 3, 1, market="spot")], WEEK) == 1
    assert [price.usd_per_gpu_hour for price in read_market_prices(store)] == [0.6, 0.7, 0.6, 0.6]
    assert last_market_prices(store) == [told(0.6, 3), told(0.6, 3, 1, market="spot")]


def test_a_price_that_stays_is_confirmed_before_it_is_old(store: Store) -> None:
    for day in range(1, 16):
        append_market_prices(store, [told(0.6, day)], WEEK)
    assert [price.as_of.day for price in read_market_prices(store)] == [1, 8, 15]


def test_what_an_older_answer_says_adds_nothing(store: Store) -> None:
    append_market_prices(store, [told(0.6, 5)], WEEK)
    assert append_market_prices(store, [told(0.7, 4)], WEEK) == 0


def test_markets_that_are_not_asked_any_more_are_ended_once(store: Store) -> None:
    append_market_prices(store, [PRICE, replace(PRICE, market="spot")], WEEK)
    assert end_market_prices(store, {("runpod", "spot")}, t(11, 2)) == 1
    assert end_market_prices(store, {("runpod", "spot")}, t(11, 3)) == 0
    assert [price.market for price in last_market_prices(store)] == ["spot"]
    # a clock that was set back ends nothing before it was said
    assert end_market_prices(store, (), t(10, 1)) == 1
    ended = [price for price in read_market_prices(store) if price.market == "spot"]
    assert [price.usd_per_gpu_hour for price in ended] == [0.6, None]
    assert ended[1].as_of > PRICE.as_of
    # asked again, it is added again
    assert append_market_prices(store, [told(0.6, 4)], WEEK) == 1


def test_the_book_knows_prices_as_of_their_time(store: Store) -> None:
    before = fact_book(store)
    append_market_prices(store, [PRICE, told(0.7, 9, gpu_name="NVIDIA A10")], WEEK)
    book = fact_book(store)
    assert book is not before
    assert list(book.market_prices.of("L4", t(11, 2))) == [PRICE]
    assert list(fact_book(store, t(10, 31)).market_prices.of("L4", t(11, 2))) == []
    assert fact_book(store, t(11, 9)) is book


def test_a_state_is_kept_with_what_was_refused(store: Store) -> None:
    state = PriceState("runpod", "secure", asked_at=t(11, 1), refused=(("NVIDIA L4", "too dear"),))
    write_state(store, state)
    failed = replace(state, problem="HTTP 500", problem_kind="failed", advice="wait", retry_at=t(11, 2), refused=())
    assert read_price_states(store) == {("runpod", "secure"): state}
    write_state(store, failed)
    assert read_price_states(store) == {("runpod", "secure"): failed}
