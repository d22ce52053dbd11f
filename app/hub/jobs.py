"""The hub's background work: rollups every few seconds, retention every hour."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from app import units
from app.answers.facts import place_nodes
from app.config import Config
from app.store.database import Store
from app.store.grid_retention import delete_superseded_forecasts
from app.store.retention import DAY_US, delete_expired, raw_days_within, raw_horizon_us
from app.store.rollup import roll_up, waiting_minutes
from app.store.writer import SampleWriter

log = logging.getLogger("wattmix.jobs")

ROLLUP_EVERY_S = 5.0
RETENTION_EVERY_S = 3600.0


class Jobs:
    """One thread that runs what is due. A job that fails is logged and counted, and tried again when it is next due."""

    def __init__(
        self,
        store: Store,
        writer: SampleWriter,
        config: Config,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._store = store
        self._writer = writer
        self._config = config
        self._settings = config.store
        self._now_us = now_us
        self._stop = threading.Event()
        self.errors = 0
        self.waiting = 0
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def roll_up_all(self) -> None:
        """Roll up what is due, in transactions short enough that ingest goes on between them; then place new nodes."""
        now_us = self._now_us()
        oldest_raw_us = self._writer.oldest_us(now_us)
        oldest_minute_us = now_us - int(self._settings.minute_days * DAY_US)
        while not self._stop.is_set() and roll_up(
            self._store, now_us, oldest_raw_us=oldest_raw_us, oldest_minute_us=oldest_minute_us
        ):
            pass
        self.waiting = waiting_minutes(self._store)
        place_nodes(self._store, self._config, datetime.fromtimestamp(now_us / 1e6, UTC))

    def delete_expired(self) -> None:
        """Retention; what waits for its rollup is rolled up first."""
        self.roll_up_all()
        settings = self._settings
        self._writer.raw_days = raw_days_within(self._store, raw_days=settings.raw_days, max_gb=settings.raw_max_gb)
        delete_expired(self._store, self._now_us(), raw_days=self._writer.raw_days, minute_days=settings.minute_days)
        self._writer.raw_horizon_us = raw_horizon_us(self._store)
        oldest_forecast_us = self._now_us() - int(settings.forecast_days * DAY_US)
        delete_superseded_forecasts(self._store, units.moment_of_us(oldest_forecast_us))

    def _run(self) -> None:
        due = {self.roll_up_all: 0.0, self.delete_expired: time.monotonic() + RETENTION_EVERY_S}
        every = {self.roll_up_all: ROLLUP_EVERY_S, self.delete_expired: RETENTION_EVERY_S}
        while not self._stop.wait(1.0):
            for job in [job for job, at in due.items() if time.monotonic() >= at]:
                self._attempt(job)
                due[job] = time.monotonic() + every[job]

    def _attempt(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as problem:  # whatever it is, the other jobs go on, and this one is tried again
            self.errors += 1
            log.error("%s failed: %s", job.__name__, problem)
