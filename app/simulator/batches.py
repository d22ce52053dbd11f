"""Batches of a simulated node: spans of its time without a boot or a restart in them, and what is sent of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from app import __version__
from app.simulator.engine_rows import minute_engine_rows, slot_engine_rows
from app.simulator.fleet import Replica, SimulatedNode, World
from app.simulator.gpu_rows import minute_gpu_rows, second_gpu_rows
from app.simulator.latency import E2E_BOUNDS_S, ITL_BOUNDS_S, TTFT_BOUNDS_S, bounds_us
from collectors.samples import Batch, Engine, EngineSamples, Gpu, GpuSamples, Node

DRIVER_VERSION = "580.95.05"
ENGINE_VERSION = "0.32.0"
# What nothing has restarted has been running since then.
FIRST_BOOT_S = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
RESTARTING = "it does not answer: it is starting again"

Rows = Callable[[World, SimulatedNode, int, int], tuple[GpuSamples | None, EngineSamples | None]]


@dataclass(frozen=True)
class Span:
    """Seconds (start, end] of one node, between which neither it nor an engine on it began anew."""

    start_s: int
    end_s: int


def spans(node: SimulatedNode, start_s: int, end_s: int, longest_s: int) -> Iterator[Span]:
    """The spans of (start, end], none longer than `longest_s`."""
    events = [event for event in (node.away, *(replica.restart for replica in node.replicas)) if event is not None]
    edges = {begin for event in events for begin in event.begins_within(start_s, end_s)}
    edges |= {start_s, end_s, *range(start_s, end_s, longest_s)}
    ordered = sorted(edges)
    for begin_s, stop_s in pairwise(ordered):
        yield Span(begin_s, stop_s)


def minute_rows(
    world: World, node: SimulatedNode, start_s: int, end_s: int
) -> tuple[GpuSamples | None, EngineSamples | None]:
    """The past: a row a minute."""
    return minute_gpu_rows(world, node, start_s, end_s), minute_engine_rows(world, node, start_s, end_s)


def live_rows(
    world: World, node: SimulatedNode, start_s: int, end_s: int
) -> tuple[GpuSamples | None, EngineSamples | None]:
    """Now: a row a second of each GPU, one every five of each engine."""
    return second_gpu_rows(world, node, start_s, end_s), slot_engine_rows(world, node, start_s, end_s)


def batch(
    world: World, node: SimulatedNode, span: Span, rows: Rows, *, epoch: str, sequence: int, sent_at_us: int
) -> Batch | None:
    """What a node sends of a span; None when it was off for all of it."""
    gpu_samples, engine_samples = rows(world, node, span.start_s, span.end_s)
    if gpu_samples is None:
        return None
    # Not checked as a whole: rows are made by the hundred thousand. A test decodes them as the hub does.
    return Batch.model_construct(
        agent=node.name,
        epoch=epoch,
        sequence=sequence,
        node=Node(
            id=node.name,
            boot_id=f"simulated-boot-{node.away.begins(span.start_s) if node.away else 0}",
            agent_version=f"{__version__} (simulated)",
            sent_at_us=sent_at_us,
            driver_version=DRIVER_VERSION,
            simulated=True,
        ),
        gpus=[_gpu(node, gpu) for gpu in range(node.gpu_count)],
        engines=[_engine(node, replica, span) for replica in node.replicas],
        gpu_samples=gpu_samples,
        engine_samples=engine_samples,
    )


def _gpu(node: SimulatedNode, gpu: int) -> Gpu:
    card = node.card
    return Gpu(
        uuid=node.uuid(gpu),
        name=card.name,
        index=gpu,
        power_limit_mw=card.limit_w * 1000,
        memory_total_bytes=card.memory_bytes,
        energy_method="counter",
        mig_enabled=False,
        persistence_mode=True,
    )


def _engine(node: SimulatedNode, replica: Replica, span: Span) -> Engine:
    restarting = replica.restart is not None and replica.restart.active(span.end_s - 1)
    return Engine(
        url=replica.url,
        model=replica.pool.model,
        kind="vllm",
        version=ENGINE_VERSION,
        started_us=_started_s(replica, span.start_s) * 1_000_000,
        gpus=[node.uuid(gpu) for gpu in replica.gpus],
        gpus_source="config",
        status=RESTARTING if restarting else "ok",
        ttft_bounds_us=bounds_us(TTFT_BOUNDS_S),
        itl_bounds_us=bounds_us(ITL_BOUNDS_S),
        e2e_bounds_us=bounds_us(E2E_BOUNDS_S),
    )


def _started_s(replica: Replica, time_s: int) -> int:
    """When its process began: as it, or its node, last came back."""
    returns = [event.last_begin_s(time_s) + event.length_s for event in replica.down]
    return max([FIRST_BOOT_S, *returns])
