"""SGLang, TGI, llama.cpp and Triton, by pages made by hand from their documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.engine.page import TABLES, read_page, recognise
from collectors.engine.reading import EngineReading, Histogram
from collectors.samples import EngineSamples
from tests.conftest import ROOT

SAMPLES = ROOT / "tests" / "data" / "engines"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.prom").read_text(encoding="utf-8")


def one(text: str) -> EngineReading:
    (reading,) = read_page(text)
    return reading


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sglang", "sglang"),
        ("tgi", "tgi"),
        ("llama_cpp", "llama_cpp"),
        ("triton", "triton"),
        ("triton_tensorrt_llm", "triton"),
    ],
)
def test_a_sample_is_recognised_and_says_that_it_is_made_by_hand(name: str, kind: str) -> None:
    text = sample(name)
    assert recognise(text) == kind
    assert {reading.kind for reading in read_page(text)} == {kind}
    assert "made by hand" in text.splitlines()[0]


def test_each_sample_has_a_test() -> None:
    assert {Path(path).stem for path in SAMPLES.iterdir()} == {
        "sglang", "tgi", "llama_cpp", "triton", "triton_tensorrt_llm"
    }  # fmt: skip


def test_tables_name_columns_of_a_row_only() -> None:
    for table in TABLES.values():
        assert table.counters.keys() <= EngineSamples.model_fields.keys()
        assert table.gauges.keys() <= {"running", "waiting", "kv_usage_ppm"}


def test_sglang() -> None:
    reading = one(sample("sglang"))
    assert (reading.label, reading.model, reading.started_us) == ("", "qwen3-8b", None)
    assert reading.counters == {
        "prompt_tokens": 8_128_902 + 98,  # streamed and not
        "cached_tokens": 6_000 + 400,  # from the device and from the host
        "generated_tokens": 7_557_572 + 28,
        "finished_stop": 64,
        "finished_aborted": 7,
        "preemptions": 5 + 2,  # of two replicas; the second rank of the first says its 5 again
        "queue_us": 1_500_000 + 4_250_000,
    }
    # The replica with two ranks runs 3, the other 2; the fuller one's cache is the engine's.
    assert (reading.running, reading.waiting, reading.kv_usage_ppm) == (5, 4, 310_000)
    assert reading.histograms == {
        "ttft": Histogram((100_000, 200_000, 400_000, 1_000_000), (11, 20, 27, 5, 1), 18_750_000),
        "itl": Histogram((2_000, 4_000, 10_000, 100_000), (5, 50, 500, 40, 5), 6_500_000),
        "e2e": Histogram((100_000, 1_000_000, 10_000_000, 2_400_000_000), (0, 23, 40, 1, 0), 256_000_000),
    }


def test_sglang_before_its_labels_came() -> None:
    labels = '{model_name="llama"}'
    text = f"sglang:prompt_tokens_total{labels} 5.0\nsglang:num_running_reqs{labels} 2.0\n"
    # One mean per request: no latency between tokens.
    text += 'sglang:time_per_output_token_seconds_bucket{le="+Inf",model_name="llama"} 4.0\n'
    text += f"sglang:time_per_output_token_seconds_sum{labels} 1.0\n"
    reading = one(text)
    assert (reading.counters, reading.running, reading.histograms) == ({"prompt_tokens": 5}, 2, {})


def test_sglang_with_priorities_counts_the_total_once() -> None:
    # priority "" is the total of the priorities beside it.
    lines = [
        f'sglang:num_queue_reqs{{model_name="m",priority="{name}"}} {n}' for name, n in (("", 5), ("0", 3), ("1", 2))
    ]
    assert one("\n".join([*lines, ""])).waiting == 5


def test_tgi() -> None:
    reading = one(sample("tgi"))
    assert (reading.label, reading.model) == ("", None)
    assert reading.counters == {
        "prompt_tokens": 77_001,
        "generated_tokens": 31_007,
        "finished_stop": 150,
        "finished_aborted": 4,
        "finished_failed": 1 + 1,
        "rejected": 9 + 2,
        "queue_us": 31_000,
        "inference_us": 410_500_000,
    }
    assert (reading.running, reading.waiting, reading.kv_usage_ppm) == (16, 6, None)
    assert reading.histograms.keys() == {"e2e"}
    e2e = reading.histograms["e2e"]
    # 0.1 ms x 1.5, x 1.5, ...: 150, 225, 337.5, ... us.
    assert e2e.bounds_us[:3] == (150, 225, 338)
    assert ({n: count for n, count in enumerate(e2e.counts) if count}, e2e.sum_us) == (
        {20: 40, 25: 100, 30: 9, 35: 1},
        412_750_000,  # 412.7500005 s
    )


def test_tgi_without_a_failure_knows_of_none() -> None:
    counters = one("tgi_request_success 3\n").counters
    assert counters == {"finished_stop": 3}
    with_one = one('tgi_request_success 3\ntgi_request_failure{err="overloaded"} 1\n').counters
    assert (with_one["rejected"], with_one["finished_failed"], with_one["finished_aborted"]) == (1, 0, 0)


def test_llama_cpp() -> None:
    reading = one(sample("llama_cpp"))
    assert (reading.label, reading.model, reading.histograms) == ("", None, {})
    assert reading.counters == {
        "prompt_tokens": 6_886,
        "generated_tokens": 1_234_570,  # printed as 1.23457e+06
        "prefill_us": 2_903_630_000,
        "decode_us": 3_544_270_000,
    }
    assert (reading.running, reading.waiting, reading.kv_usage_ppm) == (2, 5, 250_000)


def test_tensorrt_llm_on_triton_is_one_engine_among_the_models_of_its_page() -> None:
    reading = one(sample("triton_tensorrt_llm"))
    assert (reading.label, reading.model) == ("1", "tensorrt_llm")
    assert reading.counters == {
        "prompt_tokens": 4_321,
        "generated_tokens": 8_765,
        "finished_stop": 43,
        "finished_aborted": 4,
        "finished_failed": 1 + 2,
        "rejected": 8,
        "queue_us": 5_003,
        "inference_us": 90_000_003,
    }
    # 1250 of 6249 blocks: 0.200032.
    assert (reading.running, reading.waiting, reading.kv_usage_ppm) == (5, 3, 200_032)
    assert reading.histograms == {
        "ttft": Histogram((100_000, 500_000, 2_000_000, 5_000_000), (20, 15, 5, 2, 1), 12_345_500)
    }


def test_an_older_tensorrt_llm_waits_in_triton_and_may_have_no_cache() -> None:
    lines = [line for line in sample("triton_tensorrt_llm").splitlines() if 'request_type="waiting"' not in line]
    text = "\n".join(lines).replace('version="1"} 6249', 'version="1"} 0')
    reading = one(text + "\n")
    assert (reading.waiting, reading.kv_usage_ppm) == (3, None)


def test_triton_alone_shows_its_models_by_version() -> None:
    readings = read_page(sample("triton"))
    assert [(one.label, one.model) for one in readings] == [("1", "opt-125m"), ("1", "tiny"), ("2", "opt-125m")]
    # An older Triton gives no reason for a failure: all of them failed.
    assert [one.counters for one in readings] == [
        {"finished_stop": 2, "finished_failed": 3, "queue_us": 2_000},
        {"finished_stop": 0, "finished_failed": 1, "queue_us": 0},
        {"finished_stop": 5, "finished_failed": 6, "queue_us": 5_000},
    ]


def test_vllm_inside_triton_is_read_as_vllm() -> None:
    labels = '{model="vllm_model",version="1"}'
    reading = one(f"nv_inference_request_success{labels} 3\nvllm:prompt_tokens_total{labels} 24\n")
    assert (reading.kind, reading.model, reading.counters) == ("vllm", "vllm_model", {"prompt_tokens": 24})
