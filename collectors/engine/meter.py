"""The engine collector as the agent sees it: every page on its own schedule, and what was seen since the last drain."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from collectors.engine.discovery import Discovery, Sighting
from collectors.engine.drain import EngineDrain, Page, drain_of
from collectors.engine.listeners import PROC
from collectors.engine.placer import Placer
from collectors.engine.rows import Row
from collectors.engine.schedule import Schedule
from collectors.engine.scrape import BOUNDS, Bounds
from collectors.engine.server import EngineServer, Look, Moment
from collectors.engine.targets import EngineTarget
from collectors.engine.watch import LISTED_US, Watch, last_seen_us
from collectors.json_logs import log
from collectors.samples import Gpu, Processes

__all__ = ["EngineDrain", "EngineMeter"]

LOOK_AROUND_EVERY_S = 10.0
# Rows kept for an agent that does not fetch them; the oldest go first.
MOST_ROWS = 20_000
MOST_PAGES_KEPT = 1_000
KEPT_US = 366 * 86_400_000_000


class EngineMeter:
    """Reads engines' pages every `scrape_every_s` and, with `discovery`, finds those of this node.

    state: of an earlier meter's last drain, so that counts go on from exactly there. utc_us: the node's clock.
    bounds, proc: for tests. Thread-safe.
    """

    def __init__(
        self,
        targets: Sequence[EngineTarget],
        *,
        discovery: Discovery | None = None,
        scrape_every_s: float = 5.0,
        state: Mapping[str, Any] | None = None,
        utc_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        bounds: Bounds = BOUNDS,
        proc: Path = PROC,
    ) -> None:
        self._utc_us = utc_us
        self._bounds = bounds
        self._discovery = discovery
        self._lock = threading.Lock()
        self._schedule = Schedule(scrape_every_s, self._take)
        self._stopping = threading.Event()
        self._placer = Placer(proc)
        self._sighting: Sighting | None = None
        self._rows: deque[Row] = deque()
        self._dropped_rows = 0
        # By URL, up to the last drain; also of pages that are not watched now.
        self._state: dict[str, Any] = dict(state or {})
        self._watches: dict[str, Watch] = {}
        self._fronts: dict[str, str] = {}  # URL -> that of the engine whose page it only passes on
        for target in targets:
            self._watch(target, found=False)

    @property
    def is_settled(self) -> bool:
        """Whether every page was looked at, and the node was once searched for others."""
        with self._lock:
            looked_around = self._discovery is None or self._sighting is not None
            return looked_around and all(watch.was_looked_at for watch in self._watches.values())

    def start(self) -> None:
        """Start reading; returns at once."""
        self._schedule.start()
        if self._discovery is not None:
            threading.Thread(target=self._look_around, args=(self._discovery,), name="discovery", daemon=True).start()

    def stop(self) -> None:
        """End reading; what was seen since the last drain is left to the next meter's first look."""
        self._stopping.set()
        self._schedule.stop()

    def drain(
        self, gpus: Sequence[Gpu] = (), processes: Processes | None = None, urls: Collection[str] | None = None
    ) -> EngineDrain:
        """Everything since the last drain, complete and ready for a batch; of `urls` only, if they are given.

        gpus, processes: of the same batch: `processes` points into `gpus`.
        """
        with self._lock:
            now_us = self._utc_us()
            self._placer.note(gpus, processes, time.monotonic())
            watches = [watch for url, watch in self._watches.items() if urls is None or url in urls]
            pages = [Page(watch.target, watch.status, watch.engines(now_us)) for watch in watches]
            drained = {watch.target.url for watch in watches}
            rows = [row for row in self._rows if row.url in drained]
            self._rows = deque(row for row in self._rows if row.url not in drained)
            self._state |= {watch.target.url: watch.state() for watch in watches}
            self._let_go(now_us)
            state = {url: kept for url, kept in self._state.items() if urls is None or url in urls}
            return drain_of(pages, rows, self._placer, self._reasons(), state)

    def state(self) -> dict[str, Any]:
        """Up to where the drained rows go, JSON-able: for `state` of the next meter."""
        with self._lock:
            return dict(self._state)

    def _watch(self, target: EngineTarget, *, found: bool) -> None:
        watch = Watch(target, self._state.get(target.url), found=found)
        server = EngineServer(target, kind=watch.kind, model=watch.model, now=self._now, bounds=self._bounds)
        self._watches[target.url] = watch
        self._schedule.add(target.url, server)

    def _now(self) -> Moment:
        return Moment(self._utc_us(), time.monotonic())

    def _take(self, url: str, look: Look) -> None:
        with self._lock:
            watch = self._watches.get(url)
            if watch is None:
                return
            rows = [Row(url, interval) for interval in watch.take(look)]
            behind = self._behind(watch)
            if behind is not None:
                log(logging.WARNING, "an engine's page comes through a proxy as well", url=url, engine=behind)
                self._fronts[url] = behind
                self._forget(url)
                return
            self._rows.extend(rows)
            while len(self._rows) > MOST_ROWS:
                self._rows.popleft()
                self._dropped_rows += 1

    def _behind(self, watch: Watch) -> str | None:
        """The page that a found one only passes on, as a proxy on the same node does: it must not count twice."""
        if not watch.found or watch.started_us is None:
            return None
        for url, other in self._watches.items():
            same = other.started_us == watch.started_us and other.shown == watch.shown and other.kind == watch.kind
            if url != watch.target.url and same and self._placer.is_front(watch.target.url, url, watch.started_us):
                return url
        return None

    def _look_around(self, discovery: Discovery) -> None:
        while True:
            try:
                sighting = discovery.look(time.monotonic())
            except Exception as problem:  # whatever it is, the known engines are read and the next look may do
                told = f"{type(problem).__name__}: {problem}"
                log(logging.ERROR, "looking for engines failed", error=told)
                sighting = Sighting(reason=f"looking for engines failed: {told}")
            self._sight(sighting)
            if self._stopping.wait(LOOK_AROUND_EVERY_S):
                return

    def _sight(self, sighting: Sighting) -> None:
        with self._lock:
            self._sighting = sighting
            self._placer.pids = sighting.pids
            for target in sighting.found:
                if target.url not in self._watches and self._fronts.get(target.url) not in self._watches:
                    log(logging.INFO, "an engine was found", url=target.url, kind=target.kind)
                    self._watch(target, found=True)

    def _let_go(self, now_us: int) -> None:
        """Stop watching found pages that are gone for long; forget the state of those that are gone for a year."""
        listening = {target.url for target in self._sighting.found} if self._sighting else set()
        self._fronts = {front: url for front, url in self._fronts.items() if front in listening}
        for url, watch in list(self._watches.items()):
            if watch.found and url not in listening and now_us - watch.looked_us >= LISTED_US:
                self._schedule.remove(url)
                del self._watches[url]
        dormant = sorted((last_seen_us(kept), url) for url, kept in self._state.items() if url not in self._watches)
        for number, (seen_us, url) in enumerate(reversed(dormant)):
            if number >= MOST_PAGES_KEPT or now_us - seen_us > KEPT_US:
                del self._state[url]

    def _forget(self, url: str) -> None:
        self._schedule.remove(url)
        del self._watches[url]
        self._state.pop(url, None)
        self._rows = deque(row for row in self._rows if row.url != url)

    def _reasons(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        if self._sighting is not None and self._sighting.reason is not None:
            reasons["engines"] = self._sighting.reason
        if self._dropped_rows:
            reasons["engine_samples"] = f"{self._dropped_rows} rows waited too long for a batch and were dropped"
        for front, url in self._fronts.items():
            reasons[f"engine at {front}"] = f"not counted: it passes on the page of {url}"
        return reasons
