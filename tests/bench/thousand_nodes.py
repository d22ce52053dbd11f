"""A thousand nodes of eight GPUs, one-second samples pushed every ten seconds, held for two minutes."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import duckdb

from tests.bench.bodies import Noise, body
from tests.bench.clients import OURS, Outcome
from tests.bench.report import Line
from tests.bench.servers import cpu_s, hub, memory_mb

NODES, PUSH_EVERY_S, PUSHES = 1_000, 10, 12


def hold() -> list[Line]:
    noise = Noise()
    begin_us = int(time.time() * 1e6) - PUSHES * PUSH_EVERY_S * 1_000_000
    queues = [
        [body(noise.batch(f"n{node:04}", push + 1, begin_us + push * 10_000_000, PUSH_EVERY_S), with_peer=False)
         for push in range(PUSHES)]
        for node in range(NODES)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with hub(folder) as (port, pid):
            cpu_before, began = cpu_s(pid), time.monotonic()
            outcome = asyncio.run(_push_all(port, [[one.ours for one in queue] for queue in queues]))
            wall_s, used_s, memory = time.monotonic() - began, cpu_s(pid) - cpu_before, memory_mb(pid)
        with duckdb.connect(str(folder / "bench.duckdb")) as connection:
            rows = connection.execute("SELECT count(*) FROM gpu_sample").fetchone()
    expected = NODES * PUSHES * PUSH_EVERY_S * 8
    lost = expected - (rows[0] if rows else 0)
    return [
        Line("1,000 nodes x 8 GPUs, hub", 50 * used_s / wall_s, "% of both cores", "< 50", note=f"{memory:.0f} MB"),
        Line("1,000 nodes x 8 GPUs, p99 acknowledgement", outcome.quantile_ms(0.99), "ms", "< 1000",
             note=f"{outcome.failures} failures, {lost} of {expected:,} rows lost, held {wall_s:.0f} s"),
    ]  # fmt: skip


async def _push_all(port: int, queues: list[list[bytes]]) -> Outcome:
    outcome = Outcome()
    began = time.monotonic()

    async def node(number: int) -> None:
        for push, one in enumerate(queues[number]):
            due = began + (push + number / NODES) * PUSH_EVERY_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await _post(port, one, outcome)

    await asyncio.gather(*(node(number) for number in range(NODES)))
    return outcome


async def _post(port: int, one: bytes, outcome: Outcome) -> None:
    sent = time.perf_counter()
    head = "".join(f"{name}: {value}\r\n" for name, value in OURS[1].items())
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"POST {OURS[0]} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{head}"
        f"Content-Length: {len(one)}\r\n\r\n".encode()
        + one
    )
    answer = await reader.read()
    writer.close()
    outcome.latencies_s.append(time.perf_counter() - sent)
    outcome.failures += not answer.startswith(b"HTTP/1.1 200")
