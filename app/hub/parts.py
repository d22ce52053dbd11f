"""A hub's parts put together over an open store: writer, background jobs, scraper, pollers, tokens and routes."""

from __future__ import annotations

from datetime import UTC, datetime

from app.answers.facts import take_over
from app.backend.local import LocalBackend
from app.config import Config
from app.hub.api import Api
from app.hub.auth import Gate
from app.hub.grid_poller import GridPoller
from app.hub.ingest import Ingest
from app.hub.jobs import Jobs
from app.hub.metrics import HubMetrics
from app.hub.price_poller import PricePoller
from app.hub.scheduler import Scheduler
from app.hub.scraper import HubScraper
from app.store.database import Store
from app.store.writer import SampleWriter


class HubParts:
    """`close` ends the threads and commits what is queued; the store stays open."""

    def __init__(self, store: Store, config: Config) -> None:
        take_over(store, config, datetime.now(UTC))
        self.scraper = HubScraper.from_config(config, store.path)
        self.backend = LocalBackend(store, config)
        self.writer = SampleWriter(store, raw_days=config.store.raw_days)
        self.jobs = Jobs(store, self.writer, config)
        self.scheduler = Scheduler(store, config, self.backend.account)
        self.grid = GridPoller.from_config(config, store)
        self.prices = PricePoller.from_config(config, store)
        self.gate = Gate(store)
        self.backend.tokens_changed = self.gate.refresh
        metrics = HubMetrics(self.writer, self.jobs, self.grid, self.prices)
        self.api = Api(self.backend, Ingest(self.writer, self.gate), metrics, self.gate)

    def on_listening(self, address: str) -> None:
        """The hub takes connections. address: as this machine reaches it."""
        if self.scraper is not None:
            self.scraper.start(address)

    def close(self) -> None:
        if self.scraper is not None:
            self.scraper.close()
        for poller in (self.grid, self.prices):
            if poller is not None:
                poller.close()
        self.scheduler.close()
        self.jobs.close()
        self.writer.close()
