"""What one market of a price source asks, and how its believed prices get into the store."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from app.answers.market_prices import believed
from app.config import Config
from app.facts.market_prices import MarketPrice
from app.hub.polling import fault_of_ours
from app.price_settings import PriceSettings, PriceSource
from app.store.database import Store
from app.store.market_prices import append_market_prices
from app.store.source_states import PriceState, read_price_states, write_state
from collectors.http.client import Http
from collectors.http.problem import SourceProblem
from collectors.price.provider import PriceAnswer, PriceProvider

log = logging.getLogger("wattmix.prices")


class PriceFeed:
    """added, answers, failures: counted since it was made."""

    def __init__(
        self, limits: PriceSettings, settings: PriceSource, provider: PriceProvider, state: PriceState
    ) -> None:
        self._limits = limits
        self.settings = settings
        self.provider = provider
        self.state = state
        self.added = self.answers = self.failures = 0

    def ask(self, now: datetime) -> PriceAnswer | SourceProblem:
        """Never longer than the bounds of its HTTP client allow. An answer without a price of this market is none."""
        where = f"prices, {self.settings.market}"
        try:
            answer = self.provider.prices()
        except SourceProblem as problem:
            return problem
        except Exception as fault:
            return fault_of_ours(log, self.settings.provider, where, fault)
        if not any(point.market == self.settings.market for point in answer.points):
            what = f"the answer of {now:%Y-%m-%d %H:%M}Z holds no price of this market"
            return SourceProblem("empty", what, provider=self.settings.provider, where=where, advice=_NOTHING)
        return answer

    def record(
        self, store: Store, result: PriceAnswer | SourceProblem, now: datetime, retry_at: datetime | None
    ) -> None:
        """Put what is believed into the store, and how it went. retry_at: when it is asked again after a problem."""
        problem = result if isinstance(result, SourceProblem) else result.problem
        if isinstance(result, PriceAnswer):
            self._take(store, result, now)
        self.answers += problem is None
        self.failures += problem is not None
        self.state = self.state.after(problem, now, retry_at)
        write_state(store, self.state)

    def _take(self, store: Store, answer: PriceAnswer, now: datetime) -> None:
        provider, market = self.settings.key
        used, refused = believed((point for point in answer.points if point.market == market), now)
        prices = [
            MarketPrice(card, provider, market, point.usd_per_gpu_hour, point.count, point.as_of, known_at=now)
            for card, point in used.items()
        ]
        self.added += append_market_prices(store, prices, self._limits.confirmed_after)
        self.state = replace(self.state, refused=tuple(refused))


_NOTHING = "another market of this provider may have prices; it is asked again later"


def price_feeds(config: Config, store: Store, http: Http) -> list[PriceFeed]:
    """The feeds of wattmix.toml, in its order."""
    states = read_price_states(store)
    return [
        PriceFeed(config.prices, one, one.make(http), states.get(one.key, PriceState(*one.key)))
        for one in config.prices.source
    ]
