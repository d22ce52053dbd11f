"""The solver against an enumeration of every replica count, written from the formulation and not from the solver.

For given whole replicas the shares are a transport of the classes' tokens onto the pools. What a set of pools can be
given together is the least cut: for some of them their whole capacity, for the others all tokens of every class that
may use any of them. Power is affine in load, so the shares matter only for the carbon of the load, and there pools are
filled one after another, the least gram per token first (the loads that can be reached form a polymatroid, on which
this greedy rule is exact; with one class it is the fractional knapsack).
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest

from app.split.answer import SplitAnswer
from app.split.options import Option
from app.split.recommend import recommend

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft

INSTANCES = 300
SLACK = 1e-9


@dataclass(frozen=True)
class Pool:
    """A replica type: tokens/s, $ and W of one replica, and the fleet whose GPUs it takes."""

    fleet: str
    gpus: int
    tokens_per_s: float
    usd_per_hour: float
    idle_w: float
    loaded_w: float
    g_per_wh: float
    p99_ms: float


@dataclass(frozen=True)
class Load:
    """A class: tokens/s, its highest p99 (None: no SLO) and the fleets it may use (None: any)."""

    tokens_per_s: float
    max_p99_ms: float | None
    fleets: tuple[str, ...] | None


@dataclass(frozen=True)
class Instance:
    loads: tuple[Load, ...]
    pools: tuple[Pool, ...]
    max_gpus: dict[str, int | None]
    max_utilisation: float
    carbon_usd_per_t: float

    def may_use(self, load: Load, pool: Pool) -> bool:
        limit = self.max_gpus[pool.fleet]
        return (
            (load.fleets is None or pool.fleet in load.fleets)
            and (load.max_p99_ms is None or pool.p99_ms <= load.max_p99_ms)
            and (limit is None or pool.gpus <= limit)
        )


@dataclass(frozen=True)
class Optimum:
    """The least $/h with the carbon price, and the fewest replicas that reach it."""

    usd_per_hour: float
    replicas: int


def draw(seed: int) -> Instance:
    """A small instance. Whole numbers are mixed in, so that demands also meet capacities exactly."""
    dice = random.Random(seed)
    whole = dice.random() < 0.3
    carbon_usd_per_t = dice.choice([0.0, 0.0, 50.0, 1000.0])
    fleets = ["a", "b", "c"][: dice.randint(1, 3)]
    max_gpus = {fleet: dice.choice([None, 1, 2, 3, 4, 6, 8]) for fleet in fleets}
    price = {fleet: dice.choice([0.0, 0.25, 0.5, 2.0, round(dice.uniform(0.1, 3), 3)]) for fleet in fleets}
    g_per_wh = {fleet: dice.choice([0.0, 0.02, 0.242, 0.7]) for fleet in fleets}

    def pool() -> Pool:
        fleet, gpus = dice.choice(fleets), dice.choice([1, 1, 2, 4])
        loaded_w = gpus * dice.uniform(150, 700)
        return Pool(
            fleet=fleet,
            gpus=gpus,
            tokens_per_s=float(100 * dice.randint(2, 12)) if whole else dice.uniform(150, 1200),
            usd_per_hour=gpus * price[fleet],
            idle_w=dice.uniform(0, 0.6) * loaded_w,
            loaded_w=loaded_w,
            g_per_wh=g_per_wh[fleet],
            p99_ms=dice.choice([40.0, 90.0, 300.0]),
        )

    def load() -> Load:
        return Load(
            tokens_per_s=100.0 * dice.randint(0, 15) if whole else dice.uniform(20, 1500),
            max_p99_ms=dice.choice([None, None, 50.0, 90.0, 500.0]),
            fleets=None if dice.random() < 0.5 else tuple(dice.sample(fleets, dice.randint(1, len(fleets)))),
        )

    return Instance(
        loads=tuple(load() for _ in range(dice.choice([1, 2, 2, 3]))),
        pools=tuple(pool() for _ in range(dice.randint(1, 4))),
        max_gpus=max_gpus,
        max_utilisation=dice.choice([0.5, 0.8, 1.0]),
        carbon_usd_per_t=carbon_usd_per_t,
    )


def can_take(instance: Instance, counts: tuple[int, ...], pools: tuple[int, ...]) -> float:
    """The most tokens/s that `pools` together can be given, by the least cut."""
    cuts = []
    for size in range(len(pools) + 1):
        for by_demand in itertools.combinations(pools, size):
            capacity = sum(
                instance.max_utilisation * instance.pools[r].tokens_per_s * counts[r]
                for r in pools
                if r not in by_demand
            )
            demand = sum(
                load.tokens_per_s
                for load in instance.loads
                if any(instance.may_use(load, instance.pools[r]) for r in by_demand)
            )
            cuts.append(capacity + demand)
    return min(cuts)


def cost_of(instance: Instance, counts: tuple[int, ...]) -> float | None:
    """$/h of `counts` replicas with the best shares; None when they cannot carry the demand."""
    everything = tuple(range(len(instance.pools)))
    total = sum(load.tokens_per_s for load in instance.loads)
    if can_take(instance, counts, everything) < total - SLACK * max(1.0, total):
        return None
    usd_per_g = instance.carbon_usd_per_t / 1e6
    cost = sum(
        count * (pool.usd_per_hour + usd_per_g * pool.g_per_wh * pool.idle_w)
        for count, pool in zip(counts, instance.pools, strict=True)
    )
    if usd_per_g == 0:
        return cost

    def usd_per_token(r: int) -> float:
        pool = instance.pools[r]
        return usd_per_g * pool.g_per_wh * (pool.loaded_w - pool.idle_w) / pool.tokens_per_s

    filled, taken = 0.0, ()
    for r in sorted(everything, key=usd_per_token):
        taken = tuple(sorted((*taken, r)))
        reach = can_take(instance, counts, taken)
        cost += (reach - filled) * usd_per_token(r)
        filled = reach
    return cost


@cache
def enumerate_all(seed: int) -> Optimum | None:
    """The optimum over every combination of replica counts; None when none is feasible."""
    instance = draw(seed)
    ranges = []
    for pool in instance.pools:
        asked = sum(load.tokens_per_s for load in instance.loads if instance.may_use(load, pool))
        most = math.ceil(asked / (instance.max_utilisation * pool.tokens_per_s) - SLACK)
        limit = instance.max_gpus[pool.fleet]
        ranges.append(range(min(most, most if limit is None else limit // pool.gpus) + 1))
    best: Optimum | None = None
    for counts in itertools.product(*ranges):
        if not _fits(instance, counts):
            continue
        cost = cost_of(instance, counts)
        if cost is None:
            continue
        same = best is not None and math.isclose(cost, best.usd_per_hour, rel_tol=1e-9, abs_tol=1e-9)
        if best is None or (cost < best.usd_per_hour and not same) or (same and sum(counts) < best.replicas):
            best = Optimum(cost, sum(counts))
    return best


def _fits(instance: Instance, counts: tuple[int, ...]) -> bool:
    used: Counter[str] = Counter()
    for count, pool in zip(counts, instance.pools, strict=True):
        used[pool.fleet] += count * pool.gpus
    return all(limit is None or used[fleet] <= limit for fleet, limit in instance.max_gpus.items())


@cache
def solved(seed: int) -> SplitAnswer:
    instance = draw(seed)
    fleets = {
        name: a_fleet(
            name,
            usd_per_gpu_hour=next((p.usd_per_hour / p.gpus for p in instance.pools if p.fleet == name), 1.0),
            g_per_kwh=next((1000 * p.g_per_wh for p in instance.pools if p.fleet == name), None),
            max_gpus=limit,
        )
        for name, limit in instance.max_gpus.items()
    }
    options = [
        an_option(
            fleets[pool.fleet],
            # 1,000,000 tokens at the pool's rate; the offered rate numbers the pools from 1
            a_run(
                gpu_count=pool.gpus,
                duration_s=1e6 / pool.tokens_per_s,
                prompt_tokens=500_000,
                generated_tokens=500_000,
                latency=ttft(pool.p99_ms),
                offered_requests_per_s=float(number),
            ),
            idle_w=pool.idle_w,
            loaded_w=pool.loaded_w,
        )
        for number, pool in enumerate(instance.pools, start=1)
    ]
    classes = [
        a_class(
            f"class {number}",
            requests_per_s=load.tokens_per_s / 200,
            slo=() if load.max_p99_ms is None else (a_slo(load.max_p99_ms),),
            fleets=load.fleets,
        )
        for number, load in enumerate(instance.loads, start=1)
    ]
    demand = a_demand(
        classes,
        list(fleets.values()),
        max_utilisation=instance.max_utilisation,
        carbon_usd_per_t=instance.carbon_usd_per_t,
    )
    return recommend(demand, options).answer


def number_of(option: Option) -> int:
    assert option.point.qps is not None
    return int(option.point.qps)


@pytest.mark.parametrize("seed", range(INSTANCES))
def test_the_split_costs_what_the_enumeration_finds(seed: int) -> None:
    expected, answer = enumerate_all(seed), solved(seed)
    if expected is None:
        assert answer.status == "infeasible"
        return
    assert answer.status == "optimal"
    assert answer.objective_usd_per_hour == pytest.approx(expected.usd_per_hour, rel=1e-6, abs=1e-9)
    assert answer.bound_usd_per_hour == pytest.approx(expected.usd_per_hour, rel=1e-6, abs=1e-9)
    assert sum(pool.count for pool in answer.pools) == expected.replicas


@pytest.mark.parametrize("seed", range(INSTANCES))
def test_the_split_obeys_every_constraint(seed: int) -> None:
    instance, answer = draw(seed), solved(seed)
    if answer.status == "infeasible":
        assert (answer.shares, answer.pools, answer.usd_per_hour) == ((), (), None)
        return
    pools = dict(enumerate(instance.pools, start=1))
    loads = {f"class {number}": load for number, load in enumerate(instance.loads, start=1)}
    counts = {number_of(pool.option): pool.count for pool in answer.pools}
    shared, carried = dict.fromkeys(loads, 0.0), dict.fromkeys(pools, 0.0)
    for share in answer.shares:
        number, load = number_of(share.option), loads[share.class_name]
        assert instance.may_use(load, pools[number])
        assert 0 < share.share <= 1 + SLACK
        shared[share.class_name] += share.share
        carried[number] += share.share * load.tokens_per_s
    assert shared == pytest.approx({name: float(load.tokens_per_s > 0) for name, load in loads.items()}, abs=1e-9)
    for number, pool in pools.items():
        assert carried[number] <= instance.max_utilisation * pool.tokens_per_s * counts.get(number, 0) * (1 + 1e-6)
    assert _fits(instance, tuple(counts.get(number, 0) for number in pools))
    assert all(count > 0 for count in counts.values())


@pytest.mark.parametrize("seed", range(INSTANCES))
def test_dollars_watts_and_grams_are_those_of_the_pools(seed: int) -> None:
    instance, answer = draw(seed), solved(seed)
    if answer.status == "infeasible":
        return
    usd = watts = grams = 0.0
    for found in answer.pools:
        pool = instance.pools[number_of(found.option) - 1]
        tokens_per_s = sum(share.tokens_per_s for share in answer.shares if share.option == found.option)
        power_w = found.count * pool.idle_w + (pool.loaded_w - pool.idle_w) * tokens_per_s / pool.tokens_per_s
        usd, watts, grams = usd + found.count * pool.usd_per_hour, watts + power_w, grams + power_w * pool.g_per_wh
    assert answer.usd_per_hour == pytest.approx(usd, rel=1e-9, abs=1e-12)
    assert answer.power_w == pytest.approx(watts, rel=1e-9)
    assert answer.g_per_hour == pytest.approx(grams, rel=1e-9)
    with_carbon = usd + instance.carbon_usd_per_t / 1e6 * grams
    assert answer.objective_usd_per_hour == pytest.approx(with_carbon, rel=1e-6, abs=1e-9)


def test_the_instances_cover_what_can_go_wrong() -> None:
    met: Counter[str] = Counter()
    for seed in range(INSTANCES):
        instance, answer = draw(seed), solved(seed)
        if enumerate_all(seed) is None:
            met["infeasible"] += 1
            continue
        one, priced = len(instance.loads) == 1, instance.carbon_usd_per_t > 0
        met[f"{'one class' if one else 'several classes'}, carbon price {'> 0' if priced else '0'}"] += 1
        met["a full fleet"] += bool(answer.limits)
        met["several GPUs per replica"] += any(pool.option.point.gpus > 1 for pool in answer.pools)
        met["barred by an SLO"] += any(
            load.max_p99_ms and pool.p99_ms > load.max_p99_ms for load in instance.loads for pool in instance.pools
        )
        met["barred by its fleets"] += any(
            load.fleets and pool.fleet not in load.fleets for load in instance.loads for pool in instance.pools
        )
        met["several pools"] += len(answer.pools) > 1
        met["a class divided"] += any(share.share < 1 - SLACK for share in answer.shares)
    assert len(met) == 11
    assert {name: count for name, count in met.items() if count < 15} == {}
