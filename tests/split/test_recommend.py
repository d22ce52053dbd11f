from __future__ import annotations

import re
from typing import Any

import pytest

from app.errors import WattmixError
from app.split.options import Option
from app.split.recommend import recommend

from .builders import MODEL, a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft


def two_fleets(**consumer: Any) -> tuple[list[Any], list[Option]]:
    """dear: $2, p99 TTFT 50 ms; cheap: $0.50, p99 TTFT 300 ms at 4 req/s and 400 ms at 8; 800 tokens/s each."""
    dear = a_fleet("dear", usd_per_gpu_hour=2.0)
    cheap = a_fleet("cheap", kind="consumer", **({"usd_per_gpu_hour": 0.5} | consumer))
    return [dear, cheap], [
        an_option(dear, a_run(latency=ttft(50.0))),
        an_option(cheap, a_run(latency=ttft(300.0))),
        an_option(cheap, a_run(latency=ttft(400.0), offered_requests_per_s=8.0)),
    ]


def test_a_class_that_fits_nowhere_is_told_with_the_nearest_miss_of_each_fleet() -> None:
    fleets, options = two_fleets()
    answer = recommend(a_demand([a_class(slo=(a_slo(40),))], fleets), options).answer
    assert (answer.status, answer.pools, answer.shares, answer.usd_per_hour) == ("infeasible", (), (), None)
    assert answer.reason is not None
    assert f"chat ({MODEL} with p99 TTFT <= 40 ms) fits nowhere" in answer.reason
    assert "p99 TTFT 50.0 ms > 40 ms" in answer.reason
    assert "best of 2 points" in answer.reason and "p99 TTFT 300.0 ms > 40 ms" in answer.reason
    assert "400.0 ms" not in answer.reason
    assert [out.gap for out in answer.excluded] == pytest.approx([300 / 40, 400 / 40, 50 / 40])


def test_every_class_that_fits_nowhere_is_named() -> None:
    fleets, options = two_fleets()
    classes = [a_class("chat", slo=(a_slo(40),)), a_class("voice", slo=(a_slo(10),)), a_class("batch")]
    reason = recommend(a_demand(classes, fleets), options).answer.reason
    assert reason is not None
    assert ("chat" in reason, "voice" in reason, "batch" in reason) == (True, True, False)


def test_a_class_without_load_may_fit_nowhere() -> None:
    fleets, options = two_fleets()
    classes = [a_class("chat", slo=(a_slo(40),), requests_per_s=0.0), a_class("batch")]
    found = recommend(a_demand(classes, fleets), options)
    assert found.answer.status == "optimal"
    assert found.reasons["chat"] == "No demand, so nothing is placed."


def test_a_model_without_runs_is_told() -> None:
    fleets, options = two_fleets()
    answer = recommend(a_demand([a_class(model="org/other")], fleets), options).answer
    assert answer.status == "infeasible"
    assert "no benchmark run of org/other" in (answer.reason or "")


def test_a_replica_larger_than_its_fleet_is_told() -> None:
    fleet = a_fleet(max_gpus=1)
    answer = recommend(a_demand([a_class()], [fleet]), [an_option(fleet, a_run(gpu_count=2))]).answer
    assert (answer.status, "needs 2 GPUs, fleet has 1" in (answer.reason or "")) == ("infeasible", True)


def test_too_few_gpus_is_told_with_the_number_needed() -> None:
    # 12 req/s * 200 = 2,400 tokens/s at 50% of 800 each: 6 replicas of 2 GPUs = 12 GPUs
    fleet = a_fleet(max_gpus=10)
    demand = a_demand([a_class(requests_per_s=12.0)], [fleet], max_utilisation=0.5)
    answer = recommend(demand, [an_option(fleet, a_run(gpu_count=2))]).answer
    assert (answer.status, answer.pools, answer.usd_per_hour) == ("infeasible", (), None)
    assert answer.reason is not None
    assert "fleet <= 10 GPUs" in answer.reason
    assert "2,400 tokens/s at 50%" in answer.reason
    assert "12 GPUs of fleet" in answer.reason


def test_too_few_gpus_names_each_fleet_that_is_short_and_the_cheaper_one_to_add() -> None:
    # chat (800 tokens/s) only fits dear: 1 GPU, of which there is none left over for batch; batch (1,600) takes 2 cheap
    # for $2.00 + 2 x $0.50 in all; on dear it would take one more, $4.00 + $0.50
    fleets, options = two_fleets(max_gpus=1)
    fleets[0] = a_fleet("dear", usd_per_gpu_hour=2.0, max_gpus=1)
    options[0] = an_option(fleets[0], a_run(latency=ttft(50.0)))
    classes = [a_class("chat", requests_per_s=4.0, slo=(a_slo(60),)), a_class("batch", requests_per_s=8.0)]
    answer = recommend(a_demand(classes, fleets), options).answer
    assert answer.status == "infeasible"
    assert answer.conflict == ("dear <= 1 GPUs", "cheap <= 1 GPUs")
    assert "dear <= 1 GPUs; cheap <= 1 GPUs" in (answer.reason or "")
    assert "2 GPUs of cheap rather than 1, for $3.00/h" in (answer.reason or "")


def test_an_infeasible_answer_leaves_every_total_missing() -> None:
    # design law 2: missing is None, never 0
    fleets, options = two_fleets()
    answer = recommend(a_demand([a_class(slo=(a_slo(40),))], fleets), options).answer
    totals = (answer.usd_per_hour, answer.usd_per_mtok, answer.power_w, answer.g_per_hour, answer.g_per_mtok)
    assert totals == (None, None, None, None, None)
    assert answer.objective_usd_per_hour is None and answer.gap is None
    assert answer.tokens_per_s in (None, 200.0)  # unknown, or what is asked for: not 0


def test_baselines_are_the_best_with_one_kind_of_fleet() -> None:
    # chat 400 tokens/s within 60 ms, batch 2,000: the mix takes 1 dear (with 400 left for batch) + 2 cheap = $3.00;
    # enterprise alone 2,400 / 800 = 3 dear = $6.00; consumer alone cannot hold chat's limit
    fleets, options = two_fleets()
    classes = [a_class("chat", requests_per_s=2.0, slo=(a_slo(60),)), a_class("batch", requests_per_s=10.0)]
    found = recommend(a_demand(classes, fleets), options)
    assert found.answer.usd_per_hour == 3.0
    assert set(found.baselines) == {"all_enterprise", "all_consumer"}
    enterprise, consumer = found.baselines["all_enterprise"], found.baselines["all_consumer"]
    assert (enterprise.status, enterprise.usd_per_hour) == ("optimal", 6.0)
    assert [(pool.option.fleet.name, pool.count) for pool in enterprise.pools] == [("dear", 3)]
    assert (consumer.status, consumer.usd_per_hour) == ("infeasible", None)
    assert "p99 TTFT 300.0 ms > 60 ms" in (consumer.reason or "")
    assert "dear" not in (consumer.reason or "")


def test_a_baseline_of_a_kind_that_is_not_on_offer_says_so() -> None:
    fleet = a_fleet(kind="enterprise")
    found = recommend(a_demand([a_class()], [fleet]), [an_option(fleet, a_run())])
    consumer = found.baselines["all_consumer"]
    assert (consumer.status, consumer.usd_per_hour) == ("infeasible", None)
    assert "consumer" in (consumer.reason or "")


def test_a_baseline_keeps_the_gpu_limits() -> None:
    fleets, options = two_fleets(max_gpus=1)
    consumer = recommend(a_demand([a_class(requests_per_s=8.0)], fleets), options).baselines["all_consumer"]
    assert consumer.status == "infeasible"
    assert "2 GPUs of cheap" in (consumer.reason or "")


@pytest.mark.parametrize("rate", [1.0, 4.0, 9.0, 21.5])
def test_the_mix_is_never_dearer_than_a_baseline(rate: float) -> None:
    fleets, options = two_fleets()
    found = recommend(a_demand([a_class(requests_per_s=rate)], fleets), options)
    assert found.answer.usd_per_hour is not None
    for baseline in found.baselines.values():
        assert baseline.usd_per_hour is not None
        assert found.answer.usd_per_hour <= baseline.usd_per_hour + 1e-9


def reasons_of(classes: list[Any], fleets: list[Any], options: list[Option], **solve: Any) -> dict[str, str]:
    return recommend(a_demand(classes, fleets, **solve), options).reasons


def test_the_reason_says_where_a_class_goes_and_why_the_other_fleet_is_out() -> None:
    fleets, options = two_fleets()
    text = reasons_of([a_class(slo=(a_slo(60),))], fleets, options)["chat"]
    assert re.match(r"100% to dear: 1x .* at 4 req/s, because dear is the only fleet left; cheap is out: ", text)
    assert text.endswith("has p99 TTFT 300.0 ms > 60 ms.")


def test_the_reason_compares_the_fleets_that_hold_the_limits_in_dollars() -> None:
    # filled to 100%: 800 tokens/s = 2.88 Mtok/h: $0.50 -> $0.174, $2.00 -> $0.694
    fleets, options = two_fleets()
    text = reasons_of([a_class()], fleets, options)["chat"]
    assert text.startswith("100% to cheap: 1x ")
    assert "cheap $0.174/Mtok, dear $0.694/Mtok" in text
    assert "is out" not in text


def test_the_reason_of_a_class_on_two_fleets_says_that_it_fills_room_on_the_dearer() -> None:
    fleets, options = two_fleets()
    classes = [a_class("chat", requests_per_s=2.0, slo=(a_slo(60),)), a_class("batch", requests_per_s=10.0)]
    text = reasons_of(classes, fleets, options)["batch"]
    # 1,600 of 2,000 tokens/s on two cheap replicas, 400 beside chat on the dear one
    assert "80% to cheap" in text and "20% to dear" in text
    assert "leave room on the dearer fleet" in text


def test_the_reason_for_a_full_cheap_fleet_is_its_limit_and_not_room_elsewhere() -> None:
    # 1,600 tokens/s, one cheap GPU: half of it must go to a dear replica that nothing else opened
    fleets, options = two_fleets(max_gpus=1)
    text = reasons_of([a_class(requests_per_s=8.0)], fleets, options)["chat"]
    assert "50% to cheap" in text and "50% to dear" in text
    assert "leave room on the dearer fleet" not in text
    assert "GPU" in text


def test_the_reason_names_the_carbon_price_when_it_decides_against_the_cheaper_fleet() -> None:
    # cheap emits 500 W * 1,000 g/kWh = 500 g/h; at $4,000/t that is $2.00 on top of its $0.50; dear emits nothing
    dear, cheap = (
        a_fleet("dear", usd_per_gpu_hour=2.0, g_per_kwh=0.0),
        a_fleet("cheap", usd_per_gpu_hour=0.5, g_per_kwh=1000.0),
    )
    options = [an_option(dear, a_run()), an_option(cheap, a_run())]
    text = reasons_of([a_class(requests_per_s=4.0)], [dear, cheap], options, carbon_usd_per_t=4000.0)["chat"]
    assert text.startswith("100% to dear")
    assert "carbon" in text.lower()


def test_the_carbon_in_the_reason_is_what_is_priced() -> None:
    # filled, each replica makes 800 tokens/s = 2.88 Mtok/h for $1 (dear $2). At $1,000/t: green 500 W x 200 g/kWh
    # (marginal) + 44 g embodied = $0.144, $0.050/Mtok; dear 500 W x 400 g/kWh = $0.200, $0.069/Mtok
    green = a_fleet("green", g_per_kwh=0.0, marginal_g_per_kwh=200.0, embodied_g_per_gpu_hour=44.0)
    dear = a_fleet("dear", usd_per_gpu_hour=2.0, g_per_kwh=0.0, marginal_g_per_kwh=400.0)
    text = reasons_of(
        [a_class(requests_per_s=4.0)], [green, dear], [an_option(green, a_run()), an_option(dear, a_run())],
        carbon_usd_per_t=1000.0, carbon_signal="marginal",
    )["chat"]  # fmt: skip
    assert "green $0.347 + $0.050 carbon/Mtok, dear $0.694 + $0.069 carbon/Mtok" in text


def test_a_share_short_of_all_is_not_called_100_percent() -> None:
    # the one cheap GPU carries 800 of 801 tokens/s: 99.9%
    fleets, options = two_fleets(max_gpus=1)
    text = reasons_of([a_class(requests_per_s=801 / 200)], fleets, options)["chat"]
    assert "99.9% to cheap" in text and "100%" not in text.split(".")[0]


def test_an_infeasible_demand_has_no_reasons_for_its_classes() -> None:
    fleets, options = two_fleets()
    assert reasons_of([a_class("chat", slo=(a_slo(40),)), a_class("batch")], fleets, options) == {}


@pytest.mark.parametrize("rate", [1e6, 1e9, 1e12, 1e20, 1e300])
def test_an_absurd_rate_is_carried_or_refused_and_never_breaks(rate: float) -> None:
    fleet = a_fleet(usd_per_gpu_hour=0.3)
    options = [an_option(fleet, a_run(duration_s=900.0 + 7 * k, offered_requests_per_s=1.0 + k)) for k in range(5)]
    try:
        answer = recommend(a_demand([a_class(requests_per_s=rate)], [fleet]), options).answer
    except WattmixError:
        return
    assert answer.status == "optimal"
    assert sum(pool.tokens_per_s for pool in answer.pools) == pytest.approx(200 * rate, rel=1e-6)
    assert all(pool.utilisation <= 1 + 1e-6 for pool in answer.pools)
