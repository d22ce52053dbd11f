"""Ranges: inside the answer stays, just outside it is another one; hand-worked and on random demands."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.split.demand import Demand
from app.split.inputs import FACTOR, inputs
from app.split.options import Option
from app.split.robustness import PRECISION, InputRange, exact_answer, robustness, signature

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft
from .small_instances import draw

SEEDS = range(8)
MOST_SOLVES = 26


def two_fleets(**solve: float) -> tuple[Demand, list[Option]]:
    """800 tokens/s a replica, 200 a request: `cheap` at $0.50 (p99 TTFT 74 ms), `dear` at $2 (50 ms); 6 req/s, so 2."""
    fleets = [a_fleet("cheap", usd_per_gpu_hour=0.5), a_fleet("dear", usd_per_gpu_hour=2.0)]
    options = [an_option(fleet, a_run(latency=ttft(p99))) for fleet, p99 in zip(fleets, (74.0, 50.0), strict=True)]
    return a_demand([a_class(requests_per_s=6.0, slo=(a_slo(100),))], fleets, **solve), options


def ranges(demand: Demand, options: Sequence[Option], names: Sequence[str] | None = None) -> dict[str, InputRange]:
    moved = [one for one in inputs(demand, options) if names is None or one.name in names]
    return {found.input.name: found for found in robustness(exact_answer(demand, options), moved)}


def test_every_input_has_a_range_in_the_order_of_the_demand() -> None:
    found = list(ranges(*two_fleets()))
    assert found == [
        "rps.chat", "tokens.chat", "slo.chat",
        "usd.cheap", "g.cheap", "speed.cheap", "usd.dear", "g.dear", "speed.dear",
        "carbon", "util",
    ]  # fmt: skip


def test_two_replicas_stay_from_just_above_four_to_eight_requests_per_second() -> None:
    found = ranges(*two_fleets(), ["rps.chat"])["rps.chat"]
    assert (found.low, found.high) == (pytest.approx(4.0, rel=PRECISION), pytest.approx(8.0, rel=PRECISION))
    assert found.low is not None and found.low > 4.0 and found.high is not None and found.high <= 8.0 + 1e-6
    assert (found.low_is_open, found.high_is_open) == (False, False)
    # 0.8 x 6 = 4.8 and 1.25 x 6 = 7.5 req/s take 2 replicas as well
    assert [(bar.value, bar.objective_usd_per_hour) for bar in found.bars] == [(pytest.approx(4.8), 1.0), (7.5, 1.0)]
    assert found.text.startswith("chat: rate: the answer stays from 4.0") and "req/s" in found.text


def test_tokens_and_throughput_and_utilisation_move_as_the_load_does() -> None:
    found = ranges(*two_fleets(max_utilisation=0.9))
    # 1,200 tokens/s on 720 each: 2 replicas from 720 to 1,440 tokens/s, so from 0.6 to 1.2 times
    assert found["tokens.chat"].low == pytest.approx(0.6 * 200, rel=PRECISION)
    assert found["tokens.chat"].high == pytest.approx(1.2 * 200, rel=PRECISION)
    assert found["speed.cheap"].low == pytest.approx(1 / 1.2, rel=PRECISION)
    assert found["speed.cheap"].high == pytest.approx(1 / 0.6, rel=PRECISION)
    assert found["util"].low == pytest.approx(0.9 / 1.2, rel=PRECISION)
    assert (found["util"].high, found["util"].high_is_open) == (1.0, True)  # there is no more than all of it
    # twice as fast, one dear replica ($2) still costs more than two cheap ones ($1)
    assert (found["speed.dear"].high, found["speed.dear"].high_is_open) == (10.0, True)


def test_a_price_stays_until_the_other_fleet_costs_as_much() -> None:
    found = ranges(*two_fleets())
    assert found["usd.cheap"].high == pytest.approx(2.0, rel=PRECISION)
    assert (found["usd.cheap"].low, found["usd.cheap"].low_is_open) == (pytest.approx(0.05), True)
    assert found["usd.dear"].low == pytest.approx(0.5, rel=PRECISION)
    assert found["usd.dear"].high_is_open
    assert [bar.objective_usd_per_hour for bar in found["usd.cheap"].bars] == pytest.approx([0.8, 1.25])


def test_an_slo_stays_down_to_what_is_used_and_up_to_what_comes_in() -> None:
    demand, options = two_fleets()
    found = ranges(demand, options, ["slo.chat"])["slo.chat"]
    assert (found.low, found.high, found.high_is_open) == (74.0, 1000.0, True)
    tight = demand.model_copy(update={"classes": (a_class(requests_per_s=6.0, slo=(a_slo(60),)),)})
    found = ranges(tight, options, ["slo.chat"])["slo.chat"]
    assert (found.low, found.high) == (50.0, 74.0)  # at 74 ms the cheap fleet comes in
    assert [bar.objective_usd_per_hour for bar in found.bars] == [None, 1.0]  # 48 ms: nothing; 75 ms: 2 cheap
    assert found.bars[0].value == pytest.approx(48.0)


def test_a_carbon_price_of_nothing_is_looked_at_in_dollars() -> None:
    # 2 replicas, 1,200 of 1,600 tokens/s. Two cheap: 2 x 100 + 1.5 x 400 = 800 W, 800 g/h. One dear, filled, and
    # one cheap with the rest: 50 + 300 = 350 g/h for $0.10 more: worth it from $0.10 / 0.45 kg = $222/t
    fleets = [
        a_fleet("cheap", usd_per_gpu_hour=0.5, g_per_kwh=1000.0),
        a_fleet("dear", usd_per_gpu_hour=0.6, g_per_kwh=100.0),
    ]
    options = [an_option(fleet, a_run()) for fleet in fleets]
    demand = a_demand([a_class(requests_per_s=6.0)], fleets)
    found = ranges(demand, options, ["carbon"])["carbon"]
    assert (found.low, found.low_is_open) == (0.0, True)
    assert found.high == pytest.approx(0.1 / 0.45 * 1000, rel=PRECISION)
    assert found.bars == ()
    assert ranges(demand, options, ["g.cheap"])["g.cheap"].text == "cheap: grid: it does not bear on the answer."


def test_grams_count_once_carbon_has_a_price() -> None:
    fleets = [
        a_fleet("cheap", usd_per_gpu_hour=0.5, g_per_kwh=100.0),
        a_fleet("dear", usd_per_gpu_hour=0.6, g_per_kwh=100.0),
    ]
    options = [an_option(fleet, a_run()) for fleet in fleets]
    demand = a_demand([a_class(requests_per_s=6.0)], fleets, carbon_usd_per_t=1000.0)
    # two cheap emit 0.8 I, one of them with a filled dear one 0.3 I + 50: $0.10 at $0.001/g is 100 g, so I = 300
    found = ranges(demand, options, ["g.cheap"])["g.cheap"]
    assert found.high == pytest.approx(300.0, rel=PRECISION)
    assert found.low_is_open


def test_what_cannot_be_moved_says_why() -> None:
    fleet = a_fleet(g_per_kwh=None, usd_per_gpu_hour=0.0)
    demand = a_demand([a_class(requests_per_s=0.0), a_class("batch")], [fleet])
    found = ranges(demand, [an_option(fleet, a_run())])
    assert found["rps.chat"].text == "chat: rate: no range, it is 0."
    assert found["usd.fleet"].reason == "it is 0"
    assert found["g.fleet"].reason == "its grams are not known"
    assert found["carbon"].reason == "grams are not known, fleet fleet: no zone is set"
    assert found["tokens.chat"].text.endswith("it does not bear on the answer.")
    assert all(one.low is None and one.bars == () for one in found.values() if one.reason)


def test_an_infeasible_demand_has_no_ranges() -> None:
    fleet = a_fleet(max_gpus=1)
    assert ranges(a_demand([a_class(requests_per_s=50.0)], [fleet]), [an_option(fleet, a_run())]) == {}


def test_only_the_inputs_that_are_named_are_searched() -> None:
    assert list(ranges(*two_fleets(), ["util", "usd.dear"])) == ["usd.dear", "util"]


@pytest.mark.parametrize("seed", SEEDS)
def test_inside_a_range_the_answer_stays_and_just_outside_it_changes(seed: int) -> None:
    demand, options = draw(seed, carbon_usd_per_t=[0.0, 300.0][seed % 2])
    every = {one.name: one for one in inputs(demand, options)}
    found = ranges(demand, options)
    for name, one in found.items():
        assert one.solves <= MOST_SOLVES
        if one.low is None or one.high is None or one.input.is_idle:
            continue
        moved, value = every[name], every[name].value
        base = signature(moved.changed(value).answer())
        assert one.low <= value <= one.high
        # an SLO's end is where a better split comes in, other ends are the last value seen to stay
        high = one.high if not one.input.slo or one.high_is_open else one.high * (1 - 1e-9)
        for inside in (one.low, (one.low + value) / 2, (value + high) / 2, high):
            assert signature(moved.changed(inside).answer()) == base, (name, inside)
        step = 1 + 2 * PRECISION
        if not one.low_is_open:
            assert signature(moved.changed(one.low / step).answer()) != base, name
        if not one.high_is_open:
            outside = one.high if one.input.slo else max(one.high * step, one.high + 1.0 * (value == 0))
            assert signature(moved.changed(outside).answer()) != base, name


def test_the_ends_are_those_of_what_is_looked_at() -> None:
    demand, options = draw(0)
    for one in inputs(demand, options):
        if one.value and not one.reason and one.name != "util":
            assert (one.low, one.high) == (pytest.approx(one.value / FACTOR), pytest.approx(one.value * FACTOR))
