"""Reads the engines of machines without an agent, and sends what it sees to this very hub, as an agent would.

Spool, wire and ledger are those of an agent, so that every token counts once whatever is killed when. There is one
batch per node; the counters' state goes into the spool with the batch of their node.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from app import __version__
from app.config import Config, ScrapedEngine
from app.errors import StoreError
from collectors.assembly import UNNUMBERED, placed
from collectors.engine.drain import EngineDrain
from collectors.engine.meter import EngineMeter
from collectors.outbox import Outbox
from collectors.push import Pusher
from collectors.samples import Batch, Node
from collectors.spool import DEFAULT_MAX_AGE_S, Spool
from collectors.spool_file import SpoolError
from collectors.timeline import Timeline

log = logging.getLogger("wattmix.scraper")

AGENT = "hub-scraper"
SCRAPE_EVERY_S = 5.0
PUSH_EVERY_S = 10.0
FIRST_PUSH_S = 2.0  # the engines are seen at once, even before there is anything to count
# All nodes' batches of ten seconds go out at once, and the hub is near.
BATCHES_PER_S = 200.0
_OF_RAW_DAYS = 0.9
_DAY_S = 86_400.0
_NO_AGENT = "no agent runs on this node: the hub reads its engines only"


class HubScraper:
    """`start` once the hub listens; `close` spools what was seen. Raises StoreError when the spool cannot be opened.

    engines: at least one. raw_days: how long the hub keeps raw samples; the spool keeps less. utc_us: the hub's clock.
    """

    def __init__(
        self,
        engines: Sequence[ScrapedEngine],
        store: Path,
        *,
        raw_days: float,
        scrape_every_s: float = SCRAPE_EVERY_S,
        push_every_s: float = PUSH_EVERY_S,
        utc_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._push_every_s = push_every_s
        self._utc_us = utc_us
        self._urls: dict[str, list[str]] = {}
        for engine in engines:
            self._urls.setdefault(engine.node_name, []).append(engine.url)
        max_age_s = min(DEFAULT_MAX_AGE_S, raw_days * _DAY_S * _OF_RAW_DAYS)
        try:
            self._spool = Spool(store.with_name(f"{store.name}.scrape.db"), max_age_s=max_age_s)
            states = [self._spool.state(f"engines {node}") or {} for node in self._urls]
            self._timelines = {node: Timeline(self._spool.state(f"timeline {node}")) for node in self._urls}
        except SpoolError as problem:
            raise StoreError(str(problem)) from None
        self._outbox = Outbox(self._spool)
        known = {url: kept for state in states for url, kept in state.items()}
        self._meter = EngineMeter(engines, scrape_every_s=scrape_every_s, state=known, utc_us=utc_us)
        self._pusher: Pusher | None = None
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()

    @classmethod
    def from_config(cls, config: Config, store: Path) -> HubScraper | None:
        """None when no [[engine]] is configured."""
        return cls(config.engine, store, raw_days=config.store.raw_days) if config.engine else None

    def start(self, address: str) -> None:
        """Begin to read and to send. address: of this hub, as this machine reaches it."""
        self._pusher = Pusher(self._spool, address, batches_per_s=BATCHES_PER_S)
        self._meter.start()
        for name, work in (("scraper", self._run), ("scraper's pusher", self._pusher.run)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Stop reading and spool the last rows; they are sent when the hub runs again."""
        self._stopping.set()
        if self._pusher is not None:
            self._pusher.stop(0.0)
            self._meter.stop()
            for thread in self._threads:
                thread.join(1.0)
        self._spool.close()

    def _run(self) -> None:
        running, wait_s = True, min(FIRST_PUSH_S, self._push_every_s)
        while running:
            running = not self._stopping.wait(wait_s)
            wait_s = self._push_every_s
            for node, urls in self._urls.items():
                try:
                    self._spool_batch(node, urls)
                except Exception as problem:  # whatever it is, the other nodes and the next round go on
                    log.error("what was read of %s is lost: %s: %s", node, type(problem).__name__, problem)
            if self._pusher is not None:
                self._pusher.wake()

    def _spool_batch(self, node: str, urls: Sequence[str]) -> None:
        drain = self._meter.drain(urls=urls)
        batch = placed(self._batch(node, drain), self._timelines[node])
        state = {f"engines {node}": drain.state, f"timeline {node}": self._timelines[node].state()}
        self._outbox.put(batch, state)

    def _batch(self, node: str, drain: EngineDrain) -> Batch:
        return Batch(
            agent=AGENT,
            epoch=UNNUMBERED,
            sequence=1,
            node=Node(id=node, agent_version=__version__, sent_at_us=self._utc_us()),
            engines=drain.engines,
            engine_samples=drain.samples,
            missing={"gpus": _NO_AGENT, **{name[:200]: why[:500] for name, why in drain.missing.items()}},
        )
