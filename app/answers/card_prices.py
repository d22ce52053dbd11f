"""What renting a card costs without a price of one's own: what a market asks, else the dated list price. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from app.accounting.cost import Rate
from app.facts.book import FactBook
from app.price_settings import PriceSettings
from app.reference.prices import is_too_old, list_price, list_price_moments


def card_price(book: FactBook, settings: PriceSettings, card: str, moment: datetime) -> Rate:
    """Of the market that comes first in wattmix.toml the last price told by then; of markets that are not in it the
    newest. Without one that is not too old, the list price of the day.
    """
    day = moment.astimezone(UTC).date()
    asked = [
        price
        for price in book.market_prices.of(card, moment)
        if not is_too_old(price.as_of.date(), day, settings.max_age_days)
    ]
    if not asked:
        return list_price(card, day, settings.max_age_days)
    best = min(asked, key=lambda price: (settings.rank(price.key), -price.as_of.timestamp(), price.key))
    return Rate(best.usd_per_gpu_hour, "market", best.label)


def price_moments(book: FactBook, settings: PriceSettings) -> list[datetime]:
    """When the price of any card may change, in order."""
    limit = settings.max_age_days
    return sorted(list_price_moments(limit) | book.market_prices.moments(limit))
