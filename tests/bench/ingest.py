"""Readings per second through HTTP, node-sized and in backfill, beside VictoriaMetrics on the same readings."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb

from tests.bench.bodies import Body, Noise, body
from tests.bench.clients import OURS, VICTORIA, send_all
from tests.bench.report import Line
from tests.bench.servers import hub, victoria_metrics

NODES, PUSHES = 200, 30
BACKFILL_NODES, BACKFILL_PUSHES, BACKFILL_S = 12, 6, 900


def node_sized() -> list[Line]:
    """Ten seconds of one node a batch, 200 agents at once."""
    begin_us = int(time.time() * 1e6) - PUSHES * 10_000_000
    noise = Noise()
    queues = [
        [body(noise.batch(f"n{node:04}", push + 1, begin_us + push * 10_000_000, 10), with_peer=True)
         for push in range(PUSHES)]
        for node in range(NODES)
    ]  # fmt: skip
    return _compare("node-sized batches", queues)


def backfill() -> list[Line]:
    """A quarter of an hour of one node a batch."""
    begin_us = int(time.time() * 1e6) - BACKFILL_PUSHES * BACKFILL_S * 1_000_000
    noise = Noise()
    queues = [
        [_quarter(noise, f"n{node:04}", push, begin_us) for push in range(BACKFILL_PUSHES)]
        for node in range(BACKFILL_NODES)
    ]  # fmt: skip
    return _compare("backfill batches", queues)


def _quarter(noise: Noise, node: str, push: int, begin_us: int) -> Body:
    batch = noise.batch(node, push + 1, begin_us + push * BACKFILL_S * 1_000_000, BACKFILL_S)
    return body(batch, with_peer=True)


def _compare(name: str, queues: list[list[Body]]) -> list[Line]:
    readings = sum(one.readings for queue in queues for one in queue)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with hub(folder) as (port, _):
            ours = send_all(port, OURS, [[one.ours for one in queue] for queue in queues])
        size = _checkpointed_bytes(folder / "bench.duckdb")
        with victoria_metrics(folder) as peer:
            theirs = send_all(peer[0], VICTORIA, [[one.theirs for one in queue] for queue in queues]) if peer else None
    rate = readings / ours.seconds / 1e6
    peer_rate = readings / theirs.seconds / 1e6 if theirs else None
    target = 0.5 if name.startswith("node") else 2.0
    note = f"p99 {ours.quantile_ms(0.99):.0f} ms, {ours.failures} failures, {readings / 1e6:.1f} M readings"
    return [
        Line(f"ingest, {name}", rate, "M readings/s", f">= {target:g}", peer_rate, "VictoriaMetrics", note),
        Line(
            f"disk, {name}", size / readings, "bytes/reading", "<= 2", None, "", f"{size / 1e6:.0f} MB after checkpoint"
        ),
    ]


def _checkpointed_bytes(db: Path) -> int:
    with duckdb.connect(str(db)) as connection:
        connection.execute("CHECKPOINT")
    return db.stat().st_size
