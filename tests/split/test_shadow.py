"""Shadow prices: hand-worked ones in their words, and each the difference of two exact solves."""

from __future__ import annotations

from typing import Any

import pytest

from app.split.demand import Demand
from app.split.options import Option
from app.split.recommend import best_split
from app.split.shadow import ShadowPrice, shadow_prices

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft
from .small_instances import draw

SEEDS = range(40)


def prices_of(demand: Demand, options: list[Option]) -> dict[tuple[str, str], ShadowPrice]:
    return {(price.more.kind, price.more.name): price for price in shadow_prices(demand, options)[1]}


def cheap_and_dear(rate: float, **cheap: Any) -> tuple[Demand, list[Option]]:
    """800 tokens/s a replica, 200 a request: `cheap` at $0.50 (p99 TTFT 74 ms), `dear` at $2 (50 ms)."""
    fleets = [a_fleet("cheap", usd_per_gpu_hour=0.5, **cheap), a_fleet("dear", usd_per_gpu_hour=2.0)]
    options = [an_option(fleet, a_run(latency=ttft(p99))) for fleet, p99 in zip(fleets, (74.0, 50.0), strict=True)]
    return a_demand([a_class(requests_per_s=rate)], fleets), options


def test_one_more_gpu_of_a_full_fleet_saves_the_dear_replica_that_it_replaces() -> None:
    # 8 req/s: 2 replicas; 1 cheap and 1 dear cost $2.50, 2 cheap $1
    demand, options = cheap_and_dear(8.0, max_gpus=1)
    price = prices_of(demand, options)["gpus", "cheap"]
    assert (price.more.start, price.more.end, price.saves_usd_per_hour) == (1, 2, 1.5)
    assert (price.usd_per_hour, price.is_binding) == (-1.5, True)
    assert price.text == "One more GPU of cheap saves $1.50/h."


def test_a_fleet_whose_replicas_take_two_gpus_is_given_two_more() -> None:
    fleet, dear = a_fleet("cheap", usd_per_gpu_hour=0.5, max_gpus=2), a_fleet("dear", usd_per_gpu_hour=2.0)
    options = [an_option(fleet, a_run(gpu_count=2)), an_option(dear, a_run())]
    demand = a_demand([a_class(requests_per_s=8.0)], [fleet, dear])
    # $1 for two cheap GPUs instead of $2 for a dear one
    assert prices_of(demand, options)["gpus", "cheap"].text == "2 more GPUs of cheap save $1.00/h."


def test_a_fleet_with_room_or_without_a_limit_saves_nothing_or_is_not_told() -> None:
    demand, options = cheap_and_dear(8.0, max_gpus=5)
    prices = prices_of(demand, options)
    assert prices["gpus", "cheap"].text == "One more GPU of cheap saves nothing."
    assert not prices["gpus", "cheap"].is_binding
    assert ("gpus", "dear") not in prices


def test_an_slo_is_loosened_to_the_next_value_that_lets_something_in() -> None:
    demand, options = cheap_and_dear(4.0)
    tight = demand.model_copy(update={"classes": (a_class(requests_per_s=4.0, slo=(a_slo(60),)),)})
    price = prices_of(tight, options)["slo", "p99 TTFT"]
    assert (price.more.start, price.more.end, price.more.class_name) == (60, 74, "chat")
    assert price.text == "chat's p99 TTFT from 60 to 74 ms saves $1.50/h."


def test_an_slo_that_everything_holds_has_no_next_value() -> None:
    demand, options = cheap_and_dear(4.0)
    loose = demand.model_copy(update={"classes": (a_class(requests_per_s=4.0, slo=(a_slo(100),)),)})
    assert ("slo", "p99 TTFT") not in prices_of(loose, options)


@pytest.mark.parametrize(
    ("cap", "carbon_usd_per_t", "text"),
    [
        # 4 req/s fill one replica: `cheap` at $0.50, 600 W and 6,000 g/h, or `dear` at $2, 500 W and 50 g/h
        ({"max_g_per_hour": 5500.0}, 0.0, "The carbon cap from 5,500 to 6,500 g/h saves $1.50/h."),
        ({"max_watts": 550.0}, 0.0, "The power cap from 550 to 650 W saves $1.50/h."),
        # at $1,000/t cheap costs $6.50, dear $2.05, which the budget does not allow
        ({"max_usd_per_hour": 1.5}, 1000.0, "The budget from $1.50 to $2.50/h saves $4.45/h."),
        ({"max_usd_per_hour": 2.5}, 1000.0, "The budget from $2.50 to $3.50/h saves nothing."),
    ],
)
def test_a_cap_is_raised_by_one_unit(cap: dict[str, float], carbon_usd_per_t: float, text: str) -> None:
    cheap = a_fleet("cheap", usd_per_gpu_hour=0.5, g_per_kwh=10_000.0)
    dear = a_fleet("dear", usd_per_gpu_hour=2.0, g_per_kwh=100.0)
    options = [an_option(cheap, a_run(), loaded_w=600.0), an_option(dear, a_run(), loaded_w=500.0)]
    demand = a_demand([a_class(requests_per_s=4.0)], [cheap, dear], carbon_usd_per_t=carbon_usd_per_t, **cap)
    [price] = [price for price in shadow_prices(demand, options)[1] if price.more.kind != "load"]
    assert price.text == text


def test_a_share_limit_is_widened_by_five_points() -> None:
    # 20 req/s are 5 replicas; at least 40% on dear: 2 dear and 3 cheap, $5.50. At 35% it still takes 2
    demand, options = cheap_and_dear(20.0)
    limited = a_class(requests_per_s=20.0, share=({"fleet": "dear", "min": 0.4},))
    prices = prices_of(demand.model_copy(update={"classes": (limited,)}), options)
    price = prices["share", "dear"]
    assert (price.more.start, price.more.end) == (0.4, pytest.approx(0.35))
    assert price.text == "chat on dear at least 35% instead of 40% saves nothing."
    limited = a_class(requests_per_s=20.0, share=({"fleet": "cheap", "max": 0.38},))
    price = prices_of(demand.model_copy(update={"classes": (limited,)}), options)["share", "cheap"]
    # 38% is 1.9 replicas: 2 cheap, 3.1 dear: 4 -> $9; 43%: 2.15: 3 cheap, 2.85: 3 dear -> $7.50
    assert price.saves_usd_per_hour == pytest.approx(1.5)
    assert price.text == "chat on cheap at most 43% instead of 38% saves $1.50/h."


def test_one_more_request_per_second_costs_the_replica_that_it_takes() -> None:
    # 4 req/s fill a replica; the fifth takes another
    demand, options = cheap_and_dear(4.0)
    price = prices_of(demand, options)["load", "chat"]
    assert (price.saves_usd_per_hour, price.text) == (-0.5, "One more request/s of chat costs $0.50/h.")
    demand, options = cheap_and_dear(2.0)
    assert prices_of(demand, options)["load", "chat"].text == "One more request/s of chat costs nothing."


def test_a_request_too_many_fits_nowhere() -> None:
    fleet = a_fleet(max_gpus=1)
    demand = a_demand([a_class(requests_per_s=4.0)], [fleet])
    price = prices_of(demand, [an_option(fleet, a_run())])["load", "chat"]
    assert (price.saves_usd_per_hour, price.text) == (None, "One more request/s of chat fits nowhere.")


def test_what_saves_most_comes_first_and_loads_last() -> None:
    demand, options = cheap_and_dear(8.0, max_gpus=1)
    kinds = [price.more.kind for price in shadow_prices(demand, options)[1]]
    assert kinds == ["gpus", "load"]


def test_a_gap_of_the_demand_does_not_blur_the_prices() -> None:
    demand, options = cheap_and_dear(8.0, max_gpus=1)
    rough = demand.model_copy(update={"solve": demand.solve.model_copy(update={"gap": 0.5})})
    assert prices_of(rough, options)["gpus", "cheap"].saves_usd_per_hour == 1.5


@pytest.mark.parametrize("seed", SEEDS)
def test_each_price_is_the_difference_of_two_solves(seed: int) -> None:
    demand, options = draw(seed, carbon_usd_per_t=[0.0, 200.0][seed % 2])
    before = best_split(demand, options)
    _, prices = shadow_prices(demand, options)
    if before.objective_usd_per_hour is None:
        assert prices == []
        return
    assert prices
    for price in prices:
        after = best_split(*changed(demand, options, price))
        if after.objective_usd_per_hour is None:
            assert price.saves_usd_per_hour is None
            continue
        saved = before.objective_usd_per_hour - after.objective_usd_per_hour
        assert price.saves_usd_per_hour == pytest.approx(saved, rel=1e-9, abs=1e-9)
        if price.more.kind != "load":
            assert saved >= -1e-7


def changed(demand: Demand, options: list[Option], price: ShadowPrice) -> tuple[Demand, list[Option]]:
    """The demand in its own words with the limit moved, written from what the price says and not from its case."""
    content = demand.model_dump(by_alias=True)
    more = price.more
    if more.kind == "gpus":
        fleet = next(fleet for fleet in content["fleet"] if fleet["name"] == more.name)
        assert fleet["max_gpus"] == more.start
        fleet["max_gpus"] = int(more.end)
    else:
        one = next(one for one in content["class"] if one["name"] == more.class_name)
        if more.kind == "slo":
            [slo] = one["slo"]
            assert slo["max_ms"] == more.start
            slo["max_ms"] = more.end
        else:
            assert one["requests_per_s"] + 1 == more.end
            one["requests_per_s"] = more.end
    moved = Demand.model_validate(content)
    offers = {offer.name: offer for offer in moved.fleets}
    fleets = {
        option.fleet.name: a_fleet(
            option.fleet.name,
            g_per_kwh=option.fleet.g_per_kwh,
            usd_per_gpu_hour=option.fleet.usd_per_gpu_hour,
            max_gpus=offers[option.fleet.name].max_gpus,
        )
        for option in options
    }
    return moved, [Option(fleets[option.fleet.name], option.point, option.occurrence) for option in options]
