"""The hourly plan against hand arithmetic, against trying every count, and against the split of one hour."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import highspy
import numpy as np
import pytest

from app.errors import DemandError
from app.split.demand import Demand
from app.split.highs import Instance
from app.split.horizon import build_horizon
from app.split.options import Fleet, Option
from app.split.plan import Plan, plan
from app.split.recommend import best_split
from app.split.rolling import rolled, rounded_up
from app.split.timeline import PlanHour, Timeline

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft

START = datetime(2026, 2, 3, 4, tzinfo=UTC)


def hours(loads: Sequence[dict[str, float]], grams: Sequence[dict[str, float | None]] = ()) -> list[PlanHour]:
    found = grams or [{}] * len(loads)
    return [PlanHour(START + timedelta(hours=n), load, found[n]) for n, load in enumerate(loads)]


def flat(count: int) -> list[PlanHour]:
    return hours([{}] * count)


def counts(found: Plan) -> list[int]:
    assert found.course is not None
    return [sum(pool.count for pool in hour.answer.pools) for hour in found.course.hours]


def waiting(found: Plan, name: str) -> list[float]:
    assert found.course is not None
    return [hour.deferred_tokens[name] for hour in found.course.hours]


def one_option(rate: float = 10.0, *, fleet: dict[str, Any] | None = None, **solve: Any) -> tuple[Demand, list[Option]]:
    """rate x 200 tokens/s of chat on replicas of 800 tokens/s and $1/h."""
    offer = a_fleet(**(fleet or {}))
    return a_demand([a_class(requests_per_s=rate)], [offer], **solve), [an_option(offer, a_run())]


@pytest.mark.parametrize("solve", [{}, {"carbon_usd_per_t": 200.0}, {"switch_usd_per_replica": 6.0}])
def test_one_hour_costs_what_its_split_costs(solve: dict[str, Any]) -> None:
    near, far = a_fleet("near", max_gpus=2, spare_replicas=1), a_fleet("far", usd_per_gpu_hour=1.5, g_per_kwh=20.0)
    options = [an_option(near, a_run()), an_option(far, a_run(duration_s=200.0))]
    demand = a_demand([a_class(requests_per_s=7.0), a_class("batch", deferrable=True)], [near, far], **solve)
    found, split = plan(demand, options, flat(1), gap=0.0), best_split(demand, options)
    assert found.course is not None and found.status == "optimal"
    assert found.course.objective_usd == pytest.approx(split.objective_usd_per_hour)
    assert found.course.usd == pytest.approx(split.usd_per_hour)
    assert found.course.g == pytest.approx(split.g_per_hour)


@pytest.mark.parametrize("seed", range(6))
def test_of_equally_cheap_shares_a_plan_takes_those_of_least_power(seed: int) -> None:
    """One replica of each of two, of which one draws less: 1.75 of them, as a split fills them."""
    watts = random.Random(seed).sample((300, 400, 500), 2)
    fleets = [a_fleet("near", max_gpus=1), a_fleet("far", max_gpus=1)]
    options = [an_option(one, a_run(), loaded_w=each) for one, each in zip(fleets, watts, strict=True)]
    demand = a_demand([a_class("batch", requests_per_s=7.0)], fleets)
    found, split = plan(demand, options, flat(3), gap=0.0), best_split(demand, options)
    assert found.course is not None and found.static is not None
    assert found.course.usd == pytest.approx(3 * (split.usd_per_hour or 0.0))
    assert found.course.g == pytest.approx(3 * (split.g_per_hour or 0.0))
    assert found.course.g == pytest.approx(found.static.g)
    # 100 W idle each; a filled one and three quarters of the other, the more the dearer
    assert split.power_w == pytest.approx(200 + (min(watts) - 100) + 0.75 * (max(watts) - 100))


@pytest.mark.parametrize(
    ("loads", "min_up_hours", "expected"),
    [
        # 10 requests/s are 2,000 tokens/s: 3 replicas of 800; a third of it 1 replica
        ([1.0, 0.3], 1, [3, 1]),
        # what started in the first hour still runs in the second
        ([1.0, 0.3], 2, [3, 3]),
        ([1.0, 0.3, 0.3], 2, [3, 3, 1]),
        # of three at least three hours long one may start an hour before it is needed: [1, 3, 3, 3] is one more
        ([0.3, 1.0, 0.0, 0.3], 3, [2, 3, 3, 1]),
    ],
)
def test_what_was_started_runs_its_least_hours(loads: list[float], min_up_hours: int, expected: list[int]) -> None:
    found = plan(*one_option(), hours([{"chat": load} for load in loads]), min_up_hours=min_up_hours, gap=0.0)
    assert counts(found) == expected
    assert found.course is not None and found.static is not None
    assert found.course.usd == pytest.approx(sum(expected))
    assert found.static.usd == pytest.approx(3 * len(loads))


def test_what_runs_today_need_not_run_on() -> None:
    fleet = {"today": [{"model": "org/model", "gpus_per_replica": 1, "replicas": 3}]}
    found = plan(*one_option(fleet=fleet), hours([{"chat": 1.0}, {"chat": 0.3}]), gap=0.0)
    assert counts(found) == [3, 1]
    assert found.course is not None
    assert [(hour.started, hour.stopped) for hour in found.course.hours] == [(0, 0), (0, 2)]


@pytest.mark.parametrize(("usd", "expected", "switched"), [(0.4, [3, 1, 3], 4), (0.6, [3, 3, 3], 0)])
def test_switching_is_paid_for_each_start_and_stop(usd: float, expected: list[int], switched: int) -> None:
    # two replicas less for an hour save $2; stopping and starting them again are four switches
    fleet = {"today": [{"model": "org/model", "gpus_per_replica": 1, "replicas": 3}]}
    demand, options = one_option(fleet=fleet, switch_usd_per_replica=usd)
    found = plan(demand, options, hours([{}, {"chat": 0.3}, {}]), min_up_hours=1, gap=0.0)
    assert counts(found) == expected
    assert found.course is not None
    assert found.course.switch_usd == pytest.approx(switched * usd)
    assert found.course.objective_usd == pytest.approx(sum(expected) + switched * usd)


def test_work_that_may_wait_is_done_in_the_clean_hour() -> None:
    """1 request/s is 200 tokens/s, a quarter of a replica: 100 W idle, 400 W above it when full. 0, 0 and 3/4 load."""
    fleet = a_fleet(usd_per_gpu_hour=0.0)
    demand = a_demand([a_class("batch", deferrable=True)], [fleet], carbon_usd_per_t=1000.0)
    grams: list[dict[str, float | None]] = [{"fleet": 500.0}, {"fleet": 400.0}, {"fleet": 100.0}]
    found = plan(demand, [an_option(fleet, a_run())], hours([{}] * 3, grams), gap=0.0)
    assert found.course is not None and found.static is not None
    assert counts(found) == [0, 0, 1]
    assert [hour.answer.tokens_per_s for hour in found.course.hours] == pytest.approx([0, 0, 600])
    assert waiting(found, "batch") == pytest.approx([200 * 3600, 400 * 3600, 0])
    # 100 W + 3/4 x 400 W = 0.4 kW at 100 g/kWh
    assert found.course.g == pytest.approx(40.0)
    assert found.course.objective_usd == pytest.approx(0.04)
    # at once: 100 W + 400 W / 4 = 0.2 kW in each hour, at 500 + 400 + 100 g/kWh
    assert found.static.g == pytest.approx(200.0)


def test_work_that_may_wait_fills_replicas_that_run_anyway() -> None:
    # chat takes 1.5 and 0.75 replicas; batch 0.5 an hour: 2 + 2 replicas at once, and 2 + 1 is room for 3 - 2.25 = 0.75
    fleet = a_fleet()
    classes = [a_class(requests_per_s=6.0), a_class("batch", requests_per_s=2.0, deferrable=True)]
    found = plan(
        a_demand(classes, [fleet]), [an_option(fleet, a_run())],
        hours([{"chat": 1.0, "batch": 1.0}, {"chat": 0.5, "batch": 0.5}]), min_up_hours=1, gap=0.0,
    )  # fmt: skip
    # 0.5 + 0.25 of batch: all of the room there is
    assert counts(found) == [2, 1]
    assert waiting(found, "batch") == pytest.approx([0, 0], abs=1e-3)


def test_nothing_is_served_before_it_arrives() -> None:
    # the clean hour is the first, and all the work comes in the second
    fleet = a_fleet(usd_per_gpu_hour=0.0)
    demand = a_demand([a_class("batch", deferrable=True)], [fleet], carbon_usd_per_t=1000.0)
    grams: list[dict[str, float | None]] = [{"fleet": 1.0}, {"fleet": 500.0}, {"fleet": None}]
    loads = [{"batch": 0.0}, {"batch": 2.0}, {"batch": 0.0}]
    found = plan(demand, [an_option(fleet, a_run())], hours(loads, grams), gap=0.0)
    # the third hour has the fleet's own 100 g/kWh
    assert counts(found) == [0, 0, 1]
    assert waiting(found, "batch") == pytest.approx([0, 400 * 3600, 0])


def test_share_limits_of_work_that_may_wait_hold_over_the_plan() -> None:
    cheap, dear = a_fleet("cheap"), a_fleet("dear", usd_per_gpu_hour=5.0)
    batch = a_class("batch", requests_per_s=4.0, deferrable=True, share=({"fleet": "dear", "min": 0.25},))
    options = [an_option(cheap, a_run()), an_option(dear, a_run())]
    found = plan(a_demand([batch], [cheap, dear]), options, flat(4), min_up_hours=1, gap=0.0)
    # 4 replica-hours of work, one of them on the dear fleet; in every hour it would take 4
    assert found.course is not None
    assert found.course.usd == pytest.approx(3 * 1 + 5)


def test_caps_hold_in_every_hour() -> None:
    demand, options = one_option(4.0, max_watts=500.0)
    batch = a_class("batch", requests_per_s=4.0, deferrable=True)
    demand = demand.model_copy(update={"classes": (*demand.classes, batch)})
    loads = [{"chat": 1.0, "batch": 1.0}, {"chat": 0.0, "batch": 0.0}]
    found = plan(demand, options, hours(loads), min_up_hours=1, gap=0.0)
    assert found.course is not None
    assert [hour.answer.power_w for hour in found.course.hours] == pytest.approx([500.0, 500.0])
    assert found.static is None and found.static_reason == "no split of the busiest hour holds the limits in every hour"


def test_what_cannot_be_is_told_with_its_hour() -> None:
    demand, options = one_option(10.0, fleet={"max_gpus": 2})
    found = plan(demand, options, hours([{"chat": 0.3}, {"chat": 1.0}]))
    assert (found.status, found.course) == ("infeasible", None)
    assert found.reason is not None and found.reason.startswith("2026-02-03 05:00Z: No mix carries the demand")
    batch = a_class("batch", requests_per_s=10.0, deferrable=True)
    late = plan(demand.model_copy(update={"classes": (batch,)}), options, flat(2))
    assert late.reason is not None and "may wait" in late.reason


def test_a_class_without_an_option_is_told_as_in_a_split() -> None:
    fleet = a_fleet()
    demand = a_demand([a_class(slo=(a_slo(10.0),))], [fleet])
    found = plan(demand, [an_option(fleet, a_run(latency=ttft(50.0)))], flat(2))
    assert found.status == "infeasible"
    assert "p99 TTFT 50.0 ms > 10 ms" in str(found.reason)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "0 hours"),
        ([PlanHour(START.replace(tzinfo=None))], "hour 0 starts at"),
        ([PlanHour(START), PlanHour(START + timedelta(hours=2))], "hour 1 starts at"),
        ([PlanHour(START, {"chit": 1.0})], "class chit in hour 0; accepted: chat"),
        ([PlanHour(START, {}, {"fleat": 1.0})], "fleet fleat in hour 0; accepted: fleet"),
        ([PlanHour(START, {"chat": -1.0})], "-1 for a class"),
    ],
)
def test_hours_that_make_no_plan_are_refused(wrong: list[PlanHour], said: str) -> None:
    with pytest.raises(DemandError, match=said):
        plan(*one_option(), wrong)


def test_no_load_at_all_costs_nothing() -> None:
    found = plan(*one_option(), hours([{"chat": 0.0}] * 2))
    assert found.course is not None and (found.status, found.course.objective_usd) == ("optimal", 0.0)


def a_tiny_plan(seed: int) -> tuple[list[Fleet], list[Option], Demand, list[PlanHour], int]:
    """Two options on two fleets of at most 2 replicas, a class that may wait and one that may not, 3 hours."""
    dice = random.Random(seed)
    fleets, options = [], []
    for name in ("a", "b"):
        running = [{"model": "org/model", "gpus_per_replica": 1, "replicas": dice.choice([0, 0, 1])}]
        fleets.append(a_fleet(name, usd_per_gpu_hour=dice.choice([0.5, 1.0, 1.4]), max_gpus=2, today=running, pue=1.2))
        options.append(an_option(fleets[-1], a_run(duration_s=dice.choice([200.0, 250.0, 400.0]))))
    classes = [
        a_class(requests_per_s=dice.uniform(1, 4)),
        a_class("batch", requests_per_s=dice.uniform(0.5, 3), deferrable=True),
    ]
    switch = dice.choice([0.0, 0.3])
    demand = a_demand(classes, fleets, carbon_usd_per_t=dice.choice([0, 2000.0]), switch_usd_per_replica=switch)
    loads = [{one.name: dice.choice([0.0, 0.5, 1.0, 1.5]) for one in classes} for _ in range(3)]
    grams: list[dict[str, float | None]] = [
        {name: dice.choice([50.0, 300.0, 600.0]) for name in "ab"} for _ in range(3)
    ]
    return fleets, options, demand, hours(loads, grams), dice.choice([1, 2, 3])


def least(found: tuple[list[Fleet], list[Option], Demand, list[PlanHour], int]) -> float | None:
    """Every count of every hour; for each the shares as a linear program of tokens, written from the formulation."""
    fleets, options, demand, slots, up = found
    solve = demand.solve
    tokens = {one.name: one.tokens_per_s for one in demand.classes}
    speed = [option.point.tokens_per_s for option in options]
    today = [fleet.offer.today[0].replicas for fleet in fleets]
    price = [[slot.g_per_kwh[name] * 1.2 * solve.usd_per_gram / 1000 for name in "ab"] for slot in slots]  # $ per Wh
    count = len(slots)
    shares = highspy.Highs()
    shares.silent()
    shares.setOptionValue("threads", 1)
    # hour x class (chat, batch) x option, in tokens/s; 400 W above idle at full speed
    for h, _, r in itertools.product(range(count), range(2), range(2)):
        shares.addVar(0.0, highspy.kHighsInf)
        shares.changeColCost(shares.getNumCol() - 1, price[h][r] * 400 / speed[r])

    def row(parts: list[tuple[int, int, int]], low: float, high: float) -> None:
        columns = np.array([4 * h + 2 * kind + r for h, kind, r in parts], dtype=np.int32)
        shares.addRow(low, high, len(columns), columns, np.ones(len(columns)))

    pools = list(itertools.product(range(count), range(2)))
    for h, r in pools:
        row([(h, 0, r), (h, 1, r)], 0.0, 0.0)
    for h in range(count):
        asked = slots[h].load["chat"] * tokens["chat"]
        row([(h, 0, 0), (h, 0, 1)], asked, asked)
        arrived = sum(slots[e].load["batch"] for e in range(h + 1)) * tokens["batch"]
        served = [(e, 1, r) for e in range(h + 1) for r in range(2)]
        row(served, arrived if h == count - 1 else 0.0, arrived)
    best = None
    for flat_counts in itertools.product(range(3), repeat=2 * count):
        n = [flat_counts[2 * hour : 2 * hour + 2] for hour in range(count)]
        moved = [[n[h][r] - (n[h - 1][r] if h else today[r]) for r in range(2)] for h in range(count)]
        started = [[max(0, each) for each in hour] for hour in moved]
        if any(
            sum(started[e][r] for e in range(max(0, h - up + 1), h + 1)) > n[h][r]
            for h in range(count)
            for r in range(2)
        ):
            continue
        alone = sum(
            n[h][r] * (fleets[r].usd_per_gpu_hour + 100 * price[h][r])
            + abs(moved[h][r]) * solve.switch_usd_per_replica * (count / 24 if h == 0 else 1)
            for h in range(count)
            for r in range(2)
        )
        if best is not None and alone >= best:
            continue
        for place, (h, r) in enumerate(pools):
            shares.changeRowBounds(place, 0.0, n[h][r] * speed[r])
        shares.run()
        if shares.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            cost = alone + shares.getInfo().objective_function_value
            best = cost if best is None else min(best, cost)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_counts_are_cheaper_than_the_plan_s(seed: int) -> None:
    tiny = a_tiny_plan(seed)
    _, options, demand, slots, up = tiny
    found, best = plan(demand, options, slots, min_up_hours=up, gap=0.0), least(tiny)
    if best is None:
        assert found.status == "infeasible"
        return
    assert found.course is not None and found.bound_usd is not None
    assert found.course.objective_usd == pytest.approx(best, rel=1e-6, abs=1e-7)
    assert found.bound_usd <= found.course.objective_usd
    if found.static is not None:
        assert found.course.objective_usd <= found.static.objective_usd * (1 + 1e-9)


def test_first_plans_hold_every_row_and_are_close_to_the_relaxation() -> None:
    _, options, demand, slots, up = a_tiny_plan(3)
    horizon = build_horizon(Timeline.of(demand, options, slots), up)
    relaxed = Instance(horizon.program.columns, horizon.program.rows, {}).solve(horizon.program.costs, gap=0.0)
    assert relaxed is not None
    for first in (rounded_up(horizon), rolled(horizon, 10.0)):
        assert first is not None and set(first) == {n for n, one in enumerate(horizon.program.columns) if one.whole}
        found = Instance(horizon.program.columns, horizon.program.rows, first).solve(horizon.program.costs, gap=0.0)
        assert found is not None and found[1] >= relaxed[1] - 1e-9
        for row in horizon.program.rows:
            assert row.low - 1e-7 <= row.value(found[0]) <= row.high + 1e-7


def test_a_day_is_planned_within_a_percent_of_its_bound() -> None:
    fleets = [a_fleet(), a_fleet("far", usd_per_gpu_hour=0.7)]
    demand = a_demand([a_class(requests_per_s=60.0), a_class("batch", requests_per_s=20.0, deferrable=True)], fleets)
    options = [an_option(fleets[0], a_run()), an_option(fleets[1], a_run(duration_s=400.0))]
    day = hours([{"chat": 0.2 + 0.8 * (n % 12) / 11} for n in range(24)])
    found = plan(demand, options, day)
    assert (found.status, found.reason) == ("optimal", None)
    assert found.course is not None and found.static is not None and found.gap is not None and found.gap <= 0.01
    assert found.course.usd < found.static.usd
    served = sum(hour.answer.tokens_per_s for hour in found.course.hours)
    assert served == pytest.approx(24 * 200 * (0.6 * 60 + 20))
