"""Days of three fleets behind a router, simulated request by request, as batches of their agents.

Load follows a curve over day and week. In the busiest hours of a weekday it is between three quarters and 95% of what
the replicas can take, each day another part. On the Wednesday evening a surge is more than all, worked off later.
One replica is one node. The nodes send as measured ones do: nothing tells the product that they are simulated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

from app.config import Config
from app.facts.fact import Fact
from app.simulator.arrays import Bools, Ints, wire_table
from app.simulator.latency import E2E_BOUNDS_S, ITL_BOUNDS_S, TTFT_BOUNDS_S, bounds_us
from app.store.database import Store
from app.store.facts import append_facts
from app.store.rollup import roll_up
from collectors.samples import Batch, Engine, EngineSamples, Gpu, GpuSamples, Node
from tests.batches import EPOCH, HOUR, SECOND, Clock, put, uuid_of, writing
from tests.facts.builders import fact, rented
from tests.queueing.arrivals import DAY_S, HOUR_S, SECOND_NS, Curve, Lengths, Requests, Surge, by_curve
from tests.queueing.engine import Served
from tests.queueing.hidden import H100, L40S, RTX_4090
from tests.queueing.pieces import Intervals
from tests.queueing.pool import Pool, parted
from tests.queueing.samples import ALWAYS, GPU_ALWAYS, engine_columns, gpu_columns

MODEL = "org/model-70b"
# Monday 2026-02-02 00:00 UTC: where the curve begins, and the simulation's nanoseconds.
MONDAY_US = int(datetime(2026, 2, 2, tzinfo=UTC).timestamp()) * SECOND
WEDNESDAY_S = 2 * DAY_S
LENGTHS = Lengths(1200, 400)
POOLS = (
    Pool("h100", H100, replicas=3, share=0.54, usd_per_gpu_hour=2.40),
    Pool("l40s", L40S, replicas=2, share=0.205, usd_per_gpu_hour=0.80),
    Pool("rtx4090", RTX_4090, replicas=4, share=0.255, usd_per_gpu_hour=0.35),
)
CONFIG = Config.model_validate({"fleet": [{"name": pool.name, "gpu": pool.kind.card} for pool in POOLS]})
SURGE = Surge(WEDNESDAY_S + 19 * HOUR_S, WEDNESDAY_S + 20 * HOUR_S + HOUR_S // 2, 2.3)
CURVE = Curve(busiest_per_s=14.0, surges=(SURGE,))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Seconds (start, end] since the Monday. served: of each pool's replicas."""

    start_s: int
    end_s: int
    pools: tuple[Pool, ...]
    requests: Requests
    served: Mapping[str, Sequence[Served]]

    @property
    def start_us(self) -> int:
        return MONDAY_US + self.start_s * SECOND

    @property
    def end_us(self) -> int:
        return MONDAY_US + self.end_s * SECOND

    def facts(self) -> list[Fact]:
        """Which fleet each node is of, and what its GPUs cost."""
        prices = [fact("price", pool.name, rented(pool.usd_per_gpu_hour)) for pool in self.pools]
        return prices + [
            fact("membership", node, {"fleet": pool.name})
            for pool in self.pools
            for node in nodes(pool)
        ]  # fmt: skip

    def batches(self, every_s: int) -> Iterator[Batch]:
        """What each node sends, a day in a batch, with a row every `every_s` seconds of the engine and each GPU."""
        intervals = Intervals(every_s * SECOND_NS, self.end_s // every_s)
        days_s = sorted({self.start_s, self.end_s, *range(self.start_s, self.end_s, DAY_S)})
        for pool in self.pools:
            for node, served in zip(nodes(pool), self.served[pool.name], strict=True):
                columns = engine_columns(served, intervals), gpu_columns(served, intervals)
                for sequence, (first_s, last_s) in enumerate(pairwise(days_s), start=1):
                    part = slice(first_s // every_s, last_s // every_s)
                    yield _batch(node, pool, intervals, part, columns, sequence)


def nodes(pool: Pool) -> list[str]:
    """Of each of its replicas."""
    return [f"{pool.name}-{number}" for number in range(1, pool.replicas + 1)]


def a_day(seed: int = 1) -> Simulated:
    """The Wednesday of one replica a fleet."""
    shares = {"h100": 0.52, "l40s": 0.30, "rtx4090": 0.18}
    pools = tuple(replace(pool, replicas=1, share=shares[pool.name]) for pool in POOLS)
    return _simulated(pools, replace(CURVE, busiest_per_s=5.0), WEDNESDAY_S, WEDNESDAY_S + DAY_S, seed)


def a_week(seed: int = 1) -> Simulated:
    """Monday to Sunday of all replicas."""
    return _simulated(POOLS, CURVE, 0, 7 * DAY_S, seed)


def _simulated(pools: tuple[Pool, ...], curve: Curve, start_s: int, end_s: int, seed: int) -> Simulated:
    rng = np.random.default_rng(seed)
    requests = by_curve(rng, curve, LENGTHS, start_s, end_s)
    parts = parted(requests, pools, rng)
    served = {pool.name: pool.serve(part, rng) for pool, part in zip(pools, parts, strict=True)}
    return Simulated(start_s, end_s, pools, requests, served)


def fill(store: Store, simulated: Simulated, every_s: int) -> None:
    """All that was measured every `every_s` seconds in the store, rolled up, and the facts."""
    with writing(store, Clock(simulated.end_us)) as writer:
        for sent in simulated.batches(every_s):
            assert put(writer, sent).late_rows == 0
    while roll_up(store, simulated.end_us + 2 * HOUR, oldest_raw_us=0, oldest_minute_us=0):
        pass
    append_facts(store, simulated.facts())


def _batch(
    node: str,
    pool: Pool,
    intervals: Intervals,
    part: slice,
    columns: tuple[dict[str, Ints | Bools], dict[str, Ints | Bools]],
    sequence: int,
) -> Batch:
    of_engine, of_gpu = ({name: column[part] for name, column in one.items()} for one in columns)
    times_us = MONDAY_US + intervals.ends_ns[part] // 1000
    rows = len(times_us)
    times = {"t_us": times_us, "dt_us": np.full(rows, intervals.every_ns // 1000)}
    gpus = [{"gpu": np.full(rows, place), **times, **of_gpu} for place in range(pool.kind.gpus)]
    # Not checked as a whole: a test decodes one as the hub does.
    return Batch.model_construct(
        agent=node,
        epoch=EPOCH,
        sequence=sequence,
        node=Node(id=node, boot_id="boot-1", agent_version="0.1.0", sent_at_us=int(times_us[-1])),
        gpus=[_gpu(node, pool, place) for place in range(pool.kind.gpus)],
        engines=[_engine(node, pool)],
        gpu_samples=wire_table(GpuSamples, gpus, GPU_ALWAYS),
        engine_samples=wire_table(EngineSamples, [{"engine": np.zeros(rows, np.int64), **times, **of_engine}], ALWAYS),
    )


def _gpu(node: str, pool: Pool, place: int) -> Gpu:
    return Gpu(
        uuid=uuid_of(node, place),
        name=pool.kind.card,
        index=place,
        memory_total_bytes=pool.kind.memory_bytes,
        energy_method="counter",
    )


def _engine(node: str, pool: Pool) -> Engine:
    return Engine(
        url=f"http://{node}:8000/metrics",
        model=MODEL,
        kind="vllm",
        version="0.32.0",
        started_us=MONDAY_US - DAY_S * SECOND,
        gpus=[uuid_of(node, place) for place in range(pool.kind.gpus)],
        gpus_source="config",
        ttft_bounds_us=bounds_us(TTFT_BOUNDS_S),
        itl_bounds_us=bounds_us(ITL_BOUNDS_S),
        e2e_bounds_us=bounds_us(E2E_BOUNDS_S),
    )
