"""What must hold of any demand: more room never costs more, and money has no unit of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.split.recommend import best_split

from .instances import Instance, as_demand, draw

SEEDS = range(0, 240, 2)
INFINITE = float("inf")


def cost(instance: Instance) -> float:
    found = best_split(*as_demand(instance)).objective_usd_per_hour
    return INFINITE if found is None else found


def fewer_options(instance: Instance) -> Instance:
    return replace(instance, pools=instance.pools[:-1])


def fewer_gpus(instance: Instance) -> Instance:
    def less(gpus: int | None) -> int:
        return 6 if gpus is None else gpus // 2

    fleets = {name: facts | {"max_gpus": less(facts["max_gpus"])} for name, facts in instance.fleets.items()}
    return replace(instance, fleets=fleets)


def tighter_slos(instance: Instance) -> Instance:
    loads = [
        replace(load, slo=tuple((metric, percentile, 0.4 * ms) for metric, percentile, ms in load.slo))
        for load in instance.loads
    ]
    return replace(instance, loads=tuple(loads))


def tighter_shares(instance: Instance) -> Instance:
    loads = [
        replace(load, shares={fleet: (low, max(low, high / 2)) for fleet, (low, high) in load.shares.items()})
        for load in instance.loads
    ]
    return replace(instance, loads=tuple(loads))


def tighter_caps(instance: Instance) -> Instance:
    solve = {name: 0.8 * value if name.startswith("max_") and name != "max_utilisation" else value
             for name, value in instance.solve.items()}  # fmt: skip
    return replace(instance, solve=solve)


def less_utilisation(instance: Instance) -> Instance:
    return replace(instance, solve=instance.solve | {"max_utilisation": 0.4})


TIGHTER = [fewer_options, fewer_gpus, tighter_slos, tighter_shares, tighter_caps, less_utilisation]


@pytest.mark.parametrize("seed", SEEDS)
def test_more_options_capacity_or_looser_limits_never_cost_more(seed: int) -> None:
    instance = draw(seed)
    least = cost(instance)
    for tighten in TIGHTER:
        assert least <= cost(tighten(instance)) * (1 + 1e-7) + 1e-9, tighten.__name__


@pytest.mark.parametrize("tighten", TIGHTER, ids=lambda tighten: tighten.__name__)
def test_each_of_them_costs_something_somewhere(tighten: Callable[[Instance], Instance]) -> None:
    assert any(cost(tighten(draw(seed))) > cost(draw(seed)) + 1e-6 for seed in range(60))


@pytest.mark.parametrize("seed", SEEDS)
def test_scaling_all_prices_scales_the_cost(seed: int) -> None:
    instance = draw(seed)
    fleets = {
        name: facts | {key: 3.0 * facts[key] for key in ("usd_per_gpu_hour", "usd_per_kwh")}
        for name, facts in instance.fleets.items()
    }
    prices = ("carbon_usd_per_t", "switch_usd_per_replica", "max_usd_per_hour")
    solve = {key: 3.0 * value if key in prices else value for key, value in instance.solve.items()}
    before, after = cost(instance), cost(replace(instance, fleets=fleets, solve=solve))
    assert after == pytest.approx(3.0 * before, rel=1e-6, abs=1e-9)
