"""Metrics pages served one after another by a real HTTP server, and what becomes of them on the way to the rollups."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.accounting.latency import Bucket
from app.store.database import Store
from collectors.engine.meter import EngineMeter
from collectors.engine.targets import EngineTarget
from collectors.samples import LATENCY_METRICS, Batch, Node, decode, encode
from tests.batches import HOUR, MINUTE, Clock, put, writing
from tests.collectors.engine.servers import Server, server
from tests.store.test_rollup import roll_up_all

SCRAPE_EVERY_S = 0.02
DEADLINE_S = 10.0


@dataclass
class Replay:
    """A store that is filled by replays. moment_us: the agent's clock, which stands at the page that is shown."""

    store: Store
    batches: list[Batch] = field(default_factory=list)
    moment_us: int = 0

    def show(
        self, pages: Iterable[tuple[float, str | None]], *, batch_every: int = 1, restart_agent_at: Iterable[int] = ()
    ) -> None:
        """Scrape pages one after another, each at its time in unix seconds; None: the server gives no answer.

        A batch is made after every `batch_every` pages, and at the end.
        """
        pages, moves = list(pages), set(restart_agent_at)
        now_us = round(pages[-1][0] * 1e6) + MINUTE
        with server(text="") as engine, writing(self.store, Clock(now_us), raw_days=3) as taking:
            target = EngineTarget(url=engine.address, kind="vllm", gpus=("5f2b3c1d-0000",))
            meter = self._meter(target, None)
            for number, (moment_s, page) in enumerate(pages, 1):
                self._turn(engine, page, round(moment_s * 1e6))
                if number % batch_every == 0:
                    put(taking, self._batch(meter))
                if number in moves:  # a kill: what was scraped since the last batch is scraped again by the next one
                    state = meter.state()
                    meter.stop()
                    meter = self._meter(target, state)
            put(taking, self._batch(meter))
            meter.stop()
        roll_up_all(self.store, now_us + HOUR)

    def _clock_us(self) -> int:
        self.moment_us += 1
        return self.moment_us

    def _meter(self, target: EngineTarget, state: dict[str, object] | None) -> EngineMeter:
        meter = EngineMeter([target], scrape_every_s=SCRAPE_EVERY_S, state=state, utc_us=self._clock_us)
        meter.start()
        return meter

    def _turn(self, engine: Server, page: str | None, moment_us: int) -> None:
        engine.do = "ok" if page is not None else "cut"
        engine.bodies["/metrics"] = page or ""
        self.moment_us = moment_us
        seen = len(engine.requests)
        end = time.monotonic() + DEADLINE_S
        # The second request from now on began after the page was changed, and the third after it was answered.
        while len([path for path in engine.paths[seen:] if path == "/metrics"]) < 3:
            assert time.monotonic() < end, "the page was not scraped"
            time.sleep(0.002)

    def _batch(self, meter: EngineMeter) -> Batch:
        drain = meter.drain()
        node = Node(id="node-7", agent_version="test", sent_at_us=self.moment_us)
        batch = Batch(agent="node-7", epoch="0" * 32, sequence=len(self.batches) + 1, node=node,
                      engines=drain.engines, engine_samples=drain.samples, missing=drain.missing)  # fmt: skip
        self.batches.append(decode(encode(batch), max_json_bytes=2**26))
        return self.batches[-1]

    def sums(self, *columns: str, table: str = "engine_minute") -> tuple[int | None, ...]:
        """Over all engines and all time."""
        sql = f"SELECT {', '.join(f'sum({column}) AS {column}' for column in columns)} FROM {table}"
        return tuple(None if value is None else int(value) for value in self.store.query(sql).row(0))

    def buckets(self, metric: str) -> list[Bucket]:
        sql = "SELECT lower_us, upper_us, n FROM engine_latency_minute WHERE metric = $1"
        return [
            Bucket(lower / 1e6, math.inf if upper is None else upper / 1e6, n)
            for lower, upper, n in self.store.query(sql, [LATENCY_METRICS.index(metric)]).iter_rows()
        ]

    def observed(self, metric: str) -> int:
        return sum(bucket.n for bucket in self.buckets(metric))

    def labels(self) -> list[str]:
        return self.store.query("SELECT label FROM engine ORDER BY label")["label"].to_list()
