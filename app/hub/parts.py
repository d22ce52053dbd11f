"""A hub's parts put together over an open store: writer, background jobs, tokens and routes."""

from __future__ import annotations

from app.backend import LocalBackend
from app.config import Config
from app.hub.api import Api
from app.hub.auth import Gate
from app.hub.ingest import Ingest
from app.hub.jobs import Jobs
from app.hub.metrics import HubMetrics
from app.store.database import Store
from app.store.writer import SampleWriter


class HubParts:
    """`close` ends the threads and commits what is queued; the store stays open."""

    def __init__(self, store: Store, config: Config) -> None:
        self.backend = LocalBackend(store, config)
        self.writer = SampleWriter(store, raw_days=config.store.raw_days)
        self.jobs = Jobs(store, self.writer, config)
        self.gate = Gate(store)
        self.backend.tokens_changed = self.gate.refresh
        self.api = Api(self.backend, Ingest(self.writer, self.gate), HubMetrics(self.writer, self.jobs), self.gate)

    def close(self) -> None:
        self.jobs.close()
        self.writer.close()
