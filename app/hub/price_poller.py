"""Asks the markets of `[[prices.source]]` what GPUs cost, beside everything else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from app.config import Config
from app.hub.polling import Poller, Task
from app.hub.price_feed import PriceFeed, price_feeds
from app.store.database import Store
from app.store.market_prices import end_market_prices
from app.store.source_states import write_state
from collectors.http.client import Http
from collectors.price.provider import PriceAnswer


class PricePoller(Poller):
    """It asks at once, and then every poll_s. One HTTP client for all: an answer has every market of its provider."""

    name = "prices"

    def _begin(self, store: Store, config: Config, http: Http, now_s: float) -> Iterator[Task[PriceAnswer]]:
        self.feeds = price_feeds(config, store, http)
        for feed in self.feeds:
            write_state(store, feed.state)
            yield _task(store, feed, now_s)

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
