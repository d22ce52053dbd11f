"""Fronts against an enumeration of every replica count, whose shares are chosen by a linear program of its own."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from highspy import Highs

from app.split.demand import Demand
from app.split.front import LEVELS, Front, carbon_front, slo_curve
from app.split.options import Option
from app.split.recommend import best_split

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft
from .small_instances import draw

SEEDS = range(40)


def two_ways(**fleet: float) -> tuple[Demand, list[Option]]:
    """800 tokens/s on `dirty` at $1 or on `clean` at $3; a replica of 500 W emits 500 or 50 g/h when full."""
    dirty, clean = a_fleet("dirty", g_per_kwh=1000.0), a_fleet("clean", usd_per_gpu_hour=3.0, g_per_kwh=100.0, **fleet)
    options = [an_option(one, a_run(), idle_w=500.0, loaded_w=500.0) for one in (dirty, clean)]
    # 16 req/s x 200 = 3,200 tokens/s: 4 replicas
    return a_demand([a_class(requests_per_s=16.0)], [dirty, clean]), options


def test_each_replica_that_goes_to_the_cleaner_fleet_is_a_point() -> None:
    front = carbon_front(*two_ways())
    # k of 4 replicas clean: $4 + 2k and 500 x (4 - k) + 50 k g/h
    assert [(point.usd_per_hour, pytest.approx(point.g_per_hour)) for point in front.points] == [
        (4.0, 2000.0), (6.0, 1550.0), (8.0, 1100.0), (10.0, 650.0), (12.0, 200.0),
    ]  # fmt: skip
    assert [point.kind for point in front.points] == ["cheapest", "between", "between", "between", "greenest"]
    assert front.knee is None  # all on one line


def test_the_knee_is_the_point_after_which_grams_become_dear() -> None:
    # 2 replicas, one of which may be clean ($3, 50 g/h) and one hydro ($20, 0 g/h): $2 for 1000 g, $4 for 550, $21 for
    # 500, $23 for 50. Scaled: 2/21 + 500/950 = 0.62 of the way at $4, 19/21 + 450/950 = 1.38 at $21
    demand, options = two_ways(max_gpus=1)
    hydro = a_fleet("hydro", usd_per_gpu_hour=20.0, g_per_kwh=0.0, max_gpus=1)
    demand = a_demand([a_class(requests_per_s=8.0)], [*(option.fleet for option in options), hydro])
    front = carbon_front(demand, [*options, an_option(hydro, a_run(), idle_w=500.0, loaded_w=500.0)])
    found = [(point.usd_per_hour, pytest.approx(point.g_per_hour)) for point in front.points]
    assert found == [(2.0, 1000.0), (4.0, 550.0), (21.0, 500.0), (23.0, 50.0)]
    assert front.knee == 1


def test_fewer_than_three_points_have_no_knee() -> None:
    fleet = a_fleet()
    front = carbon_front(a_demand([a_class()], [fleet]), [an_option(fleet, a_run())])
    assert ([point.kind for point in front.points], front.knee) == (["only"], None)


def test_a_fleet_without_grams_leaves_no_front_and_says_why() -> None:
    fleet = a_fleet(g_per_kwh=None)
    front = carbon_front(a_demand([a_class()], [fleet]), [an_option(fleet, a_run())])
    assert (front.points, front.reason) == ((), "grams are not known, fleet fleet: no zone is set")


def test_an_infeasible_demand_has_no_front() -> None:
    fleet = a_fleet(max_gpus=1)
    front = carbon_front(a_demand([a_class(requests_per_s=100.0)], [fleet]), [an_option(fleet, a_run())])
    assert front.points == () and front.reason


def test_the_demands_own_carbon_price_does_not_move_the_front() -> None:
    demand, options = two_ways()
    dear = demand.model_copy(update={"solve": demand.solve.model_copy(update={"carbon_usd_per_t": 5000.0})})
    plain, priced = carbon_front(demand, options), carbon_front(dear, options)
    assert [point.usd_per_hour for point in plain.points] == [point.usd_per_hour for point in priced.points]


def test_the_front_keeps_the_demands_own_caps() -> None:
    demand, options = two_ways()
    capped = demand.model_copy(
        update={"solve": demand.solve.model_copy(update={"max_usd_per_hour": 9.0, "max_g_per_hour": 1600.0})}
    )
    assert [point.usd_per_hour for point in carbon_front(capped, options).points] == [6.0, 8.0]


@cache
def front_of(seed: int) -> Front:
    return carbon_front(*draw(seed))


@cache
def every_split(seed: int) -> tuple[tuple[float, float], ...]:
    """($/h, least g/h) of every combination of replica counts that carries the demand."""
    demand, options = draw(seed)
    full = demand.solve.max_utilisation
    ranges = [
        range(math.ceil(sum(one.tokens_per_s for one in demand.classes) / (full * option.point.tokens_per_s)) + 1)
        for option in options
    ]
    limits = {fleet.name: fleet.max_gpus for fleet in demand.fleets}
    found = []
    for counts in itertools.product(*ranges):
        used = dict.fromkeys(limits, 0)
        for option, count in zip(options, counts, strict=True):
            used[option.fleet.name] += count * option.point.gpus
        if any(limit is not None and used[name] > limit for name, limit in limits.items()):
            continue
        usd = sum(count * option.usd_per_replica_hour for option, count in zip(options, counts, strict=True))
        found.append((usd, counts))
    return tuple((usd, grams) for usd, counts in found if (grams := least_grams(demand, options, counts)) is not None)


def least_grams(demand: Demand, options: list[Option], counts: tuple[int, ...]) -> float | None:
    """Of given replicas, by the transport of the classes' tokens; None when they cannot carry them."""
    capacity = [
        demand.solve.max_utilisation * option.point.tokens_per_s * count
        for option, count in zip(options, counts, strict=True)
    ]
    if sum(capacity) < sum(one.tokens_per_s for one in demand.classes) * (1 - 1e-9):
        return None
    g_per_w = [option.fleet.g_per_kwh * option.fleet.offer.pue / 1000 for option in options]  # type: ignore[operator]
    idle = sum(g * count * option.point.idle_w for g, count, option in zip(g_per_w, counts, options, strict=True))
    pairs, costs = [], []
    for one in demand.classes:
        for r, option in enumerate(options):
            held = all(option.point.latency["ttft"].quantiles_ms[99.0] <= slo.max_ms for slo in one.slo)
            if counts[r] and held:
                pairs.append((one, r))
                costs.append(g_per_w[r] * option.load_w / option.point.tokens_per_s)
    flows = transport(demand, pairs, costs, capacity)
    return None if flows is None else idle + flows


def transport(
    demand: Demand, pairs: list[tuple[object, int]], costs: list[float], capacity: list[float]
) -> float | None:
    lp = Highs()
    lp.silent()
    for cost in costs:
        lp.addCol(cost, 0.0, math.inf, 0, np.array([], dtype=np.int32), np.array([]))
    for one in demand.classes:
        mine = [column for column, (whose, _) in enumerate(pairs) if whose is one]
        if not mine:
            return None
        lp.addRow(one.tokens_per_s, math.inf, len(mine), np.array(mine, dtype=np.int32), np.ones(len(mine)))
    for r, most in enumerate(capacity):
        there = [column for column, (_, index) in enumerate(pairs) if index == r]
        lp.addRow(-math.inf, most * (1 + 1e-9), len(there), np.array(there, dtype=np.int32), np.ones(len(there)))
    lp.run()
    if lp.modelStatusToString(lp.getModelStatus()) != "Optimal":
        return None
    return float(lp.getInfo().objective_function_value)


def small(seed: int) -> bool:
    """Few enough combinations to enumerate."""
    demand, options = draw(seed)
    tokens = sum(one.tokens_per_s for one in demand.classes)
    product = 1
    for option in options:
        product *= math.ceil(tokens / (demand.solve.max_utilisation * option.point.tokens_per_s)) + 1
    return product <= 1500


SMALL = [seed for seed in range(200) if small(seed)][:40]


@pytest.mark.parametrize("seed", SMALL)
def test_no_split_dominates_a_point_and_each_level_is_the_cheapest(seed: int) -> None:
    splits, front = every_split(seed), front_of(seed)
    if not splits:
        assert front.points == ()
        return
    for point in front.points:
        cheapest = min(usd for usd, grams in splits if grams <= point.g_per_hour * (1 + 1e-6) + 1e-9)
        assert point.usd_per_hour == pytest.approx(cheapest, rel=1e-6, abs=1e-9)
    assert front.points[0].usd_per_hour == pytest.approx(min(usd for usd, _ in splits), rel=1e-6, abs=1e-9)
    assert front.points[-1].g_per_hour == pytest.approx(min(grams for _, grams in splits), rel=2e-5, abs=1e-6)


@pytest.mark.parametrize("seed", SMALL)
def test_every_level_of_grams_is_on_the_front(seed: int) -> None:
    # the cheapest of each of 21 levels, found in the enumeration
    splits, front = every_split(seed), front_of(seed)
    if not front.points:
        return
    high, low = front.points[0].g_per_hour, front.points[-1].g_per_hour
    for number in range(LEVELS):
        level = high + (low - high) * number / (LEVELS - 1)
        cheapest = min(usd for usd, grams in splits if grams <= level * (1 + 1e-6) + 1e-6)
        within = [point.usd_per_hour for point in front.points if point.g_per_hour <= level * (1 + 1e-5) + 1e-6]
        assert min(within) == pytest.approx(cheapest, rel=2e-5, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_points_go_from_cheap_to_green_and_open_their_split(seed: int) -> None:
    points = front_of(seed).points
    assert len(points) <= LEVELS + 1
    for first, second in itertools.pairwise(points):
        assert first.usd_per_hour < second.usd_per_hour
        assert first.g_per_hour > second.g_per_hour
    for point in points:
        assert point.answer.usd_per_hour == point.usd_per_hour
        assert sum(pool.g_per_hour or 0.0 for pool in point.answer.pools) == pytest.approx(point.g_per_hour, rel=1e-9)


def test_the_instances_have_fronts_worth_the_name() -> None:
    assert len(SMALL) == 40
    assert sum(len(front_of(seed).points) > 2 for seed in SMALL) >= 10
    assert sum(front_of(seed).knee is not None for seed in SMALL) >= 5


# Cost against an SLO


def test_the_cost_against_an_slo_is_a_step_at_each_measured_value() -> None:
    # 800 tokens/s: one replica of `dear` at $2 (50 ms), or of `cheap` at $0.50 (300 ms); 400 ms changes nothing
    dear, cheap = a_fleet("dear", usd_per_gpu_hour=2.0), a_fleet("cheap", usd_per_gpu_hour=0.5)
    options = [
        an_option(dear, a_run(latency=ttft(50.0))),
        an_option(cheap, a_run(latency=ttft(300.0))),
        an_option(cheap, a_run(latency=ttft(400.0), offered_requests_per_s=8.0)),
    ]
    demand = a_demand([a_class(requests_per_s=4.0, slo=(a_slo(60.0),))], [dear, cheap])
    curve = slo_curve(demand, options, "chat")
    assert [(step.max_ms, step.answer.usd_per_hour) for step in curve.steps] == [(50, 2.0), (300, 0.5), (400, 0.5)]
    assert (curve.class_name, curve.slo.max_ms, curve.reason) == ("chat", 60.0, None)


def test_another_slo_of_the_class_still_holds_while_one_moves() -> None:
    # the option of 300 ms p99 TTFT was never measured for e2e, so no TTFT lets it in
    fleet = a_fleet()
    slow = a_run(latency=ttft(300.0), offered_requests_per_s=8.0)
    fast = a_run(latency=ttft(50.0) | {"e2e": ttft(900.0)["ttft"]})
    demand = a_demand([a_class(slo=(a_slo(60.0), a_slo(1000.0, metric="e2e")))], [fleet])
    curve = slo_curve(demand, [an_option(fleet, fast), an_option(fleet, slow)], "chat")
    assert [step.max_ms for step in curve.steps] == [50]
    assert [step.max_ms for step in slo_curve(demand, [an_option(fleet, fast)], "chat", 1).steps] == [900]


def test_a_metric_that_was_not_measured_has_no_curve() -> None:
    fleet = a_fleet()
    demand = a_demand([a_class(slo=(a_slo(60.0),))], [fleet])
    curve = slo_curve(demand, [an_option(fleet, a_run())], "chat")
    assert (curve.steps, curve.reason) == ((), "no option of chat has a measured TTFT")


@pytest.mark.parametrize("seed", SEEDS)
def test_each_step_costs_what_a_solve_of_its_own_costs(seed: int) -> None:
    demand, options = draw(seed)
    for one in demand.classes:
        if not one.slo:
            continue
        for step in slo_curve(demand, options, one.name).steps:
            moved = one.model_copy(update={"slo": (a_slo(step.max_ms),)})
            classes = tuple(moved if it is one else it for it in demand.classes)
            alone = best_split(demand.model_copy(update={"classes": classes}), options)
            assert alone.status == step.answer.status
            assert (alone.usd_per_hour or 0.0) == pytest.approx(step.answer.usd_per_hour or 0.0, rel=1e-6)
