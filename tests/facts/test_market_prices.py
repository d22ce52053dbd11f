"""What markets asked: the last one told by a moment, until another comes, it is ended or too old."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.answers.card_prices import card_price, price_moments
from app.facts.book import FactBook
from app.facts.market_prices import MarketPrice, MarketPrices, joined_labels
from app.price_settings import PriceSettings
from tests.facts.builders import t

CARD = "NVIDIA GeForce RTX 4090"
DAY = timedelta(days=1)
BOTH = PriceSettings.model_validate(
    {
        "max_age_days": 60,
        "source": [{"provider": "vast", "market": "on_demand"}, {"provider": "runpod", "market": "secure"}],
    }
)


def told(usd: float | None, as_of: datetime, market: str = "runpod secure", **said: object) -> MarketPrice:
    provider, name = market.split()
    known: dict[str, object] = {"gpu_name": CARD, "count": 1, "known_at": as_of}
    return MarketPrice(provider=provider, market=name, usd_per_gpu_hour=usd, as_of=as_of, **(known | said))  # type: ignore[arg-type]


def price_at(moment: datetime, *prices: MarketPrice, known_at: datetime | None = None) -> float | None:
    return card_price(FactBook([], known_at, prices), BOTH, CARD, moment).usd_per_gpu_hour


def test_the_last_price_told_by_a_moment_counts_and_is_labelled() -> None:
    prices = (told(0.6, t(11, 1)), told(0.7, t(11, 10), count=12))
    assert [price_at(moment, *prices) for moment in (t(11, 1), t(11, 9, 23), t(11, 10))] == [0.6, 0.6, 0.7]
    rate = card_price(FactBook([], market_prices=prices), BOTH, "rtx 4090", t(11, 12))
    assert (rate.method, rate.source) == ("market", "market price, runpod secure, 2026-11-10 (12 offers)")


def test_without_a_market_price_the_list_price_counts() -> None:
    """$0.34, the list price of 2026-09-25: before the market told one; 61 days after that both are too old."""
    price = told(0.6, t(11, 1, 12))
    assert [price_at(moment, price) for moment in (t(11, 1, 11), t(12, 31, 23), t(12, 31) + DAY)] == [0.34, 0.6, None]
    assert card_price(FactBook([], market_prices=[price]), BOTH, "NVIDIA L4", t(11, 2)).reason == "no price for L4"


def test_the_first_market_of_the_settings_counts_and_then_the_next() -> None:
    prices = (told(0.3, t(11, 1), "vast on_demand"), told(0.7, t(11, 20)))
    assert [price_at(moment, *prices) for moment in (t(11, 21), t(12, 31) + DAY)] == [0.3, 0.7]
    # of markets that are not configured the newest, after those that are
    others = (told(0.5, t(11, 21), "runpod community"), told(0.55, t(11, 22), "runpod spot"))
    assert price_at(t(11, 23), *others) == 0.55
    assert price_at(t(11, 23), *prices, *others) == 0.3


def test_a_market_that_was_ended_counts_no_more() -> None:
    prices = (told(0.6, t(11, 1)), told(None, t(11, 5), count=0))
    assert [price_at(moment, *prices) for moment in (t(11, 4), t(11, 5))] == [0.6, 0.34]


def test_what_was_not_known_then_does_not_count() -> None:
    prices = (told(0.6, t(11, 1)), told(0.7, t(11, 10)))
    assert price_at(t(11, 12), *prices, known_at=t(11, 9)) == 0.6
    assert price_at(t(11, 12), *prices, known_at=t(10, 31)) == 0.34


moments = st.integers(0, 90 * 24).map(lambda hours: t(9, 1) + timedelta(hours=hours))
markets = st.sampled_from(["runpod secure", "vast spot"])
prices = st.builds(told, st.one_of(st.none(), st.floats(0.01, 9)), moments, markets)


@given(before=st.lists(prices, max_size=6), later=prices, moment=moments)
def test_a_price_told_at_a_moment_changes_nothing_before_it(
    before: list[MarketPrice], later: MarketPrice, moment: datetime
) -> None:
    if moment < later.as_of:
        assert price_at(moment, *before, later) == price_at(moment, *before)


@given(known=st.lists(prices, max_size=6), moment=moments)
def test_between_two_moments_at_which_prices_change_none_does(known: list[MarketPrice], moment: datetime) -> None:
    book = FactBook([], market_prices=known)
    edges = [edge for edge in price_moments(book, BOTH) if edge <= moment]
    if edges:
        at_edge, now = (card_price(book, BOTH, CARD, one) for one in (edges[-1], moment))
        assert (at_edge.usd_per_gpu_hour, at_edge.source) == (now.usd_per_gpu_hour, now.source)


def test_moments_are_those_of_every_card_and_market() -> None:
    found = MarketPrices([told(0.6, t(11, 1, 9)), told(0.6, t(11, 3), gpu_name="NVIDIA L4")]).moments(1)
    assert found == {t(11, 1, 9), t(11, 3), t(11, 5)}


def test_labels_of_one_market_are_told_in_one() -> None:
    labels = [told(0.6 + number / 10, t(11, 1) + number * DAY, "vast on_demand", count=7).label for number in range(3)]
    others = ["wattmix.toml, fleet h100", told(0.6, t(11, 1)).label]
    assert joined_labels([*labels, *others]) == [
        "market price, runpod secure, 2026-11-01 (1 offer)",
        "market price, vast on_demand, 2026-11-01 to 2026-11-03 (3 prices)",
        "wattmix.toml, fleet h100",
    ]
