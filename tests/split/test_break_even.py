"""Break-even between two fleets, by hand and on random demands."""

from __future__ import annotations

from typing import Any

import pytest

from app.split.break_even import BreakEven, alone, break_evens
from app.split.demand import Demand
from app.split.options import Option, admit

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft
from .small_instances import draw


def between(rate: float, *, first: dict[str, Any], second: dict[str, Any], big: float = 1.0, **solve: Any) -> BreakEven:
    """Two fleets of 800 tokens/s (the second: x `big`) for requests of 200 tokens; a replica draws 100 to 500 W."""
    fleets = [a_fleet("small", **first), a_fleet("big", **second)]
    options = [an_option(fleets[0], a_run()), an_option(fleets[1], a_run(duration_s=250.0 / big))]
    [found] = break_evens(a_demand([a_class(requests_per_s=rate)], fleets, **solve), options)
    return found


def test_the_load_from_which_one_big_replica_is_cheaper_than_many_small_ones() -> None:
    # small carries 4 req/s for $1, big 40 for $5.50: five small cost $5, the sixth is needed beyond 20 req/s
    found = between(10.0, first={}, second={"usd_per_gpu_hour": 5.5}, big=10.0)
    assert (found.cheaper.option.fleet.name, found.cheaper.replicas, found.cheaper.usd_per_hour) == ("small", 3, 3.0)
    assert (found.dearer.replicas, found.dearer.usd_per_hour) == (1, 5.5)
    assert (found.load.low, found.load.high) == (None, pytest.approx(20.0))
    assert found.load.text == "small costs no more than big for chat from 1 (looked at no further) to 20 req/s."


def test_the_load_below_which_the_big_replica_is_too_large() -> None:
    # at 30 req/s 8 small ($8) against $5.50; down to 20 req/s 6 are needed, at 20 five. Upwards big never costs more:
    # beyond 40 req/s two cost $11, as much as eleven small; beyond 80 three cost $16.50, small $21
    found = between(30.0, first={}, second={"usd_per_gpu_hour": 5.5}, big=10.0)
    assert (found.cheaper.option.fleet.name, found.load.low) == ("big", pytest.approx(20.0))
    assert found.load.high is None


def test_the_price_at_which_the_dearer_fleet_costs_what_the_cheaper_does() -> None:
    # 10 req/s: 3 small at $1 = $3; one big replica of one GPU at $3
    found = between(10.0, first={}, second={"usd_per_gpu_hour": 5.5}, big=10.0)
    assert found.price.value == pytest.approx(3.0)
    assert found.price.text == "At $3 instead of $5.5 per GPU-hour big costs what small does."


def test_electricity_can_make_a_fleet_too_dear_even_for_nothing() -> None:
    # big draws 200 W and more at $10/kWh: above $2; small costs $1
    found = between(4.0, first={}, second={"usd_per_gpu_hour": 5.0, "usd_per_kwh": 10.0})
    assert found.price.value is None
    assert found.price.text == "Even for nothing big would cost more than small for chat."


def test_of_several_options_the_price_is_that_of_the_best_one_at_it() -> None:
    # 1 replica of 2 GPUs or 2 of 1 GPU carry the class, at any price 2 GPUs; 3 GPUs never
    small, big = a_fleet("small"), a_fleet("big", usd_per_gpu_hour=4.0)
    options = [
        an_option(small, a_run()),
        an_option(big, a_run(gpu_count=2, duration_s=125.0)),
        an_option(big, a_run(gpu_count=3, duration_s=120.0, offered_requests_per_s=8.0)),
    ]
    [found] = break_evens(a_demand([a_class(requests_per_s=8.0)], [small, big]), options)
    # small: 2 x $1; big: 2 GPUs at $1
    assert (found.cheaper.usd_per_hour, found.dearer.usd_per_hour, found.price.value) == (2.0, 8.0, 1.0)


def test_the_grid_at_which_a_carbon_price_turns_the_order() -> None:
    # a full replica draws 500 W. At $0.001/g: small $1 + 0.5 x 2,000 x 0.001 = $2; big $2.50 and more at any I
    found = between(
        4.0, first={"g_per_kwh": 2000.0}, second={"g_per_kwh": 0.0, "usd_per_gpu_hour": 2.5}, carbon_usd_per_t=1000.0
    )
    assert found.cheaper.usd_per_hour == pytest.approx(2.0)
    assert (found.carbon.value, found.carbon.text) == (
        None, "Even without any grams big would cost more than small for chat.",
    )  # fmt: skip
    # at $1.80 it costs $2 at I = 400; now, at 600 g/kWh, $2.10
    found = between(
        4.0, first={"g_per_kwh": 2000.0}, second={"g_per_kwh": 600.0, "usd_per_gpu_hour": 1.8}, carbon_usd_per_t=1000.0
    )
    assert found.carbon.value == pytest.approx(400.0)
    assert found.carbon.text == "At 400 g/kWh big costs what small does, carbon included."


def test_without_a_carbon_price_no_grid_turns_the_cost() -> None:
    found = between(4.0, first={}, second={"usd_per_gpu_hour": 2.0})
    assert found.carbon.value is None and "no price" in found.carbon.text


def test_the_grid_at_which_both_emit_the_same() -> None:
    # 4 req/s: small 500 W x 700 = 350 g/h; big, twice as fast, 300 W x 500 = 150 g/h. small emits 150 at 300 g/kWh
    found = between(4.0, first={"g_per_kwh": 700.0}, second={"g_per_kwh": 500.0, "usd_per_gpu_hour": 2.0}, big=2.0)
    assert (found.cheaper.g_per_hour, found.dearer.g_per_hour) == (pytest.approx(350.0), pytest.approx(150.0))
    assert found.grams.value == pytest.approx(300.0)
    assert found.grams.text == "At 300 g/kWh small emits what big does for chat."


def test_unknown_grams_have_no_break_even() -> None:
    found = between(4.0, first={"g_per_kwh": None}, second={"usd_per_gpu_hour": 2.0})
    assert (found.grams.value, found.grams.text) == (None, "The grams of both fleets would have to be known.")


def test_availability_and_spares_count() -> None:
    # 4 req/s: spot carries half of the time, so two replicas, each half paid: 2 x $1 x 0.5; `big` has a spare: 2 x $2
    found = between(4.0, first={"availability": 0.5}, second={"usd_per_gpu_hour": 2.0, "spare_replicas": 1})
    assert (found.cheaper.replicas, found.cheaper.usd_per_hour) == (2, 1.0)
    assert (found.dearer.replicas, found.dearer.usd_per_hour) == (2, 4.0)
    assert found.price.value == pytest.approx(0.5)


def test_fleets_that_cannot_carry_the_class_alone_are_left_out() -> None:
    fast, slow, tiny = a_fleet("fast"), a_fleet("slow"), a_fleet("tiny", max_gpus=1)
    options = [
        an_option(fast, a_run(latency=ttft(50.0))),
        an_option(slow, a_run(latency=ttft(300.0))),
        an_option(tiny, a_run(latency=ttft(50.0))),
    ]
    classes = [
        a_class(requests_per_s=8.0, slo=(a_slo(60),)),
        a_class("batch", requests_per_s=1.0),
        a_class("none", requests_per_s=0.0),
    ]
    found = list(break_evens(a_demand(classes, [fast, slow, tiny]), options))
    pairs = [(one.class_name, {one.cheaper.option.fleet.name, one.dearer.option.fleet.name}) for one in found]
    assert pairs == [("batch", {"fast", "slow"}), ("batch", {"fast", "tiny"}), ("batch", {"slow", "tiny"})]


def test_a_fleet_that_runs_out_of_gpus_is_overtaken_there() -> None:
    # small has 5 GPUs: 20 req/s
    found = between(10.0, first={"max_gpus": 5}, second={"usd_per_gpu_hour": 2.0})
    assert (found.cheaper.option.fleet.name, found.load.high) == ("small", pytest.approx(20.0))


def usd_alone(demand: Demand, options: list[Option], class_name: str, fleet: str, rate: float) -> float:
    """The least $/h of a fleet that carries the class alone at this rate, option by option."""
    admission = admit(demand, options)
    one = next(one for one in demand.classes if one.name == class_name)
    mine = [admission.options[index] for index in admission.admissible[class_name]]
    found = [
        alone(demand.solve, option, rate / one.requests_per_s * option.load_of(one))
        for option in mine
        if option.fleet.name == fleet
    ]
    return min((it.usd_per_hour for it in found if it is not None), default=float("inf"))


def test_the_order_of_two_fleets_holds_up_to_the_load_and_turns_just_beyond_it() -> None:
    turns = 0
    for seed in range(30):
        demand, options = draw(seed, carbon_usd_per_t=[0.0, 300.0][seed % 2])
        for found in break_evens(demand, options):
            now = next(one.requests_per_s for one in demand.classes if one.name == found.class_name)
            cheaper, dearer = found.cheaper.option.fleet.name, found.dearer.option.fleet.name

            def ahead(
                rate: float, names: tuple[str, str] = (cheaper, dearer), label: str = found.class_name,
                demand: Demand = demand, options: list[Option] = options,
            ) -> bool:  # fmt: skip
                first, second = (usd_alone(demand, options, label, name, rate) for name in names)
                return first <= second + 1e-6

            for end, beyond in ((found.load.low, 1 - 1e-6), (found.load.high, 1 + 1e-6)):
                turns += end is not None
                until = now * (0.1 if beyond < 1 else 10.0) if end is None else end
                # as far as 1e-6 before the end: there a replica more or fewer is needed
                near = until / beyond
                assert all(ahead(now + part * (near - now)) for part in (0.0, 0.21, 0.47, 0.73, 0.96, 1.0))
                assert end is None or not ahead(end * beyond)
    assert turns > 20
