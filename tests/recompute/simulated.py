"""Simulated nodes in a real store: their batches through the writer and the rollups, and the same rows as tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from app.simulator.batches import Rows, batch, live_rows, minute_rows, spans
from app.simulator.fleet import SimulatedNode, World
from app.store.database import Store
from app.store.rollup import roll_up
from collectors.samples import Batch
from tests.batches import HOUR, SECOND, Clock, put, writing

LONGEST_BATCH_S = 86_400


class GpuRow(NamedTuple):
    gpu: str
    node: str
    card: str
    start_us: int
    end_us: int
    energy_mj: int


class EngineRow(NamedTuple):
    """finished, failed: requests; ttft: counts by latency bucket."""

    url: str
    node: str
    model: str
    gpus: tuple[str, ...]
    start_us: int
    end_us: int
    running: int
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    finished: int
    failed: int
    ttft: tuple[int, ...]


class Sent(NamedTuple):
    gpus: list[GpuRow]
    engines: list[EngineRow]
    ttft_bounds_us: tuple[int, ...]


def fill(
    store: Store, world: World, nodes: Iterable[SimulatedNode], start_s: int, end_s: int, live: range = range(0)
) -> Sent:
    """Put what the nodes send of (start, end] into the store and roll it up; the rows that were sent.

    live: seconds of it in which rows come every second and every five, not every minute.
    """
    sent = Sent([], [], ())
    with writing(store, Clock(end_s * SECOND)) as writer:
        for node in nodes:
            for made in _batches(world, node, start_s, end_s, live):
                assert put(writer, made).late_rows == 0
                sent = _added(sent, made)
    while roll_up(store, end_s * SECOND + 2 * HOUR, oldest_raw_us=0, oldest_minute_us=0):
        pass
    return sent


def _batches(world: World, node: SimulatedNode, start_s: int, end_s: int, live: range) -> Iterator[Batch]:
    acts: list[tuple[int, int, Rows]] = [(start_s, end_s, minute_rows)]
    if live:
        acts = [(start_s, live.start, minute_rows), (live.start, live.stop, live_rows), (live.stop, end_s, minute_rows)]
    sequence = 0
    for first_s, last_s, rows in acts:
        for span in spans(node, first_s, last_s, LONGEST_BATCH_S):
            sequence += 1
            made = batch(
                world, node, span, rows, epoch="0" * 32, sequence=sequence, sent_at_us=span.end_s * SECOND
            )  # fmt: skip
            if made is not None:
                yield made


def _added(sent: Sent, made: Batch) -> Sent:
    gpus, engines = made.gpus, made.engines
    for row in _rows(made.gpu_samples, ("gpu", "t_us", "dt_us", "energy_mj")):
        place, t_us, dt_us, energy_mj = row
        gpu = gpus[place]
        sent.gpus.append(GpuRow(gpu.uuid, made.agent, gpu.name, t_us - dt_us, t_us, energy_mj))
    for row in _rows(made.engine_samples, _ENGINE_COLUMNS):
        place, t_us, dt_us, running, prompt, cached, generated, stop, length, aborted, failed, rejected, ttft = row
        engine = engines[place]
        sent.engines.append(
            EngineRow(engine.url, made.agent, str(engine.model), tuple(engine.gpus or ()), t_us - dt_us, t_us, running,
                      prompt, cached, generated, stop + length, aborted + failed + rejected, tuple(ttft))
        )  # fmt: skip
    return sent._replace(ttft_bounds_us=tuple(engines[0].ttft_bounds_us)) if engines else sent


_ENGINE_COLUMNS = (
    "engine", "t_us", "dt_us", "running", "prompt_tokens", "cached_tokens", "generated_tokens", "finished_stop",
    "finished_length", "finished_aborted", "finished_failed", "rejected", "ttft_buckets",
)  # fmt: skip


def _rows(table: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return iter(()) if table is None else zip(*(getattr(table, name) for name in columns), strict=True)
