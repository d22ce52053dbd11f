from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from app.errors import DemandError
from app.split.answer import SplitAnswer, build_answer
from app.split.demand import Demand
from app.split.options import Option, admit
from app.split.recommend import recommend
from app.split.solve import Solution, solve

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft


def solved(demand: Demand, options: list[Option]) -> tuple[Solution, SplitAnswer]:
    admission = admit(demand, options)
    solution = solve(demand, admission)
    assert solution is not None
    return solution, build_answer(demand, admission, solution)


def counts(answer: SplitAnswer) -> dict[str, int]:
    """Fleet -> replicas, for answers with one pool per fleet."""
    return {pool.option.fleet.name: pool.count for pool in answer.pools}


def a_point(fleet: Any, tokens_per_s: float = 800.0, **changes: Any) -> Option:
    return an_option(fleet, a_run(duration_s=200_000 / tokens_per_s, **changes))


@pytest.mark.parametrize(
    ("rate", "max_utilisation", "replicas"),
    [
        (4.0, 1.0, 1),  # 4 * 200 = 800 tokens/s on points of 800
        (4.01, 1.0, 2),
        (4.0, 0.8, 2),  # 800 on 640 each
        (3.2, 0.8, 1),  # 640 on 640: exactly full is allowed
        (9.7, 0.8, 4),  # 1,940 / 640 = 3.03
        (0.001, 0.8, 1),
    ],
)
def test_whole_replicas_carry_the_load_at_the_highest_utilisation(
    rate: float, max_utilisation: float, replicas: int
) -> None:
    fleet = a_fleet()
    demand = a_demand([a_class(requests_per_s=rate)], [fleet], max_utilisation=max_utilisation)
    solution, answer = solved(demand, [a_point(fleet)])
    assert (solution.replicas, answer.usd_per_hour) == ((replicas,), float(replicas))
    assert answer.pools[0].utilisation == pytest.approx(rate * 200 / (replicas * 800), rel=1e-9)


def test_no_load_takes_no_replicas_and_has_no_cost_per_token() -> None:
    fleet = a_fleet()
    demand = a_demand([a_class(requests_per_s=0.0)], [fleet])
    solution, answer = solved(demand, [a_point(fleet)])
    assert solution == Solution((0,), {}, 0.0, 0.0, 0.0)
    assert (answer.usd_per_hour, answer.usd_per_mtok, answer.g_per_mtok, answer.tokens_per_joule) == (
        0,
        None,
        None,
        None,
    )


def test_a_class_without_load_changes_nothing() -> None:
    fleet = a_fleet()
    busy, idle = a_class("busy", requests_per_s=4.0), a_class("idle", requests_per_s=0.0)
    alone, _ = solved(a_demand([busy], [fleet]), [a_point(fleet)])
    beside, answer = solved(a_demand([busy, idle], [fleet]), [a_point(fleet)])
    assert beside == alone
    assert {share.class_name for share in answer.shares} == {"busy"}


def test_too_few_gpus_is_no_solution() -> None:
    fleet = a_fleet(max_gpus=3)
    demand = a_demand([a_class(requests_per_s=8.0)], [fleet])  # 1,600 tokens/s: 2 replicas of 2 GPUs
    assert solve(demand, admit(demand, [a_point(fleet, gpu_count=2)])) is None


def test_classes_share_a_replica() -> None:
    fleet = a_fleet()
    demand = a_demand([a_class("chat", requests_per_s=1.5), a_class("batch", requests_per_s=2.5)], [fleet])
    _, answer = solved(demand, [a_point(fleet)])
    assert counts(answer) == {"fleet": 1}
    assert [share.share for share in answer.shares] == pytest.approx([1.0, 1.0])


def test_ties_go_to_fewer_replicas_before_the_fleets_name() -> None:
    # 800 tokens/s for $2 an hour either way: two small replicas of fleet a, or one large one of fleet b
    a, b = a_fleet("a"), a_fleet("b")
    options = [a_point(a, 400.0), a_point(b, 800.0, gpu_count=2)]
    _, answer = solved(a_demand([a_class(requests_per_s=4.0)], [a, b]), options)
    assert counts(answer) == {"b": 1}


@pytest.mark.parametrize("replicas", [1, 2, 3, 7])
def test_ties_between_like_fleets_go_to_the_first_name(replicas: int) -> None:
    fleets = [a_fleet(name) for name in ("c", "a", "b")]
    demand = a_demand([a_class(requests_per_s=4.0 * replicas)], fleets)
    _, answer = solved(demand, [a_point(fleet) for fleet in fleets])
    assert counts(answer) == {"a": replicas}


def test_ties_between_shares_go_to_the_least_power() -> None:
    # One replica each of 800 tokens/s for 1,000. Above idle, a takes 400 W / 800 = 0.5 W per token/s and b 0.25:
    # b is filled (0.8 of the class) and a takes the rest. Power: 100 + 0.5 * 200 + 100 + 0.25 * 800 = 500 W.
    a, b = a_fleet("a", max_gpus=1), a_fleet("b", max_gpus=1)
    options = [a_point(a), an_option(b, a_run(), loaded_w=300.0)]
    _, answer = solved(a_demand([a_class(requests_per_s=5.0)], [a, b]), options)
    assert {share.option.fleet.name: share.share for share in answer.shares} == pytest.approx({"a": 0.2, "b": 0.8})
    assert answer.power_w == pytest.approx(500.0, rel=1e-9)


def test_one_pool_is_filled_before_another_is_opened() -> None:
    # three runs of one shape: the 800 tokens/s of one replica are not spread over three pools
    fleet = a_fleet()
    options = [a_point(fleet, offered_requests_per_s=qps) for qps in (1.0, 2.0, 4.0)]
    _, answer = solved(a_demand([a_class(requests_per_s=11.0)], [fleet]), options)
    assert [pool.count for pool in answer.pools] == [3]


@pytest.mark.parametrize(
    ("pue", "usd_per_t", "chosen"),
    [
        # at full load 500 W on 700 g/kWh: 350 g/h; b is $0.10 dearer: 0.10 / 350 g = $285.71/t
        (1.0, 0.0, "a"),
        (1.0, 285.0, "a"),
        (1.0, 287.0, "b"),
        # PUE 2 doubles the grams and halves the price that turns it: $142.86/t
        (2.0, 142.0, "a"),
        (2.0, 144.0, "b"),
    ],
)
def test_a_carbon_price_turns_the_choice_where_it_outweighs_the_dollars(
    pue: float, usd_per_t: float, chosen: str
) -> None:
    a, b = a_fleet("a", g_per_kwh=700.0, pue=pue), a_fleet("b", g_per_kwh=0.0, usd_per_gpu_hour=1.1)
    demand = a_demand([a_class(requests_per_s=4.0)], [a, b], carbon_usd_per_t=usd_per_t)
    solution, answer = solved(demand, [a_point(a), a_point(b)])
    assert counts(answer) == {chosen: 1}
    expected = 1.1 if chosen == "b" else 1.0 + 350 * pue * usd_per_t / 1e6
    assert solution.objective == pytest.approx(expected, rel=1e-9)
    assert answer.usd_per_hour == (1.1 if chosen == "b" else 1.0)


@pytest.mark.parametrize(
    ("pue", "usd_per_kwh", "chosen"),
    [
        # at full load 500 W for an hour: 0.5 kWh; b is $0.10 dearer: 0.10 / 0.5 kWh = $0.20/kWh
        (1.0, 0.0, "a"),
        (1.0, 0.199, "a"),
        (1.0, 0.201, "b"),
        (2.0, 0.099, "a"),
        (2.0, 0.101, "b"),
    ],
)
def test_electricity_of_own_gpus_is_part_of_the_dollars(pue: float, usd_per_kwh: float, chosen: str) -> None:
    a, b = a_fleet("a", pue=pue, usd_per_kwh=usd_per_kwh), a_fleet("b", usd_per_gpu_hour=1.1)
    demand = a_demand([a_class(requests_per_s=4.0)], [a, b])
    solution, answer = solved(demand, [a_point(a), a_point(b)])
    assert counts(answer) == {chosen: 1}
    expected = 1.1 if chosen == "b" else 1.0 + 0.5 * pue * usd_per_kwh
    assert solution.objective == pytest.approx(expected, rel=1e-9)
    assert answer.usd_per_hour == pytest.approx(expected, rel=1e-9)


def test_a_replica_s_electricity_follows_its_load() -> None:
    # one replica of 800 tokens/s at 200: 100 + 400 x 0.25 = 200 W at $0.50/kWh: $0.10/h beside $1.00/h
    fleet = a_fleet(usd_per_kwh=0.5)
    _, answer = solved(a_demand([a_class()], [fleet]), [a_point(fleet)])
    assert answer.usd_per_hour == pytest.approx(1.1, rel=1e-9)


def test_electricity_of_unknown_watts_is_refused() -> None:
    fleet = a_fleet(usd_per_kwh=0.5)
    unknown = an_option(fleet, a_run(), idle_w=None, loaded_w=None)
    with pytest.raises(DemandError, match="fleet fleet: `usd_per_kwh` needs its watts"):
        solved(a_demand([a_class()], [fleet]), [unknown])


def test_the_gap_is_the_distance_to_a_proven_bound() -> None:
    dice = random.Random(7)
    fleets = [a_fleet(name, usd_per_gpu_hour=dice.uniform(0.2, 2)) for name in ("a", "b", "c")]
    options = [
        a_point(fleet, dice.uniform(300, 900), offered_requests_per_s=qps) for fleet in fleets for qps in (1.0, 2.0)
    ]
    classes = [a_class(f"class {k}", requests_per_s=dice.uniform(1, 20)) for k in range(3)]
    exact, _ = solved(a_demand(classes, fleets), options)
    loose, _ = solved(a_demand(classes, fleets, gap=0.05), options)
    assert exact.gap == pytest.approx(0.0, abs=1e-8)
    assert loose.gap <= 0.05 + 1e-9
    assert loose.bound <= exact.objective * (1 + 1e-9) <= loose.objective * (1 + 2e-9)
    assert loose.objective <= exact.objective / (1 - 0.05) + 1e-9


def tied_instance() -> tuple[list[Any], list[Any], list[Option]]:
    """Two classes and 12 points of which many cost the same."""
    fleets = [a_fleet("a"), a_fleet("b"), a_fleet("c", usd_per_gpu_hour=0.5, max_gpus=3)]
    options = [
        an_option(
            fleet,
            a_run(gpu_count=gpus, duration_s=250.0 / gpus, offered_requests_per_s=qps, latency=ttft(30.0 * qps)),
        )
        for fleet in fleets
        for gpus in (1, 2)
        for qps in (1.0, 4.0)
    ]
    return (
        [a_class("chat", requests_per_s=6.3, slo=(a_slo(60),)), a_class("batch", requests_per_s=17.0)],
        fleets,
        options,
    )


def facts(answer: SplitAnswer) -> tuple[Any, ...]:
    return (
        [(pool.option.label, pool.count) for pool in answer.pools],
        [(share.class_name, share.option.label, round(share.share, 9)) for share in answer.shares],
        [(out.class_name, out.option.label, out.reason) for out in answer.excluded],
        answer.usd_per_hour,
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_fleets_and_runs_does_not_change_the_answer(seed: int) -> None:
    classes, fleets, options = tied_instance()
    expected = facts(recommend(a_demand(classes, fleets), options).answer)
    dice = random.Random(seed)
    dice.shuffle(fleets)
    dice.shuffle(options)
    assert facts(recommend(a_demand(classes, fleets), options).answer) == expected


def test_the_order_of_classes_does_not_change_cost_and_replicas() -> None:
    classes, fleets, options = tied_instance()
    found = [
        facts(recommend(a_demand(list(order), fleets), options).answer) for order in itertools.permutations(classes)
    ]
    assert found[0][0] == found[1][0]
    assert found[0][3] == found[1][3]


def test_solving_twice_gives_the_same_answer_to_the_last_bit() -> None:
    classes, fleets, options = tied_instance()
    demand = a_demand(classes, fleets)
    assert recommend(demand, options) == recommend(demand, options)


def test_the_solver_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    classes, fleets, options = tied_instance()
    recommend(a_demand(classes, fleets), options)
    assert capfd.readouterr() == ("", "")


def test_unknown_power_leaves_watts_and_grams_missing_with_the_card_named() -> None:
    fleet = a_fleet()
    _, answer = solved(a_demand([a_class()], [fleet]), [an_option(fleet, a_run(), idle_w=None, loaded_w=None)])
    assert (answer.power_w, answer.g_per_hour, answer.g_per_mtok, answer.tokens_per_joule) == (None, None, None, None)
    assert answer.missing == ("no power is known for X",)
    assert answer.usd_per_hour == 1.0


def test_unknown_grams_leave_only_grams_missing() -> None:
    fleet = a_fleet(g_per_kwh=None)
    _, answer = solved(a_demand([a_class()], [fleet]), [a_point(fleet)])
    # 200 of 800 tokens/s: 100 + 400 * 0.25 = 200 W; 200 tokens/s / 200 W = 1 token/J
    assert (answer.power_w, answer.tokens_per_joule) == (200.0, 1.0)
    assert (answer.g_per_hour, answer.missing) == (None, ("fleet fleet: no zone is set",))


def test_one_pool_without_grams_leaves_the_sum_missing_rather_than_partial() -> None:
    a, b = a_fleet("a", max_gpus=1), a_fleet("b", g_per_kwh=None, max_gpus=1)
    _, answer = solved(a_demand([a_class(requests_per_s=8.0)], [a, b]), [a_point(a), a_point(b)])
    assert counts(answer) == {"a": 1, "b": 1}
    assert answer.g_per_hour is None
    assert answer.power_w == 1000.0


def test_figures_per_million_tokens_by_hand() -> None:
    # 800 tokens/s = 2.88 Mtok/h for $1; 500 W * PUE 1.2 * 100 g/kWh = 60 g/h; 800 / 500 W = 1.6 tokens/J
    fleet = a_fleet(pue=1.2)
    _, answer = solved(a_demand([a_class(requests_per_s=4.0)], [fleet]), [a_point(fleet)])
    assert answer.usd_per_mtok == pytest.approx(1 / 2.88, rel=1e-12)
    assert answer.g_per_hour == pytest.approx(60.0, rel=1e-12)
    assert answer.g_per_mtok == pytest.approx(60 / 2.88, rel=1e-12)
    assert answer.tokens_per_joule == pytest.approx(1.6, rel=1e-12)


def test_a_gpu_limit_binds_when_no_further_replica_fits() -> None:
    fleet = a_fleet(max_gpus=5)
    _, answer = solved(a_demand([a_class(requests_per_s=8.0)], [fleet]), [a_point(fleet, gpu_count=2)])
    assert answer.limits == ("4 of 5 GPUs of fleet are in use and no further replica fits",)


@pytest.mark.parametrize(("max_gpus", "limits"), [(2, ("all 2 GPUs of fleet are in use",)), (3, ()), (None, ())])
def test_a_gpu_limit_that_is_reached_is_told(max_gpus: int | None, limits: tuple[str, ...]) -> None:
    fleet = a_fleet(max_gpus=max_gpus)
    _, answer = solved(a_demand([a_class(requests_per_s=8.0)], [fleet]), [a_point(fleet)])
    assert answer.limits == limits
