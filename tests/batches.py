"""Batches for tests of the hub and its store: each row says only what the test is about, the rest is not measured."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from app.store.database import Store
from app.store.writer import Acknowledgement, SampleWriter
from collectors.samples import (
    AgentSamples,
    Batch,
    Engine,
    EngineSamples,
    Gpu,
    GpuSamples,
    HostSamples,
    Node,
    Processes,
)

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
# 2026-02-03 04:00 UTC, the start of an hour.
T0 = int(datetime(2026, 2, 3, 4, tzinfo=UTC).timestamp()) * SECOND
EPOCH = "0123456789abcdef" * 2
OTHER_EPOCH = "fedcba9876543210" * 2
CARD = "NVIDIA H100 PCIe"
MODEL = "org/model-14b"
URL = "http://127.0.0.1:8000/metrics"
# Upper bounds of the latency buckets of test engines: 10, 50 and 100 ms.
BOUNDS_US = [10_000, 50_000, 100_000]
DEADLINE_S = 20.0

Row = Mapping[str, Any]
_AGENT = {
    "cpu_ms": 90, "memory_bytes": 60_000_000, "tick_p99_us": 2_100, "spool_bytes": 0, "spool_batches": 0,
    "dropped_batches": 0, "rejected_batches": 0, "rejected_readings": 0, "child_restarts": 0,
}  # fmt: skip


def at(us: int) -> datetime:
    return datetime.fromtimestamp(us / SECOND, UTC)


def columns(table: type[Any], rows: Iterable[Row], **defaults: Any) -> dict[str, list[Any]]:
    rows = list(rows)
    unknown = {name for row in rows for name in row} - set(table.model_fields)
    assert not unknown, unknown
    return {name: [row.get(name, defaults.get(name)) for row in rows] for name in table.model_fields}


def gpu_table(rows: Iterable[Row]) -> GpuSamples:
    """Rows of GPU 0 and one second by the counter, where a row does not say otherwise."""
    return GpuSamples(**columns(GpuSamples, rows, gpu=0, dt_us=SECOND, energy_method="counter"))


def seconds(first_us: int, count: int, **values: Any) -> list[Row]:
    """A row a second: the first covers (first, first + 1 s]."""
    return [{"t_us": first_us + (number + 1) * SECOND, "energy_mj": 300_000, **values} for number in range(count)]


def uuid_of(node: str, index: int = 0) -> str:
    return f"{node}-{index}".lower()


def gpu(node: str = "node-7", index: int = 0, **values: Any) -> Gpu:
    known = {"uuid": uuid_of(node, index), "name": CARD, "index": index, "energy_method": "counter"}
    return Gpu(**{**known, **values})


def engine(**values: Any) -> Engine:
    """A vLLM engine on GPU 0 of node-7, with the same bounds for all latencies."""
    bounds = {f"{name}_bounds_us": BOUNDS_US for name in ("ttft", "itl", "e2e")}
    known = {"url": URL, "model": MODEL, "kind": "vllm", "gpus": [uuid_of("node-7")], "gpus_source": "config"}
    return Engine(**{**known, **bounds, **values})


def engine_table(rows: Iterable[Row]) -> EngineSamples:
    """Rows of engine 0 and five seconds, where a row does not say otherwise."""
    return EngineSamples(**columns(EngineSamples, rows, engine=0, dt_us=5 * SECOND))


def batch(
    sequence: int = 1,
    *,
    node: str = "node-7",
    agent: str | None = None,
    epoch: str = EPOCH,
    rows: Sequence[Row] | None = None,
    host: Sequence[Row] = (),
    processes: Sequence[Row] = (),
    own: Row | None = None,
    gpus: Sequence[Gpu] | None = None,
    engines: Sequence[Engine] | None = None,
    engine_rows: Sequence[Row] = (),
    sent_at_us: int | None = None,
    missing: Mapping[str, str] | None = None,
    **said: Any,
) -> Batch:
    """A batch of one GPU; without `rows` ten seconds of 300 W from T0 + 10 s x (sequence - 1) on.

    own: counts of the agent itself, beside usual ones. said: fields of the node.
    """
    if rows is None:
        rows = seconds(T0 + (sequence - 1) * 10 * SECOND, 10)
    times = [row["t_us"] for row in (*rows, *host, *engine_rows)]
    sent = sent_at_us if sent_at_us is not None else max(times, default=T0)
    return Batch(
        agent=agent or node,
        epoch=epoch,
        sequence=sequence,
        node=Node(**{"id": node, "agent_version": "0.1.0", "sent_at_us": sent, **said}),
        gpus=list(gpus) if gpus is not None else [gpu(node)],
        engines=list(engines) if engines is not None else [engine()] if engine_rows else [],
        gpu_samples=gpu_table(rows) if rows else None,
        engine_samples=engine_table(engine_rows) if engine_rows else None,
        host_samples=HostSamples(**columns(HostSamples, host, dt_us=SECOND)) if host else None,
        processes=Processes(**columns(Processes, processes, gpu=0)) if processes else None,
        agent_samples=AgentSamples(**columns(AgentSamples, [{"t_us": sent, **_AGENT, **own}])) if own else None,
        missing=dict(missing or {}),
    )


class Clock:
    """The hub's clock, moved by hand."""

    def __init__(self, us: int = T0 + HOUR) -> None:
        self.us = us

    def __call__(self) -> datetime:
        return at(self.us)


def put(writer: SampleWriter, sent: Batch) -> Acknowledgement:
    """The acknowledgement of a batch, or its refusal raised."""
    return writer.submit(sent, sent.readings).result(DEADLINE_S)


@contextmanager
def writing(store: Store, clock: Clock | None = None, *, raw_days: float = 30.0) -> Iterator[SampleWriter]:
    writer = SampleWriter(store, raw_days=raw_days, now=clock or Clock())
    try:
        yield writer
    finally:
        writer.close()


@contextmanager
def held_up(store: Store, writer: SampleWriter) -> Iterator[None]:
    """The writer waits for the store, a batch of another node in its hand: what is queued meanwhile is one group."""
    with store.transaction():
        plug = batch(node="plug")
        writer.submit(plug, 0)
        wait_until(lambda: writer.queued == 0, "the writer to take the plug")
        yield


def wait_until(there: Any, what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S:g} s for {what}"
        time.sleep(0.005)


def count(store: Store, table: str) -> int:
    return int(store.query(f"SELECT count(*) AS n FROM {table}")["n"][0])
