from __future__ import annotations

from typing import Any

import pytest

from app.errors import DemandError
from app.reference.gpus import same_gpu
from app.split.options import Admission, admit, same_model
from collectors.benchmark.run import LATENCY_METRICS, Latency, LatencyMetric

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft

FULL = "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"


def admitted(
    run: dict[str, Any], *, one: dict[str, Any], fleet: dict[str, Any] | None = None, **solve: Any
) -> Admission:
    """One class and one option."""
    offer = a_fleet(**(fleet or {}))
    return admit(a_demand([a_class(**one)], [offer], **solve), [an_option(offer, a_run(**run))])


def only_reason(admission: Admission) -> str:
    assert admission.admissible == {"chat": ()}
    (excluded,) = admission.excluded
    return excluded.reason


@pytest.mark.parametrize(
    ("wanted", "measured", "same"),
    [
        (FULL, FULL, True),
        (FULL.upper(), FULL, True),
        ("DeepSeek-R1-Distill-Qwen-14B", FULL, True),
        ("deepseek-r1-distill-qwen-14b", FULL, True),
        ("other/DeepSeek-R1-Distill-Qwen-14B", FULL, False),
        ("DeepSeek-R1-Distill-Qwen-1.5B", FULL, False),
        ("DeepSeek-R1-Distill-Qwen", FULL, False),
        ("14B", FULL, False),
        ("deepseek-ai", FULL, False),
        ("DeepSeek-R1-Distill-Qwen-14B", "DeepSeek-R1-Distill-Qwen-14B", True),
    ],
)
def test_a_model_matches_in_full_or_without_its_organisation(wanted: str, measured: str, same: bool) -> None:
    assert same_model(wanted, measured) is same


@pytest.mark.parametrize(
    ("offered", "measured", "same"),
    [
        ("NVIDIA H100 PCIe", "NVIDIA-H100-PCIe", True),
        ("nvidia h100 pcie", "NVIDIA-H100-PCIe", True),
        ("RTX 4090", "NVIDIA-GeForce-RTX-4090", True),
        ("NVIDIA_GeForce_RTX_4090", "NVIDIA GeForce RTX 4090", True),
        ("NVIDIA H100 80GB HBM3", "NVIDIA-H100-PCIe", False),
        ("NVIDIA H100 NVL", "NVIDIA-H100-PCIe", False),
        ("RTX 4090 D", "NVIDIA-GeForce-RTX-4090", False),
        ("RTX 4090 Laptop GPU", "NVIDIA-GeForce-RTX-4090", False),
        ("RTX 4080", "NVIDIA GeForce RTX 4080 SUPER", False),
        ("NVIDIA L4", "NVIDIA L40S", False),
        ("some card", "some-card", True),  # unknown to the table, and still the same words
        ("some card", "another card", False),
    ],
)
def test_a_gpu_matches_by_its_card_and_not_by_its_spelling(offered: str, measured: str, same: bool) -> None:
    assert same_gpu(offered, measured) is same
    assert same_gpu(measured, offered) is same


def test_runs_of_models_that_no_class_asks_for_are_no_options() -> None:
    admission = admitted({"model": "org/other"}, one={})
    assert (admission.options, admission.admissible, admission.excluded) == ((), {"chat": ()}, ())


@pytest.mark.parametrize("metric", LATENCY_METRICS)
@pytest.mark.parametrize(("max_ms", "fits"), [(54.0, True), (53.9, False)])
def test_an_slo_on_each_metric_holds_at_or_under_its_limit(metric: LatencyMetric, max_ms: float, fits: bool) -> None:
    others = {name: Latency(quantiles_ms={99.0: 1.0}) for name in LATENCY_METRICS}
    latency = others | {metric: Latency(quantiles_ms={99.0: 54.0})}
    admission = admitted({"latency": latency}, one={"slo": (a_slo(max_ms, metric),)})
    if fits:
        assert (admission.admissible["chat"], admission.excluded) == ((0,), ())
    else:
        assert only_reason(admission) == f"p99 {metric.upper()} 54.0 ms > 53.9 ms"


def test_an_exclusion_carries_its_failing_value_over_the_limit() -> None:
    (excluded,) = admitted({"latency": ttft(90.0)}, one={"slo": (a_slo(60),)}).excluded
    assert (excluded.class_name, excluded.gap) == ("chat", 1.5)  # 90 / 60


@pytest.mark.parametrize(("p99_ms", "reason"), [(55.0, None), (61.0, "p99 TTFT (stands in for p98) 61.0 ms > 60 ms")])
def test_the_next_higher_percentile_stands_in_and_is_named(p99_ms: float, reason: str | None) -> None:
    # a p98 is at most the p99, so a p99 within the limit proves it
    admission = admitted({"latency": ttft(p99_ms, p50=20.0)}, one={"slo": (a_slo(60, percentile=98),)})
    assert [out.reason for out in admission.excluded] == ([] if reason is None else [reason])


def test_the_maximum_stands_in_for_every_percentile() -> None:
    latency = {"ttft": Latency(quantiles_ms={50.0: 20.0, 100.0: 59.0})}
    assert admitted({"latency": latency}, one={"slo": (a_slo(60),)}).admissible == {"chat": (0,)}


@pytest.mark.parametrize(
    "latency",
    [{}, {"tpot": Latency(quantiles_ms={99.0: 1.0})}, {"ttft": Latency(mean_ms=1.0, quantiles_ms={50.0: 1.0})}],
    ids=["no latency", "another metric", "only a lower percentile"],
)
def test_what_was_not_measured_excludes_and_says_so(latency: dict[str, Latency]) -> None:
    assert only_reason(admitted({"latency": latency}, one={"slo": (a_slo(60),)})) == "p99 TTFT was not measured"


def test_every_slo_of_a_class_must_hold() -> None:
    latency = {"ttft": Latency(quantiles_ms={99.0: 50.0}), "tpot": Latency(quantiles_ms={99.0: 31.0})}
    slo = (a_slo(60), a_slo(30, "tpot"))
    assert only_reason(admitted({"latency": latency}, one={"slo": slo})) == "p99 TPOT 31.0 ms > 30 ms"


@pytest.mark.parametrize(("completed", "reason"), [(499, "small sample: 499 requests cannot show a p99"), (500, None)])
def test_refuse_excludes_small_samples(completed: int, reason: str | None) -> None:
    admission = admitted(
        {"latency": ttft(50.0), "completed": completed}, one={"slo": (a_slo(60),)}, small_samples="refuse"
    )
    assert [out.reason for out in admission.excluded] == ([] if reason is None else [reason])


def test_refuse_leaves_classes_without_slo_alone() -> None:
    assert admitted({"completed": 1}, one={}, small_samples="refuse").admissible == {"chat": (0,)}


@pytest.mark.parametrize(("limit_ms", "fits"), [(70.0, True), (69.9, False)])
def test_penalise_holds_1_25_times_the_maximum_against_the_limit(limit_ms: float, fits: bool) -> None:
    # 200 requests with a maximum of 56 ms: 1.25 * 56 = 70
    run = {"latency": ttft(50.0, p100=56.0), "completed": 200}
    admission = admitted(run, one={"slo": (a_slo(limit_ms),)}, small_samples="penalise")
    assert bool(admission.admissible["chat"]) is fits


def test_allow_admits_a_small_sample_with_its_flag() -> None:
    admission = admitted({"latency": ttft(50.0), "completed": 200, "duration_s": 50.0}, one={"slo": (a_slo(60),)})
    assert admission.flags == {("chat", 0): ("small_sample",)}


@pytest.mark.parametrize(("fleets", "fits"), [(None, True), (("fleet",), True), (("other",), False), ((), False)])
def test_a_class_uses_only_the_fleets_it_lists(fleets: tuple[str, ...] | None, fits: bool) -> None:
    mine, other = a_fleet(), a_fleet("other")
    demand = a_demand([a_class(fleets=fleets)], [mine, other])
    admission = admit(demand, [an_option(mine, a_run())])
    assert bool(admission.admissible["chat"]) is fits
    if not fits:
        assert only_reason(admission) == f"class chat may only use {', '.join(fleets or ()) or 'no fleet'}"


@pytest.mark.parametrize(("serves", "fits"), [(None, True), ("org/model", True), ("model", True), ("org/x", False)])
def test_a_fleet_that_serves_one_model_runs_no_other(serves: str | None, fits: bool) -> None:
    admission = admitted({}, one={}, fleet={"model": serves})
    assert bool(admission.admissible["chat"]) is fits
    if not fits:
        assert only_reason(admission) == "fleet fleet serves only org/x"


@pytest.mark.parametrize(("max_gpus", "fits"), [(4, True), (3, False), (0, False), (None, True)])
def test_a_replica_must_fit_the_fleets_gpus(max_gpus: int | None, fits: bool) -> None:
    admission = admitted({"gpu_count": 4}, one={}, fleet={"max_gpus": max_gpus})
    assert bool(admission.admissible["chat"]) is fits
    if not fits:
        assert only_reason(admission) == f"needs 4 GPUs, fleet has {max_gpus}"


def test_a_run_without_tokens_is_no_replica() -> None:
    assert only_reason(admitted({"prompt_tokens": 0, "generated_tokens": 0}, one={})) == "the run made no tokens"


def test_options_stand_in_one_order_whatever_the_input() -> None:
    a, b = a_fleet("a"), a_fleet("b")
    runs = [a_run(gpu_count=n, offered_requests_per_s=qps) for n in (1, 2) for qps in (4.0, 16.0, None)]
    options = [an_option(fleet, run) for fleet in (a, b) for run in runs]
    demand = a_demand([a_class()], [a, b])
    assert admit(demand, options[::-1]).options == admit(demand, options).options == tuple(options)


def test_an_option_costs_what_its_gpus_cost() -> None:
    # 2 GPUs at $0.25: $0.50 an hour; 80% of 800 tokens/s = 640/s
    option = an_option(a_fleet(usd_per_gpu_hour=0.25), a_run(gpu_count=2))
    assert option.usd_per_replica_hour == 0.5
    with pytest.raises(DemandError, match="fleet fleet: no price is known"):
        _ = an_option(a_fleet(usd_per_gpu_hour=None), a_run()).usd_per_replica_hour
    assert option.usable_tokens_per_s(0.8) == 640.0


def test_grams_per_hour_count_the_pue_and_are_unknown_without_power_or_factor() -> None:
    # 500 W x PUE 1.2 = 0.6 kW; 0.6 kW * 100 g/kWh = 60 g/h
    assert a_fleet(pue=1.2).g_per_h(500.0) == pytest.approx(60.0, rel=1e-12)
    assert a_fleet(pue=1.2).g_per_h(None) is None
    assert a_fleet(g_per_kwh=None).g_per_h(500.0) is None


def test_labels_name_fleet_gpus_load_and_repeat() -> None:
    fleet = a_fleet("lab")
    labels = [
        an_option(fleet, a_run(gpu_count=2, offered_requests_per_s=16.0)).label,
        an_option(fleet, a_run(offered_requests_per_s=None)).label,
    ]
    assert [label.startswith(f"lab: {n}x ") for n, label in zip((2, 1), labels, strict=True)] == [True, True]
    assert labels[0].endswith("at 16 req/s") and labels[1].endswith("all at once")
