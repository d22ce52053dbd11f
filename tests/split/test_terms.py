"""Each term of the split's program by hand: what it costs, draws and emits, and how it changes the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.split.answer import SplitAnswer
from app.split.options import Option
from app.split.recommend import best_split

from .builders import MODEL, a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft


def solved(fleets: list[Any], classes: list[Any] | None = None, **solve: Any) -> SplitAnswer:
    """One option of 800 tokens/s, 100 to 500 W, on each fleet; 800 tokens/s asked for unless classes say otherwise."""
    return split(fleets, [an_option(fleet, a_run()) for fleet in fleets], classes, **solve)


def split(fleets: list[Any], options: list[Option], classes: list[Any] | None = None, **solve: Any) -> SplitAnswer:
    return best_split(a_demand(classes or [a_class(requests_per_s=4.0)], fleets, **solve), options)


def counts(answer: SplitAnswer) -> dict[str, int]:
    return {pool.option.fleet.name: pool.count for pool in answer.pools}


def shares(answer: SplitAnswer) -> dict[str, float]:
    return {share.option.fleet.name: share.share for share in answer.shares}


def test_a_spot_fleet_carries_costs_draws_and_embodies_its_availability() -> None:
    # there half the time: 2 on order carry 1; each pays $0.50, draws (100 + 400 x 1) / 2 = 250 W, embodies 10 / 2 g
    answer = solved([a_fleet(availability=0.5, embodied_g_per_gpu_hour=10.0)])
    (pool,) = answer.pools
    assert (pool.count, pool.utilisation) == (2, pytest.approx(1.0))
    assert (answer.usd_per_hour, answer.power_w) == (pytest.approx(1.0), pytest.approx(500.0))
    assert answer.embodied_g_per_hour == pytest.approx(10.0)


def test_a_pool_in_use_has_its_spares_and_no_other_has() -> None:
    # 800 tokens/s take 1 + 1 spare on a; both idle at 100 W, the load takes 400 W
    answer = solved([a_fleet("a", spare_replicas=1), a_fleet("b", usd_per_gpu_hour=3.0, spare_replicas=1)])
    (pool,) = answer.pools
    assert (counts(answer), pool.spares, pool.utilisation) == ({"a": 2}, 1, pytest.approx(0.5))
    assert (answer.usd_per_hour, answer.power_w) == (pytest.approx(2.0), pytest.approx(600.0))


def test_spares_make_one_pool_cheaper_than_two() -> None:
    # 1,600 tokens/s, 3 GPUs of a at most: without spares 2 of a; with 2 spares 4 are needed: b, which has none
    a, b = a_fleet("a", max_gpus=3, spare_replicas=2), a_fleet("b", usd_per_gpu_hour=1.5)
    assert counts(solved([a, b], [a_class(requests_per_s=8.0)])) == {"b": 2}


def test_share_limits_divide_a_class() -> None:
    # 3,200 tokens/s: four of a would be $4; it may have 60% (1,920, two of them), so two of b carry the rest: $6
    fleets = [a_fleet("a"), a_fleet("b", usd_per_gpu_hour=2.0)]
    one = a_class(requests_per_s=16.0, share=[{"fleet": "a", "max": 0.6}])
    answer = solved(fleets, [one])
    assert (shares(answer), counts(answer)) == ({"a": pytest.approx(0.5), "b": pytest.approx(0.5)}, {"a": 2, "b": 2})
    assert answer.usd_per_hour == pytest.approx(6.0)


def test_a_least_share_opens_the_dearer_fleet() -> None:
    # b must have 10% of 800 tokens/s: one of it then carries everything
    fleets = [a_fleet("a"), a_fleet("b", usd_per_gpu_hour=2.0)]
    answer = solved(fleets, [a_class(requests_per_s=4.0, share=[{"fleet": "b", "min": 0.1}])])
    assert (counts(answer), shares(answer)) == ({"b": 1}, {"b": pytest.approx(1.0)})


def test_reached_shares_are_told() -> None:
    fleets = [a_fleet("a"), a_fleet("b", usd_per_gpu_hour=2.0)]
    one = a_class(requests_per_s=8.0, share=[{"fleet": "a", "max": 0.5}])
    answer = solved(fleets, [one])
    assert (shares(answer), counts(answer)) == ({"a": pytest.approx(0.5), "b": pytest.approx(0.5)}, {"a": 1, "b": 1})
    assert answer.limits == ("a has all of chat that it may have (50%)",)


def test_zones_keep_a_class_where_its_electricity_is() -> None:
    fleets = [a_fleet("a", zone="FR"), a_fleet("b", usd_per_gpu_hour=2.0, zone="de"), a_fleet("c", zone=None)]
    answer = solved(fleets, [a_class(zones=("DE",))])
    assert counts(answer) == {"b": 1}
    assert [out.reason for out in answer.excluded] == [
        "class chat may only use zones DE, a is in FR",
        "class chat may only use zones DE, c is in no zone that is told",
    ]


@pytest.mark.parametrize(
    ("cap", "limit"),
    [
        ({"max_watts": 499.0}, None),
        ({"max_watts": 500.0}, "under 500 W no further replica fits"),
        ({"max_usd_per_hour": 1.0}, "under $1.00/h no further replica fits"),
        ({"max_usd_per_hour": 0.99}, None),
        # 500 W x 100 g/kWh = 50 g/h, and 7 g/h embodied
        ({"max_g_per_hour": 57.0}, "under 57 g/h no further replica fits"),
        ({"max_g_per_hour": 56.9}, None),
    ],
)
def test_caps_hold_to_the_last_watt_cent_and_gram(cap: dict[str, float], limit: str | None) -> None:
    answer = solved([a_fleet(embodied_g_per_gpu_hour=7.0)], **cap)
    assert (answer.status == "optimal") == (limit is not None)
    assert answer.limits == (() if limit is None else (limit,))


def test_a_cap_on_watts_moves_work_to_the_dearer_fleet() -> None:
    a, b = a_fleet("a"), a_fleet("b", usd_per_gpu_hour=2.0)
    options = [an_option(a, a_run()), an_option(b, a_run(), loaded_w=300.0)]
    assert counts(split([a, b], options)) == {"a": 1}
    assert counts(split([a, b], options, max_watts=400.0)) == {"b": 1}


@pytest.mark.parametrize(
    ("cap", "reason"),
    [
        ({"max_watts": 1000.0}, "its power is unknown, and `max_watts` is set"),
        ({"max_g_per_hour": 1000.0}, "its average grams are unknown, and `max_g_per_hour` is set"),
    ],
)
def test_what_a_cap_needs_and_is_unknown_is_out(cap: dict[str, float], reason: str) -> None:
    a, b = a_fleet("a"), a_fleet("b", usd_per_gpu_hour=2.0)
    options = [an_option(a, a_run(), idle_w=None, loaded_w=None), an_option(b, a_run())]
    answer = split([a, b], options, **cap)
    assert counts(answer) == {"b": 1}
    assert [out.reason for out in answer.excluded] == [reason]


@pytest.mark.parametrize(("policy", "chosen"), [("full", "b"), ("sunk", "a")])
def test_embodied_grams_are_priced_by_the_fleets_policy(policy: str, chosen: str) -> None:
    # both emit 50 g/h; a embodies 400 g/h more, which is $0.40 at $1,000/t and its price is $0.30 lower
    a = a_fleet("a", usd_per_gpu_hour=0.7, embodied_g_per_gpu_hour=400.0, embodied_policy=policy)
    b = a_fleet("b", embodied_g_per_gpu_hour=0.0)
    answer = solved([a, b], carbon_usd_per_t=1000.0)
    assert counts(answer) == {chosen: 1}
    assert (answer.g_per_hour, answer.embodied_g_per_hour) == (pytest.approx(50.0), 0.0)


def test_operational_and_embodied_grams_are_kept_apart_and_added_in_the_price() -> None:
    # 50 g/h operational + 30 embodied at $1,000/t: $1 + $0.08
    answer = solved([a_fleet(embodied_g_per_gpu_hour=30.0)], carbon_usd_per_t=1000.0)
    assert (answer.g_per_hour, answer.embodied_g_per_hour) == (pytest.approx(50.0), pytest.approx(30.0))
    assert (answer.total_g_per_hour, answer.priced_g_per_hour) == (pytest.approx(80.0), pytest.approx(80.0))
    assert (answer.usd_per_hour, answer.objective_usd_per_hour) == (pytest.approx(1.0), pytest.approx(1.08))


def test_unknown_embodied_grams_are_missing_and_not_zero() -> None:
    answer = solved([a_fleet()])
    assert (answer.embodied_g_per_hour, answer.total_g_per_hour, answer.embodied_g_per_mtok) == (None, None, None)
    assert answer.g_per_hour == pytest.approx(50.0)


def test_the_marginal_signal_decides_and_the_average_is_reported() -> None:
    # by the average a is cleaner (50 against 250 g/h), by the marginal b (500 x 0.8 = 400 against 50 g/h)
    a = a_fleet("a", g_per_kwh=100.0, marginal_g_per_kwh=800.0)
    b = a_fleet("b", g_per_kwh=500.0, marginal_g_per_kwh=100.0)
    by_average = solved([a, b], carbon_usd_per_t=100.0)
    by_marginal = solved([a, b], carbon_usd_per_t=100.0, carbon_signal="marginal")
    assert (counts(by_average), counts(by_marginal)) == ({"a": 1}, {"b": 1})
    assert (by_marginal.g_per_hour, by_marginal.priced_g_per_hour) == (pytest.approx(250.0), pytest.approx(50.0))


def test_without_marginal_grams_a_fleet_is_out_where_they_are_priced() -> None:
    answer = solved([a_fleet()], carbon_usd_per_t=100.0, carbon_signal="marginal")
    assert answer.status == "infeasible"
    assert "its marginal grams are unknown, and they are priced" in (answer.reason or "")


@pytest.mark.parametrize(("usd", "chosen"), [(9.0, {"b": 1}), (30.0, {"a": 1})])
def test_switching_is_worth_it_only_where_it_pays_back(usd: float, chosen: dict[str, int]) -> None:
    # one of a ($1.50) runs; b costs $1.00. Stopping a and starting b: 2 x usd / 24 h: $0.75 > $0.50 at $9
    a = a_fleet("a", usd_per_gpu_hour=2.0, today=[{"model": MODEL, "gpus_per_replica": 1, "replicas": 1}])
    answer = solved([a, a_fleet("b")], switch_usd_per_replica=usd)
    assert counts(answer) == chosen
    moved = 2 if "b" in chosen else 0
    assert answer.switch_usd_per_hour == pytest.approx(moved * usd / 24)
    assert answer.usd_per_hour == pytest.approx(1.0 if "b" in chosen else 2.0)


def test_replicas_of_another_shape_are_stopped_in_any_case() -> None:
    # 3 of 8 GPUs run, for which there is no option: 3 stopped and 1 started, $24 each over 24 h
    fleet = a_fleet(today=[{"model": MODEL, "gpus_per_replica": 8, "replicas": 3}])
    answer = solved([fleet], switch_usd_per_replica=24.0)
    assert (answer.switch_usd_per_hour, answer.objective_usd_per_hour) == (pytest.approx(4.0), pytest.approx(5.0))


def test_owned_electricity_counts_idle_and_load() -> None:
    # $1 + (100 + 400 x 0.25) W x PUE 1.5 x $0.40/kWh = $1 + $0.12
    answer = solved([a_fleet(usd_per_kwh=0.4, pue=1.5)], [a_class()])
    assert answer.usd_per_hour == pytest.approx(1.12)


def test_timings_weigh_prompt_and_generated_tokens() -> None:
    # measured half and half: 3 ms a token; a class of 100 + 300 tokens takes (1 + 3 x 5) / 4 = 4 ms: 600 tokens/s
    fleet = a_fleet()
    option = an_option(fleet, a_run())
    timed = replace(option, point=replace(option.point, prefill_s_per_token=0.001, decode_s_per_token=0.005))
    one = a_class(requests_per_s=1.5, generated_tokens=300.0)
    answer = split([fleet], [timed], [one])
    assert answer.pools[0].utilisation == pytest.approx(1.0)
    assert (answer.pools[0].count, answer.power_w) == (1, pytest.approx(500.0))


def test_slos_are_held_with_their_margin_and_stand_ins_are_named() -> None:
    fleet = a_fleet()
    one = a_class(slo=(a_slo(100, percentile=95), a_slo(60)))
    answer = split([fleet], [an_option(fleet, a_run(latency=ttft(54.0)))], [one])
    stands_in, measured = answer.shares[0].held
    assert (stands_in.limit, stands_in.measured) == ("p95 TTFT <= 100 ms", "p99 TTFT (stands in for p95)")
    assert (measured.measured, measured.margin) == ("p99 TTFT", pytest.approx(0.1))


def test_like_classes_are_told_apart_in_the_answer() -> None:
    fleets = [a_fleet("a", max_gpus=1), a_fleet("b", usd_per_gpu_hour=2.0)]
    classes = [a_class("chat", requests_per_s=3.0), a_class("batch", requests_per_s=4.0, prompt_tokens=300.0)]
    answer = solved(fleets, classes)
    carried = {name: sum(s.share for s in answer.shares if s.class_name == name) for name in ("chat", "batch")}
    assert carried == {"chat": pytest.approx(1.0), "batch": pytest.approx(1.0)}
    # 600 + 1,600 = 2,200 tokens/s: 1 of a and 2 of b
    assert (counts(answer), answer.usd_per_hour) == ({"a": 1, "b": 2}, pytest.approx(5.0))
