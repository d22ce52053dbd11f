"""Engine samples of the wire from the truth: a row a minute for the past, a row every five seconds for now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from app.simulator.arrays import Bools, Floats, Ints, generator, wire_table
from app.simulator.days import bucket_day, days_between, replica_day
from app.simulator.fleet import Replica, SimulatedNode, World
from app.simulator.operating import study_curve
from app.simulator.recurring import DAY_MINUTES, DAY_S, MINUTE_S, SLOT_S
from app.simulator.within import counts_done, slot_buckets
from collectors.samples import EngineSamples

# Columns that such an engine does not have: they are an older one's.
_NOT_THERE = {"prefix_query_tokens": None, "prefix_hit_tokens": None}

Columns = dict[str, Ints | Bools]


def minute_engine_rows(world: World, node: SimulatedNode, start_s: int, end_s: int) -> EngineSamples | None:
    """A row per engine and minute of (start, end], both whole minutes; None where none answered."""
    return _table(node, lambda replica: _minutes(world, replica, start_s // MINUTE_S, end_s // MINUTE_S))


def slot_engine_rows(world: World, node: SimulatedNode, start_s: int, end_s: int) -> EngineSamples | None:
    """A row per engine and five seconds of (start, end], both whole slots; None while none answers."""
    return _table(node, lambda replica: _slots(world, replica, start_s, end_s))


def _table(node: SimulatedNode, rows_of: Callable[[Replica], Iterator[Columns]]) -> EngineSamples | None:
    pieces = [
        {"engine": np.full(len(columns["t_us"]), position), **columns}
        for position, replica in enumerate(node.replicas)
        for columns in rows_of(replica)
        if len(columns["t_us"])
    ]
    return wire_table(EngineSamples, pieces, _NOT_THERE)


def _minutes(world: World, replica: Replica, first: int, last: int) -> Iterator[Columns]:
    for day, part in days_between(first, last):
        truth, buckets = replica_day(world, replica, day), bucket_day(world, replica, day)
        minutes = np.arange(DAY_MINUTES)[part]
        minutes = minutes[truth.down_s[part] < MINUTE_S]
        ends_s = day * DAY_S + (minutes + 1) * MINUTE_S
        yield {
            "t_us": ends_s * 1_000_000,
            "dt_us": (MINUTE_S - truth.down_s[minutes]) * 1_000_000,
            **{name: column[minutes] for name, column in truth.counts.items()},
            **_gauges(world, replica, day, minutes, ends_s),
            "ttft_buckets": buckets.ttft[minutes],
            "itl_buckets": buckets.itl[minutes],
            "e2e_buckets": buckets.e2e[minutes],
        }


def _slots(world: World, replica: Replica, start_s: int, end_s: int) -> Iterator[Columns]:
    for minute in range(start_s // MINUTE_S, -(-end_s // MINUTE_S)):
        day, at = divmod(minute, DAY_MINUTES)
        down_s = int(replica_day(world, replica, day).down_s[at])
        begin_s, stop_s = max(start_s - minute * MINUTE_S, down_s), min(end_s - minute * MINUTE_S, MINUTE_S)
        slots = np.arange(begin_s // SLOT_S, stop_s // SLOT_S)
        ends_s = minute * MINUTE_S + (slots + 1) * SLOT_S
        done, buckets = counts_done(world, replica, minute), slot_buckets(world, replica, minute)
        yield {
            "t_us": ends_s * 1_000_000,
            "dt_us": np.full(len(slots), SLOT_S * 1_000_000),
            **{name: np.diff(done[name])[slots] for name in replica_day(world, replica, day).counts},
            **_gauges(world, replica, day, np.full(len(slots), at), ends_s),
            "ttft_buckets": buckets.ttft[slots],
            "itl_buckets": buckets.itl[slots],
            "e2e_buckets": buckets.e2e[slots],
        }


def _gauges(world: World, replica: Replica, day: int, minutes: Ints, ends_s: Ints) -> Columns:
    """Requests in work and waiting at the moments `ends_s`, which lie in those minutes of the day, and the cache."""
    if not len(minutes):
        return dict.fromkeys(("running", "waiting", "kv_usage_ppm"), minutes)
    truth = replica_day(world, replica, day)
    curve = study_curve(replica.pool.model, replica.card.name, len(replica.gpus))
    rng = generator(world.seed, "gauges", replica.url, int(ends_s[0]))
    works = truth.started[minutes] > 0
    running = np.where(works, np.maximum(rng.poisson(truth.running[minutes]), 1), 0)
    waiting = np.where(works, rng.poisson(truth.waiting[minutes]), 0)
    tokens: Floats = running * (curve.prompt_tokens + curve.generated_tokens / 2)
    kv_usage_ppm = np.rint(np.minimum(tokens / replica.kv_tokens, 1.0) * 1e6).astype(np.int64)
    return {"running": running, "waiting": waiting, "kv_usage_ppm": kv_usage_ppm}
