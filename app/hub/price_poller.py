"""Asks the markets of `[[prices.source]]` what GPUs cost, beside everything else."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from app.config import Config
from app.hub.polling import Poller, Task
from app.hub.price_feed import PriceFeed, price_feeds
from app.store.database import Store
from app.store.market_prices import end_market_prices
from app.store.price_states import write_price_state
from collectors.http.client import Http
from collectors.price.provider import PriceAnswer


class PricePoller(Poller):
    """It asks at once, and then every poll_s. http: what asks the sources, one for all: an answer has every market."""

    def __init__(
        self,
        store: Store,
        config: Config,
        http: Http | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.feeds = price_feeds(config, store, http or Http())
        for feed in self.feeds:
            write_price_state(store, feed.state)
        super().__init__("prices", [_task(store, feed, monotonic()) for feed in self.feeds], now, monotonic)

    @classmethod
    def from_config(cls, config: Config, store: Store) -> PricePoller | None:
        """None when no source is configured. What markets told that are not asked any more counts until now."""
        end_market_prices(store, {source.key for source in config.prices.source}, datetime.now(UTC))
        return cls(store, config) if config.prices.source else None


def _task(store: Store, feed: PriceFeed, now_s: float) -> Task[PriceAnswer]:
    return Task(
        f"prices of {feed.settings.provider}, {feed.settings.market}",
        feed.settings.poll_s,
        now_s,
        ask=feed.ask,
        record=lambda result, now, retry_at: feed.record(store, result, now, retry_at),
    )
