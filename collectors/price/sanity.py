"""Whether a live price is believed beside a dated list price, and if not, why. Pure.

A price that is ten times off is an instance's, another card's or another currency's, not a bargain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from collectors.price.point import Market, PricePoint

LOWEST, HIGHEST = 0.2, 5.0
# Prices move within weeks.
OLDEST = timedelta(days=7)
_CLOCKS_DIFFER = timedelta(minutes=5)

# What a market's price is held against, the closest first. Hyperscalers cost several times as much, so none is.
CLASSES: Mapping[Market, tuple[str, ...]] = {
    "secure": ("neocloud_secure", "neocloud", "neocloud_community", "marketplace", "alternative"),
    "community": ("neocloud_community", "marketplace", "alternative", "neocloud", "neocloud_secure"),
    "on_demand": ("marketplace", "neocloud_community", "alternative", "neocloud", "neocloud_secure"),
    "spot": ("marketplace", "neocloud_community", "alternative", "neocloud", "neocloud_secure"),
}


@dataclass(frozen=True)
class TablePrice:
    """A dated list price of the same card."""

    usd_per_gpu_hour: float
    provider_class: str
    as_of: date

    def __post_init__(self) -> None:
        if not self.usd_per_gpu_hour > 0:
            raise ValueError(f"a list price is above 0, not {self.usd_per_gpu_hour}")


def table_price_for(market: Market, table: Iterable[TablePrice]) -> TablePrice | None:
    """The price of the closest class, of it the newest, of one day the lowest; None where none compares."""
    ranks = {provider_class: rank for rank, provider_class in enumerate(CLASSES[market])}
    fitting = [price for price in table if price.provider_class in ranks]
    return min(
        fitting,
        key=lambda price: (ranks[price.provider_class], -price.as_of.toordinal(), price.usd_per_gpu_hour),
        default=None,
    )


def refusal(point: PricePoint, table: TablePrice | None, now: datetime) -> str | None:
    """Why `point` is not used at `now`; None where it is. Both ends of the band are within it.

    table: of the same card, see `table_price_for`; without one only the age is judged.
    """
    age = now - point.as_of
    if age > OLDEST:
        return f"stale: said {age.days} days ago, on {point.as_of:%Y-%m-%d}; prices of {OLDEST.days} days are used"
    if age < -_CLOCKS_DIFFER:
        return f"said on {point.as_of:%Y-%m-%d %H:%M}Z, which is still to come"
    if table is None:
        return None
    lowest, highest = table.usd_per_gpu_hour * LOWEST, table.usd_per_gpu_hour * HIGHEST
    if lowest <= point.usd_per_gpu_hour <= highest:
        return None
    side = "below" if point.usd_per_gpu_hour < lowest else "above"
    return (
        f"{point.usd_per_gpu_hour:.4g} USD/GPU-h is {side} {lowest:.4g} to {highest:.4g}, which is {LOWEST:g} to"
        f" {HIGHEST:g} times the list price {table.usd_per_gpu_hour:.4g} ({table.provider_class}, {table.as_of})"
    )


def cautions(point: PricePoint, table: TablePrice | None) -> tuple[str, ...]:
    """What to say beside a price that is used."""
    if table is None:
        return (*point.cautions, "no list price of this card to hold it against")
    return point.cautions
