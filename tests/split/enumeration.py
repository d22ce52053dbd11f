"""The least cost of an instance by trying every replica count, written from the formulation (design section 5).

For given replicas the shares are a linear program of their own, which is stated here anew and solved as such. Counts
are tried from the cheapest on: once the replicas alone cost more than the best so far, no later count can win.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import highspy
import numpy as np

from .instances import Instance, Pool

SLACK = 1e-9


@dataclass(frozen=True)
class Optimum:
    """The least $/h with carbon price and switching, and the fewest replicas that reach it."""

    usd_per_hour: float
    replicas: int


@dataclass(frozen=True)
class Hour:
    """What an hour of something draws, costs and emits; g: what is priced, embodied grams included."""

    watts: float
    usd: float
    grams: float


def hour(instance: Instance, pool: Pool, power_w: float, replicas: float = 0.0) -> Hour:
    """Of so much power and so many replicas on order."""
    fleet = instance.fleets[pool.fleet]
    site_kwh = power_w / 1000 * fleet["pue"]
    signal = "g_per_kwh" if instance.solve["carbon_signal"] == "average" else "marginal_g_per_kwh"
    gpu_hours = replicas * fleet["availability"] * pool.gpus
    embodied = fleet["embodied_g_per_gpu_hour"] if fleet["embodied_policy"] == "full" else 0.0
    return Hour(
        watts=power_w,
        usd=gpu_hours * fleet["usd_per_gpu_hour"] + site_kwh * fleet["usd_per_kwh"],
        grams=site_kwh * fleet[signal] + gpu_hours * embodied,
    )


def idle_hour(instance: Instance, pool: Pool, replicas: int) -> Hour:
    watts = replicas * instance.fleets[pool.fleet]["availability"] * pool.idle_w
    return hour(instance, pool, watts, replicas)


def usd_switching(instance: Instance, counts: tuple[int, ...]) -> float:
    """Against today, by fleet and GPUs per replica (there is one model)."""
    per_replica = instance.solve.get("switch_usd_per_replica", 0.0) / instance.solve.get("switch_hours", 24.0)
    wanted: dict[tuple[str, int], int] = {}
    for name, fleet in instance.fleets.items():
        for running in fleet["today"]:
            wanted[name, running["gpus_per_replica"]] = -running["replicas"]
    for count, pool in zip(counts, instance.pools, strict=True):
        wanted[pool.fleet, pool.gpus] = wanted.get((pool.fleet, pool.gpus), 0) + count
    return per_replica * sum(abs(moved) for moved in wanted.values())


def fits_gpus(instance: Instance, counts: tuple[int, ...]) -> bool:
    used = dict.fromkeys(instance.fleets, 0)
    for count, pool in zip(counts, instance.pools, strict=True):
        used[pool.fleet] += count * pool.gpus
    return all(fleet["max_gpus"] is None or used[name] <= fleet["max_gpus"] for name, fleet in instance.fleets.items())


def capacity(instance: Instance, pool: Pool, count: int) -> float:
    """Filled replicas that `count` on order carry."""
    fleet = instance.fleets[pool.fleet]
    carrying = max(0, count - fleet["spare_replicas"])
    return float(instance.solve["max_utilisation"] * fleet["availability"] * carrying)


def enumerate_all(instance: Instance) -> Optimum | None:
    """None when no counts carry the loads within the limits."""
    usd_per_g = instance.solve["carbon_usd_per_t"] / 1e6
    shares = _Shares(instance, usd_per_g)
    tried = []
    for counts in _counts(instance):
        parts = [idle_hour(instance, pool, count) for pool, count in zip(instance.pools, counts, strict=True)]
        idle = Hour(sum(p.watts for p in parts), sum(p.usd for p in parts), sum(p.grams for p in parts))
        tried.append((idle.usd + usd_per_g * idle.grams + usd_switching(instance, counts), sum(counts), counts, idle))
    best: Optimum | None = None
    for alone, replicas, counts, idle in sorted(tried, key=lambda one: one[:3]):
        if best is not None and alone > best.usd_per_hour + SLACK * max(1.0, best.usd_per_hour):
            break
        of_load = shares.least(counts, idle)
        if of_load is None:
            continue
        cost = alone + of_load
        same = best is not None and math.isclose(cost, best.usd_per_hour, rel_tol=SLACK, abs_tol=SLACK)
        if best is None or (cost < best.usd_per_hour and not same) or (same and replicas < best.replicas):
            best = Optimum(cost, replicas)
    return best


def _counts(instance: Instance) -> Iterator[tuple[int, ...]]:
    """Every count that may be of use: up to all loads on one pool, or what runs today."""
    ranges = []
    for pool in instance.pools:
        loads = [load for load in instance.loads if load.tokens_per_s > 0 and instance.may_use(load, pool)]
        asked = sum(instance.replicas_of(load, pool) for load in loads)
        fleet = instance.fleets[pool.fleet]
        most = math.ceil(asked / (instance.solve["max_utilisation"] * fleet["availability"])) + fleet["spare_replicas"]
        if instance.solve.get("switch_usd_per_replica"):
            most = max(most, *(running["replicas"] for running in fleet["today"]), 0)
        ranges.append(range((most if loads else 0) + 1))
    return (counts for counts in itertools.product(*ranges) if fits_gpus(instance, counts))


class _Shares:
    """The linear program of the shares; counts change only its right-hand sides."""

    def __init__(self, instance: Instance, usd_per_g: float) -> None:
        self._instance = instance
        self._pairs = [
            (load, pool)
            for load in instance.loads
            for pool in instance.pools
            if load.tokens_per_s > 0 and instance.may_use(load, pool)
        ]
        self._hours = [
            hour(instance, pool, (pool.loaded_w - pool.idle_w) * instance.replicas_of(load, pool))
            for load, pool in self._pairs
        ]
        self._highs = highspy.Highs()
        self._highs.silent()
        self._highs.setOptionValue("threads", 1)  # HiGHS keeps one pool of threads in a process, and the product's is 1
        for each in self._hours:
            self._highs.addVar(0.0, 1.0)
            self._highs.changeColCost(self._highs.getNumCol() - 1, each.usd + usd_per_g * each.grams)
        self._pool_rows = [
            self._row({n: instance.replicas_of(load, to) for n, (load, to) in enumerate(self._pairs) if to is pool})
            for pool in instance.pools
        ]
        self._cap_rows = {
            name: self._row({n: getattr(each, quantity) for n, each in enumerate(self._hours)})
            for name, quantity in (("max_watts", "watts"), ("max_usd_per_hour", "usd"), ("max_g_per_hour", "grams"))
            if name in instance.solve
        }
        for load in (load for load in instance.loads if load.tokens_per_s > 0):
            self._row({n: 1.0 for n, (one, _) in enumerate(self._pairs) if one is load}, 1.0, 1.0)
            for fleet, (low, high) in load.shares.items():
                self._row(
                    {n: 1.0 for n, (one, pool) in enumerate(self._pairs) if one is load and pool.fleet == fleet},
                    low,
                    high,
                )

    def _row(self, terms: dict[int, float], low: float = -math.inf, high: float = math.inf) -> int:
        columns, weights = np.array(list(terms), dtype=np.int32), np.array(list(terms.values()), dtype=float)
        self._highs.addRow(low, high, len(terms), columns, weights)
        return int(self._highs.getNumRow()) - 1

    def least(self, counts: tuple[int, ...], idle: Hour) -> float | None:
        """$/h of the load, beside the replicas' own."""
        instance = self._instance
        for row, pool, count in zip(self._pool_rows, instance.pools, counts, strict=True):
            self._highs.changeRowBounds(row, -math.inf, capacity(instance, pool, count))
        for name, used in (("max_watts", idle.watts), ("max_usd_per_hour", idle.usd), ("max_g_per_hour", idle.grams)):
            if name in self._cap_rows:
                self._highs.changeRowBounds(self._cap_rows[name], -math.inf, instance.solve[name] - used)
        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None if self._pairs or any(load.tokens_per_s > 0 for load in instance.loads) else 0.0
        return float(self._highs.getInfo().objective_function_value)
