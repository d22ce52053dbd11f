"""What vLLM 0.8 to the newest write, and what of it counts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from collectors.benchmark.fields import FieldError, GpuOverride
from collectors.benchmark.run import BenchmarkRun, Latency
from collectors.benchmark.vllm import parse, recognises
from tests.collectors.benchmark.results import result, without


def parsed(content: dict[str, Any], gpu: GpuOverride | None = None) -> BenchmarkRun:
    [run] = parse(content, file="a.json", index=0, line=1, gpu=gpu)
    return run


def test_every_fact_of_a_study_file_is_kept() -> None:
    [run] = parse(result(), file="a.json", index=1, line=7)
    assert run == BenchmarkRun(
        model="nvidia/AceMath-7B-Instruct",
        backend="vllm",
        gpu_name="NVIDIA-H100-PCIe",
        gpu_count=1,
        offered_requests_per_s=16.0,
        burstiness=1.0,
        max_concurrency=None,
        num_prompts=200,
        completed=200,
        duration_s=19.004579995002132,
        prompt_tokens=40991,
        generated_tokens=43344,
        latency={
            "ttft": Latency(23.85, 3.69, {50.0: 23.66, 99.0: 31.64, 100.0: 33.88}),
            "tpot": Latency(11.66, None, {99.0: 12.30}),
            "itl": Latency(11.63, None, {99.0: 13.03}),
        },
        recorded_at=datetime(2025, 6, 10, 15, 11, 48, tzinfo=UTC),
        source_file="a.json",
        source_index=1,
        source_line=7,
    )


@pytest.mark.parametrize(("given", "count"), [("4", 4), (4, 4), (4.0, 4), (" 8 ", 8)])
def test_gpu_count_may_be_text_or_a_number(given: object, count: int) -> None:
    assert parsed(result(gpu_count=given)).gpu_count == count


def test_the_goodput_key_with_a_colon_changes_nothing() -> None:
    assert parsed(without("request_goodput:")) == parsed(result())


@pytest.mark.parametrize("everything_at_once", ["inf", float("inf")])
def test_an_infinite_request_rate_means_all_at_once(everything_at_once: object) -> None:
    run = parsed(result(request_rate=everything_at_once))
    assert run.offered_requests_per_s is None
    assert run.arrival_s == 0


def test_keys_of_newer_versions_are_let_by() -> None:
    newer = result(
        endpoint_type="openai", label=None, request_goodput=9.5, ramp_up_strategy="linear", input_lens=[1, 2],
        ttfts=[0.1], itls=[[0.1, 0.2]], generated_texts=["x"], errors=[""], max_output_tokens_per_s=900.0,
        max_concurrent_requests=31, rtfx=0.0, spec_decode_acceptance_rate=None, start_times=[1.0], failed=0,
    )  # fmt: skip
    assert parsed(newer) == parsed(result())


@pytest.mark.parametrize(
    ("key", "percentile"),
    [("p99.9_ttft_ms", 99.9), ("p99.99_ttft_ms", 99.99), ("p5_ttft_ms", 5.0), ("p100_ttft_ms", 100.0)],
)
def test_any_percentile_is_read(key: str, percentile: float) -> None:
    assert parsed(result(**{key: 40.5})).latency["ttft"].quantiles_ms[percentile] == 40.5


@pytest.mark.parametrize("key", ["p0_ttft_ms", "p101_ttft_ms", "p-1_ttft_ms", "p99_queue_ms", "p99_ttft_s"])
def test_what_is_no_percentile_is_let_by(key: str) -> None:
    assert parsed(result(**{key: 40.5})) == parsed(result())


def test_end_to_end_latency_is_called_e2e() -> None:
    run = parsed(result(mean_e2el_ms=2500.0, std_e2el_ms=10.0, median_e2el_ms=2400.0, p99_e2el_ms=4000.0))
    assert run.latency["e2e"] == Latency(2500.0, 10.0, {50.0: 2400.0, 99.0: 4000.0})
    assert run.mean_e2e_ms == 2500.0


def test_without_e2e_the_mean_is_ttft_and_tpot_of_the_later_tokens() -> None:
    # 23.85 ms + 11.66 ms x (43344 / 200 - 1 tokens) = 23.85 + 11.66 x 215.72 = 2539.1452
    assert parsed(result()).mean_e2e_ms == pytest.approx(2539.1452)


def test_nan_latency_is_missing_and_the_rest_is_read() -> None:
    run = parsed(result(mean_tpot_ms=float("nan"), p99_tpot_ms=float("nan"), p99_itl_ms=float("nan")))
    assert "tpot" not in run.latency
    assert run.latency["itl"] == Latency(11.63, None, {})
    assert run.mean_e2e_ms is None


def test_the_median_fills_p50_where_no_p50_is_written() -> None:
    assert parsed(without("p50_ttft_ms") | {"median_ttft_ms": 22.0}).latency["ttft"].quantiles_ms[50.0] == 22.0
    assert parsed(result(p50_ttft_ms=23.0, median_ttft_ms=22.0)).latency["ttft"].quantiles_ms[50.0] == 23.0


def test_no_tokens_and_no_finished_request_are_facts() -> None:
    run = parsed(result(completed=0, total_input_tokens=0, total_output_tokens=0))
    assert (run.completed, run.total_tokens, run.mean_e2e_ms) == (0, 0, None)


@pytest.mark.parametrize("key", ["backend", "max_concurrency", "burstiness", "date"])
def test_an_optional_fact_that_is_missing_is_none(key: str) -> None:
    run = parsed(without(key))
    assert getattr(run, {"date": "recorded_at"}.get(key, key)) is None
    assert parsed(result(**{key: None})) == run


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_id": 7}, "`model_id`: given 7; accepted: printable text of 1 to 300 characters"),
        ({"model_id": "  "}, "`model_id`: given '  '"),
        ({"model_id": "a\nb"}, "`model_id`: given 'a\\nb'"),
        ({"model_id": "m" * 301}, "`model_id`"),
        ({"num_prompts": 0}, "`num_prompts`: given 0; accepted: a whole number >= 1"),
        ({"num_prompts": 1.5}, "`num_prompts`: given 1.5"),
        ({"num_prompts": True}, "`num_prompts`: given True"),
        ({"completed": 201}, "`completed`: given 201; accepted: at most num_prompts (200)"),
        ({"completed": -1}, "`completed`: given -1; accepted: a whole number >= 0"),
        ({"duration": 0}, "`duration`: given 0; accepted: seconds > 0"),
        ({"duration": float("nan")}, "`duration`: given nan"),
        ({"duration": float("inf")}, "`duration`: given inf"),
        ({"duration": "19"}, "`duration`: given '19'"),
        ({"duration": 10**400}, "`duration`: given 1000"),
        ({"total_input_tokens": -1}, "`total_input_tokens`: given -1"),
        ({"total_output_tokens": 2**53 + 2}, "`total_output_tokens`: given 9007199254740994"),
        ({"total_output_tokens": None}, "`total_output_tokens`: given None"),
        ({"request_rate": 0}, "`request_rate`: given 0; accepted: requests/s > 0, or \"inf\""),
        ({"request_rate": "fast"}, "`request_rate`: given 'fast'"),
        ({"request_rate": float("nan")}, "`request_rate`: given nan"),
        ({"burstiness": -1}, "`burstiness`: given -1; accepted: a number > 0"),
        ({"max_concurrency": 0}, "`max_concurrency`: given 0"),
        ({"gpu_count": "0"}, "`gpu_count`: given 0; accepted: a whole number >= 1"),
        ({"gpu_count": "two"}, "`gpu_count`: given 'two'"),
        ({"gpu_count": 1.5}, "`gpu_count`: given 1.5"),
        ({"gpu_name": ["H100"]}, "`gpu_name`: given ['H100']"),
        ({"date": "2025-06-10"}, "`date`: given '2025-06-10'; accepted: YYYYMMDD-HHMMSS"),
        ({"date": 20250610}, "`date`: given 20250610"),
        ({"mean_ttft_ms": -0.1}, "`mean_ttft_ms`: given -0.1; accepted: milliseconds >= 0"),
        ({"p99_ttft_ms": "31"}, "`p99_ttft_ms`: given '31'"),
        ({"median_itl_ms": float("inf")}, "`median_itl_ms`: given inf"),
        ({"std_tpot_ms": [1]}, "`std_tpot_ms`: given [1]"),
    ],
)  # fmt: skip
def test_an_impossible_value_is_told_with_key_value_and_what_is_accepted(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(FieldError) as refused:
        parsed(result(**changes))
    assert str(refused.value).startswith(told)
    assert "; accepted: " in str(refused.value)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize("key", ["model_id", "num_prompts", "completed", "duration", "request_rate",
                                 "total_input_tokens", "total_output_tokens"])  # fmt: skip
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(FieldError, match=rf"`{key}`: given None; accepted: .*\(the key is missing\)"):
        parsed(without(key))


def test_gpu_options_fill_what_the_file_lacks_and_win_over_it() -> None:
    with pytest.raises(FieldError, match=r"`gpu_name`.*--gpu"):
        parsed(without("gpu_name"))
    with pytest.raises(FieldError, match=r"`gpu_count`.*--gpu-count"):
        parsed(without("gpu_count"))
    told = GpuOverride("NVIDIA L40S", 2)
    for content in (without("gpu_name", "gpu_count"), result()):
        run = parsed(content, told)
        assert (run.gpu_name, run.gpu_count) == ("NVIDIA L40S", 2)


@pytest.mark.parametrize(
    ("candidate", "ours"),
    [
        (result(), True),
        ({"duration": 1, "completed": 1}, True),
        ({"duration": 1, "name": "x"}, False),
        ({}, False),
        ([result()], False),
        ("duration completed", False),
        (None, False),
    ],
)
def test_a_result_is_known_by_half_of_the_keys_that_every_one_has(candidate: object, ours: bool) -> None:
    assert recognises(candidate) is ours
