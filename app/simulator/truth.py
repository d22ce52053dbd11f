"""The hidden truth of any interval: what a GPU took and what a replica did. The rows that are sent are its differences.

Counts and millijoules are whole at whole seconds (engines: at whole slots of five seconds), and add up exactly there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.simulator.arrays import Ints
from app.simulator.days import ReplicaDay, days_between, gpu_day, replica_day
from app.simulator.fleet import Replica, SimulatedNode, World
from app.simulator.recurring import DAY_MINUTES, MINUTE_S, SLOT_S
from app.simulator.within import counts_done, energy_done_mj

MINUTE_US = MINUTE_S * 1_000_000


@dataclass(frozen=True)
class GpuTruth:
    """present_s = used_s + idle_s + unallocated_s; hot_s: of it, seconds of thermal slowdown."""

    energy_mj: int
    present_s: float
    used_s: float
    idle_s: float
    unallocated_s: float
    hot_s: float

    @property
    def energy_j(self) -> float:
        return self.energy_mj / 1e3


@dataclass(frozen=True)
class ReplicaTruth:
    """counts: columns of EngineSamples. up_s: seconds in which it answers; used_s: of it, with work in hand."""

    counts: dict[str, int]
    started: int
    up_s: float
    used_s: float

    @property
    def finished(self) -> int:
        return self.counts["finished_stop"] + self.counts["finished_length"]


def gpu_truth(world: World, node: SimulatedNode, gpu: int, start_us: int, end_us: int) -> GpuTruth:
    """What a GPU of a node took in (start, end]."""
    replica = node.replica_of(gpu)

    def energy(day: int) -> Ints:
        return gpu_day(world, node, gpu, day).energy_mj

    def energy_at(minute: int, offset_s: float) -> float:
        return float(np.interp(offset_s, np.arange(MINUTE_S + 1), energy_done_mj(world, node, gpu, minute)) // 1)

    def absent(day: int) -> Ints:
        return gpu_day(world, node, gpu, day).absent_s

    def hot_from(day: int) -> Ints:
        truth = gpu_day(world, node, gpu, day)
        return np.where(truth.hot > 0, truth.absent_s, MINUTE_S)

    present_s = _tail_s(absent, start_us, end_us)
    used_s = 0.0 if replica is None else replica_truth(world, replica, start_us, end_us).used_s
    return GpuTruth(
        energy_mj=int(_between(energy, energy_at, start_us, end_us)),
        present_s=present_s,
        used_s=used_s,
        idle_s=0.0 if replica is None else present_s - used_s,
        unallocated_s=present_s if replica is None else 0.0,
        hot_s=_tail_s(hot_from, start_us, end_us),
    )


def replica_truth(world: World, replica: Replica, start_us: int, end_us: int) -> ReplicaTruth:
    """What a replica did in (start, end]."""

    def truth(day: int) -> ReplicaDay:
        return replica_day(world, replica, day)

    def count(name: str) -> int:
        def column(day: int) -> Ints:
            return truth(day).started if name == "started" else truth(day).counts[name]

        def at(minute: int, offset_s: float) -> float:
            edges_s = np.arange(0, MINUTE_S + 1, SLOT_S)
            return float(np.interp(offset_s, edges_s, counts_done(world, replica, minute)[name]) // 1)

        return int(_between(column, at, start_us, end_us))

    def used_from(day: int) -> Ints:
        return np.where(truth(day).started > 0, truth(day).down_s, MINUTE_S)

    names = truth(start_us // MINUTE_US // DAY_MINUTES).counts
    return ReplicaTruth(
        counts={name: count(name) for name in names},
        started=count("started"),
        up_s=_tail_s(lambda day: truth(day).down_s, start_us, end_us),
        used_s=_tail_s(used_from, start_us, end_us),
    )


def _between(column: Callable[[int], Ints], at: Callable[[int, float], float], start_us: int, end_us: int) -> float:
    """Sum over an interval. column: a day's minutes; at: what a minute has done so many seconds after its start."""
    first, first_s = divmod(start_us, MINUTE_US)
    last, last_s = divmod(end_us, MINUTE_US)
    whole = sum(int(column(day)[part].sum()) for day, part in days_between(first, last))
    begun = at(last, last_s / 1e6) if last_s else 0.0
    return whole + begun - (at(first, first_s / 1e6) if first_s else 0.0)


def _tail_s(begins: Callable[[int], Ints], start_us: int, end_us: int) -> float:
    """Seconds of an interval that lie in the ends of its minutes, each from its own second on (60: none of it)."""

    def tails(day: int) -> Ints:
        return MINUTE_S - begins(day)

    def at(minute: int, offset_s: float) -> float:
        day, place = divmod(minute, DAY_MINUTES)
        return max(offset_s - float(begins(day)[place]), 0.0)

    return _between(tails, at, start_us, end_us)
