"""The interval of a saving, by hand and against all corners."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.split.answer import SplitAnswer
from app.split.demand import Demand
from app.split.interval import saving_interval, throughput_error
from app.split.options import Option
from app.split.point import OperatingPoint, Window
from app.split.recommend import recommend

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft
from .small_instances import draw

# 1.96 / sqrt(n) = 0.1 and 0.25
TEN_PERCENT, QUARTER = round((1.96 / 0.1) ** 2), round((1.96 / 0.25) ** 2)


def point_of(n: int) -> OperatingPoint:
    return an_option(a_fleet(), a_run(completed=n, num_prompts=max(n, 1))).point


def split_and_dear(rate: float, n: int = TEN_PERCENT, **cheap: Any) -> tuple[Demand, SplitAnswer, SplitAnswer]:
    """A split on `cheap` at $0.50 against one on `dear` at $2, both 800 tokens/s a replica."""
    fleets = [a_fleet("cheap", kind="consumer", usd_per_gpu_hour=0.5, **cheap), a_fleet("dear", usd_per_gpu_hour=2.0)]
    options = [an_option(fleet, a_run(completed=n)) for fleet in fleets]
    found = recommend(a_demand([a_class(requests_per_s=rate)], fleets), options)
    return found.demand, found.answer, found.baselines["all_enterprise"]


def test_the_error_of_a_run_is_that_of_a_poisson_count() -> None:
    assert throughput_error(point_of(384)) == pytest.approx(0.1, abs=1e-4)  # 1.96 / 19.6
    assert throughput_error(point_of(100)) == pytest.approx(0.196)
    assert throughput_error(point_of(0)) is None


def test_the_error_of_a_live_point_is_that_of_its_minutes() -> None:
    # 100 minutes between 700 and 900 tokens/s: at most 100 of 800 off in a minute, 1.96 x 100 / 10 / 800
    window = Window(datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 8, tzinfo=UTC), 100, 1, 700.0, 900.0)
    live = replace(point_of(100_000), source="live", window=window)
    assert throughput_error(live) == pytest.approx(1.96 * 100 / 10 / 800)
    assert throughput_error(replace(live, window=replace(window, minutes=0))) is None


def test_replicas_are_rounded_up_again_for_a_throughput_that_turns_out_otherwise() -> None:
    # 7.9 req/s are 1,580 tokens/s: 2 replicas of each; at 1/1.1 of 800 = 727 tokens/s 3, at 880 still 2.
    # dear - cheap: $4 - $1 = $3; least 2 dear - 3 cheap = $2.50, greatest 3 dear - 2 cheap = $5
    found = saving_interval(*split_and_dear(7.9))
    assert found is not None
    assert (found.saving, found.low, found.high) == (3.0, 2.5, 5.0)
    assert found.short == ()
    assert found.text == (
        "Saves $3.00/h; $2.50 to $5.00/h with the sampling error of throughputs (95%, +10.0%) and no range of prices."
    )


def test_prices_widen_it() -> None:
    # cheap at $0.40 to $1, dear at $2: 2 dear - 3 x $1 = $1; 3 dear - 2 x $0.40 = $5.20
    found = saving_interval(*split_and_dear(7.9), prices={"cheap": (0.4, 1.0), "other": (1.0, 9.0)})
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(1.0), pytest.approx(5.2))
    assert found.includes[1] == "list prices of the cards (cheap at $0.4 to $1 per GPU-hour)"


def test_what_both_splits_use_cancels_out() -> None:
    # enterprise alone is the answer itself
    fleet = a_fleet()
    found = recommend(a_demand([a_class(requests_per_s=7.9)], [fleet]), [an_option(fleet, a_run(completed=QUARTER))])
    interval = saving_interval(found.demand, found.answer, found.baselines["all_enterprise"], {"fleet": (0.1, 9.0)})
    assert interval is not None and (interval.saving, interval.low, interval.high) == (0.0, 0.0, 0.0)


def test_a_split_that_no_longer_fits_says_so() -> None:
    found = saving_interval(*split_and_dear(7.9, max_gpus=2))
    assert found is not None
    assert found.short == ("At the lowest throughputs it would need 3 GPUs of cheap, of 2",)
    assert found.text.endswith("no range of prices. At the lowest throughputs it would need 3 GPUs of cheap, of 2.")


def test_an_infeasible_baseline_has_no_interval() -> None:
    fleets = [a_fleet("cheap", kind="consumer"), a_fleet("dear")]
    options = [an_option(one, a_run(latency=ttft(p99))) for one, p99 in zip(fleets, (300.0, 50.0), strict=True)]
    found = recommend(a_demand([a_class(slo=(a_slo(60),))], fleets), options)
    assert saving_interval(found.demand, found.answer, found.baselines["all_consumer"]) is None


def test_an_owned_fleet_pays_for_the_energy_of_its_replicas() -> None:
    # $0.50 and $1/kWh: 2 replicas at 100 W idle and 400 W x 1.975 = 0.99 kW; 3 of them, each slower, 300 + 400 x 2.1725
    found = saving_interval(*split_and_dear(7.9, usd_per_kwh=1.0))
    assert found is not None
    assert found.saving == pytest.approx(4.0 - (1.0 + 0.2 + 0.4 * 1.975))
    error = throughput_error(point_of(TEN_PERCENT))
    assert error is not None
    assert found.low == pytest.approx(4.0 - (1.5 + 0.3 + 0.4 * 1.975 * (1 + error)))


@pytest.mark.parametrize("seed", range(15))
def test_it_has_the_least_and_the_greatest_of_all_corners(seed: int) -> None:
    demand, options = draw(seed)
    for number, option in enumerate(options):
        kinds = "consumer" if option.fleet.name == "fleet0" else "enterprise"
        options[number] = replace(option, fleet=replace(option.fleet, kind=kinds))
    found = recommend(demand, options)
    prices = {"fleet0": (0.1, 5.0), "fleet1": (0.5, 3.5)}
    for baseline in found.baselines.values():
        interval = saving_interval(demand, found.answer, baseline, prices)
        if interval is None:
            continue
        savings = list(corners(demand, found.answer, baseline, prices))
        assert (interval.low, interval.high) == (pytest.approx(min(savings)), pytest.approx(max(savings)))
        assert interval.low <= interval.saving <= interval.high


def corners(demand: Demand, answer: SplitAnswer, baseline: SplitAnswer, prices: dict[str, tuple[float, float]]) -> Any:
    """Each combination of a price per fleet and a throughput per point, both splits billed whole."""
    used: dict[str, Option] = {pool.option.label: pool.option for one in (answer, baseline) for pool in one.pools}
    names = sorted({option.fleet.name for option in used.values()})
    now = {option.fleet.name: option.fleet.usd_per_gpu_hour for option in used.values()}
    error = {label: 1.96 / math.sqrt(option.point.n) for label, option in used.items()}
    for chosen in itertools.product(*([now[name], *prices.get(name, ())] for name in names)):
        price = dict(zip(names, chosen, strict=True))
        for speeds in itertools.product(*((1 / (1 + error[label]), 1.0, 1 + error[label]) for label in used)):
            speed = dict(zip(used, speeds, strict=True))
            yield bill(demand, baseline, price, speed) - bill(demand, answer, price, speed)


def bill(demand: Demand, one: SplitAnswer, price: dict[str, float], speed: dict[str, float]) -> float:
    total = 0.0
    for pool in one.pools:
        label, option = pool.option.label, pool.option
        each = demand.solve.max_utilisation * option.point.tokens_per_s * speed[label]
        count = pool.count if speed[label] == 1 else math.ceil(pool.tokens_per_s / each - 1e-9)
        total += count * option.point.gpus * price[option.fleet.name]
    return total
