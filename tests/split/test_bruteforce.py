"""The split against an enumeration of every replica count, on random instances with every kind of limit."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from app.split.answer import SplitAnswer
from app.split.options import Option
from app.split.recommend import best_split

from . import enumeration
from .enumeration import Optimum, capacity, fits_gpus, hour, usd_switching
from .instances import Instance, as_demand, draw

INSTANCES = 800
SLACK = 1e-9


@cache
def optimum(seed: int) -> Optimum | None:
    return enumeration.enumerate_all(draw(seed))


@cache
def solved(seed: int) -> SplitAnswer:
    return best_split(*as_demand(draw(seed)))


def number_of(option: Option) -> int:
    assert option.point.qps is not None
    return int(option.point.qps) - 1


def counts_of(instance: Instance, answer: SplitAnswer) -> tuple[int, ...]:
    counts = {number_of(pool.option): pool.count for pool in answer.pools}
    return tuple(counts.get(number, 0) for number in range(len(instance.pools)))


@pytest.mark.parametrize("seed", range(INSTANCES))
def test_the_split_costs_what_the_enumeration_finds(seed: int) -> None:
    expected, answer = optimum(seed), solved(seed)
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
    loads = {f"class {number}": load for number, load in enumerate(instance.loads, start=1)}
    counts = counts_of(instance, answer)
    shared, carried = dict.fromkeys(loads, 0.0), [0.0] * len(counts)
    for share in answer.shares:
        load, pool = loads[share.class_name], instance.pools[number_of(share.option)]
        assert instance.may_use(load, pool)
        assert 0 < share.share <= 1 + SLACK
        shared[share.class_name] += share.share
        carried[number_of(share.option)] += share.share * instance.replicas_of(load, pool)
    assert shared == pytest.approx({name: float(load.tokens_per_s > 0) for name, load in loads.items()}, abs=1e-9)
    for pool, count, load in zip(instance.pools, counts, carried, strict=True):
        assert load <= capacity(instance, pool, count) * (1 + 1e-6) + 1e-9
    assert fits_gpus(instance, counts)
    for name, load in loads.items():
        for fleet, (least, most) in load.shares.items() if load.tokens_per_s > 0 else ():
            found = sum(s.share for s in answer.shares if (s.class_name, s.option.fleet.name) == (name, fleet))
            assert least - 1e-6 <= found <= most + 1e-6
    used = {"max_watts": answer.power_w, "max_usd_per_hour": answer.usd_per_hour,
            "max_g_per_hour": answer.priced_g_per_hour}  # fmt: skip
    for name, value in used.items():
        assert value is not None
        assert value <= instance.solve.get(name, value) * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(INSTANCES))
def test_dollars_watts_and_grams_are_those_of_the_pools(seed: int) -> None:
    instance, answer = draw(seed), solved(seed)
    if answer.status == "infeasible":
        return
    loads = {f"class {number}": load for number, load in enumerate(instance.loads, start=1)}
    usd = watts = priced = operational = embodied = 0.0
    for found in answer.pools:
        pool, fleet = instance.pools[number_of(found.option)], instance.fleets[found.option.fleet.name]
        there = fleet["availability"]
        load = sum(
            share.share * instance.replicas_of(loads[share.class_name], pool)
            for share in answer.shares
            if share.option == found.option
        )
        power_w = found.count * there * pool.idle_w + (pool.loaded_w - pool.idle_w) * load
        each = hour(instance, pool, power_w, found.count)
        assert found.utilisation == pytest.approx(load / (found.count * there), rel=1e-9)
        usd, watts, priced = usd + each.usd, watts + each.watts, priced + each.grams
        operational += power_w / 1000 * fleet["pue"] * fleet["g_per_kwh"]
        if fleet["embodied_policy"] == "full":
            embodied += found.count * there * pool.gpus * fleet["embodied_g_per_gpu_hour"]
    assert answer.usd_per_hour == pytest.approx(usd, rel=1e-9, abs=1e-12)
    assert answer.power_w == pytest.approx(watts, rel=1e-9)
    assert answer.g_per_hour == pytest.approx(operational, rel=1e-9)
    assert answer.embodied_g_per_hour == pytest.approx(embodied, rel=1e-9)
    assert answer.priced_g_per_hour == pytest.approx(priced, rel=1e-9)
    switching = usd_switching(instance, counts_of(instance, answer))
    assert answer.switch_usd_per_hour == pytest.approx(switching, rel=1e-9, abs=1e-12)
    whole = usd + instance.solve["carbon_usd_per_t"] / 1e6 * priced + switching
    assert answer.objective_usd_per_hour == pytest.approx(whole, rel=1e-6, abs=1e-9)


def kinds_met(instance: Instance, answer: SplitAnswer) -> dict[str, bool]:
    """What of the formulation a solved instance puts to the test."""
    solve, used = instance.solve, [pool.option.fleet.offer for pool in answer.pools]
    pairs = [(load, pool) for load in instance.loads if load.tokens_per_s > 0 for pool in instance.pools]
    priced = solve["carbon_usd_per_t"] > 0
    return {
        "several classes": len(instance.loads) > 1,
        "a full fleet": any("GPUs of" in limit for limit in answer.limits),
        "several GPUs per replica": any(pool.option.point.gpus > 1 for pool in answer.pools),
        "barred by an SLO": any(
            instance.measured_ms(pool, metric, percentile) > ms
            for load, pool in pairs
            for metric, percentile, ms in load.slo
        ),
        "several SLOs": any(len(load.slo) > 1 for load in instance.loads),
        "another percentile stands in": any("stands in" in h.measured for s in answer.shares for h in s.held),
        "barred by its fleets": any(load.fleets is not None and pool.fleet not in load.fleets for load, pool in pairs),
        "barred by its zones": any(
            load.zones is not None and instance.fleets[pool.fleet]["zone"] not in load.zones for load, pool in pairs
        ),
        "a share at its border": any("it may have" in limit or "it must have" in limit for limit in answer.limits),
        "a cap": any(name in solve for name in ("max_watts", "max_usd_per_hour", "max_g_per_hour")),
        "spot": any(offer.availability < 1 for offer in used),
        "spares": any(pool.spares > 0 for pool in answer.pools),
        "owned electricity": any(offer.usd_per_kwh > 0 for offer in used),
        "priced carbon": priced,
        "priced embodied grams": priced and (answer.embodied_g_per_hour or 0) > 0,
        "sunk embodied grams": priced and any(offer.embodied_policy == "sunk" for offer in used),
        "priced marginal grams": priced and solve["carbon_signal"] == "marginal",
        "switching": (answer.switch_usd_per_hour or 0) > 0,
        "kept although idle": any(pool.utilisation == 0 for pool in answer.pools),
        "timings of prefill and decode": any(pool.timings is not None for _, pool in pairs),
        "several pools": len(answer.pools) > 1,
        "a class divided": any(share.share < 1 - SLACK for share in answer.shares),
    }


def test_the_instances_cover_every_kind_of_limit() -> None:
    met: Counter[str] = Counter()
    for seed in range(INSTANCES):
        answer = solved(seed)
        met["infeasible"] += answer.status == "infeasible"
        if answer.status != "infeasible":
            met.update({kind: int(is_met) for kind, is_met in kinds_met(draw(seed), answer).items()})
    assert {kind: times for kind, times in met.items() if times < 8} == {}


@pytest.mark.parametrize("name", ["max_watts", "max_usd_per_hour", "max_g_per_hour"])
def test_each_cap_changes_answers(name: str) -> None:
    changed = 0
    for seed in range(INSTANCES):
        demand, options = as_demand(draw(seed))
        if getattr(demand.solve, name) is None:
            continue
        free = best_split(demand.model_copy(update={"solve": demand.solve.model_copy(update={name: None})}), options)
        if free.status == "infeasible":
            continue
        capped = solved(seed)
        changed += capped.status == "infeasible" or capped.objective_usd_per_hour != free.objective_usd_per_hour
        assert free.objective_usd_per_hour is not None
        assert free.objective_usd_per_hour <= (capped.objective_usd_per_hour or float("inf")) * (1 + 1e-9) + 1e-9
    assert changed >= 5
