"""What markets asked for cards, as of when and since when known: added to, never changed, like facts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from app.reference.gpus import card_key
from app.reference.prices import moments_of

_LABEL = "market price"


@dataclass(frozen=True)
class MarketPrice:
    """usd_per_gpu_hour: None ends what the market asked before. count: the offers that it rests on."""

    gpu_name: str
    provider: str
    market: str
    usd_per_gpu_hour: float | None
    count: int
    as_of: datetime
    known_at: datetime

    @property
    def key(self) -> tuple[str, str]:
        return self.provider, self.market

    @property
    def label(self) -> str:
        offers = "1 offer" if self.count == 1 else f"{self.count} offers"
        return f"{_LABEL}, {self.provider} {self.market}, {self.as_of:%Y-%m-%d} ({offers})"


class MarketPrices:
    """By card and market."""

    def __init__(self, prices: Iterable[MarketPrice] = ()) -> None:
        found: dict[str, dict[tuple[str, str], list[MarketPrice]]] = {}
        for price in sorted(prices, key=attrgetter("as_of", "known_at")):
            found.setdefault(card_key(price.gpu_name), {}).setdefault(price.key, []).append(price)
        self._series = found
        self._moments: dict[int, frozenset[datetime]] = {}

    def of(self, card: str, moment: datetime) -> Iterator[MarketPrice]:
        """Of each market the last price not newer than `moment`, whatever its age; none where it was ended."""
        for series in self._series.get(card_key(card), {}).values():
            position = bisect_right(series, moment, key=attrgetter("as_of")) - 1
            if position >= 0 and series[position].usd_per_gpu_hour is not None:
                yield series[position]

    def moments(self, max_age_days: int) -> frozenset[datetime]:
        """When a price of any card begins or ends to count."""
        if max_age_days not in self._moments:
            every = (series for by_market in self._series.values() for series in by_market.values())
            starts = ((price.as_of for price in series) for series in every)
            self._moments[max_age_days] = frozenset(
                moment for one in starts for moment in moments_of(one, max_age_days)
            )
        return self._moments[max_age_days]


def joined_labels(sources: Iterable[str]) -> list[str]:
    """Where prices are from, in order; those of one market told in one: a market says another price many times a month.

    E.g. "market price, vast on_demand, 2026-11-02 to 2026-12-01 (31 prices)".
    """
    alike: dict[str, list[str]] = {}
    for source in set(sources):
        market = source.rpartition(", ")[0] if source.startswith(f"{_LABEL}, ") else source
        alike.setdefault(market, []).append(source)
    return sorted(_joined(market, labels) for market, labels in alike.items())


def _joined(market: str, labels: list[str]) -> str:
    if len(labels) == 1:
        return labels[0]
    days = sorted(label.removeprefix(f"{market}, ").partition(" ")[0] for label in labels)
    return f"{market}, {days[0]} to {days[-1]} ({len(labels)} prices)"
