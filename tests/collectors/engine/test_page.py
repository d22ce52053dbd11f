"""Reading a metrics page: what is found, what is skipped unread, and what a broken or hostile page may do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.engine import page, series
from collectors.engine.page import PageError, read_page, recognise
from collectors.engine.reading import EngineReading, Histogram
from collectors.samples import MAX_BUCKETS, Engine
from tests.collectors.engine.pages import MODEL, Work, vllm_page

ENGINE = f'{{engine="0",model_name="{MODEL}"}}'
SETTINGS = 'vllm:cache_config_info{block_size="16",cache_dtype="auto"} 1.0\n'


def line(name: str, value: object, labels: str = ENGINE) -> str:
    return f"vllm:{name}{labels} {value}\n"


def one(text: str) -> EngineReading:
    (reading,) = read_page(text)
    return reading


def buckets(name: str, cumulative: dict[str, object], total: object = 1.5) -> str:
    """A latency histogram of the engine: `le` -> observations at or under it."""
    lines = [
        line(f"{name}_bucket", count, f'{{engine="0",le="{bound}",model_name="{MODEL}"}}')
        for bound, count in cumulative.items()
    ]
    return "".join([*lines, line(f"{name}_sum", total)])


def ttft(cumulative: dict[str, object], total: object = 1.5) -> Histogram | None:
    return one(
        line("prompt_tokens_total", 1) + buckets("time_to_first_token_seconds", cumulative, total)
    ).histograms.get("ttft")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (SETTINGS, "vllm"),  # an idle V0 shows nothing else
        ("# TYPE sglang:num_running_reqs gauge\n", "sglang"),  # declared, and no series yet
        ("tgi_queue_size 0\n", "tgi"),
        ("x 1\nllamacpp:requests_processing 0\n", "llama_cpp"),
        ('nv_inference_count{model="m",version="1"} 0\n', "triton"),
        ("nv_inference_count 0\nvllm:prompt_tokens_total 0\n", "vllm"),  # Triton's vLLM backend shows both
        ("go_goroutines 5\n", None),
        ('up{job="vllm:x"} 1\n', None),
        ("", None),
    ],
)
def test_a_page_is_recognised_by_its_names(text: str, kind: str | None) -> None:
    assert recognise(text) == kind


def test_a_page_of_another_program_is_refused_in_words() -> None:
    with pytest.raises(PageError, match=r"no metrics of an engine that is known here \(vLLM, SGLang, .*Triton\)"):
        read_page("go_goroutines 5\n")
    with pytest.raises(PageError, match=r"no metrics of SGLang \(names that begin with sglang:\)"):
        read_page(SETTINGS, "sglang")


def test_an_idle_page_without_an_engine_gives_no_reading() -> None:
    assert read_page(SETTINGS) == []
    assert read_page("# TYPE sglang:num_running_reqs gauge\n") == []
    # Of an engine that the configuration names, even a page without a line: nothing was served yet.
    assert read_page("\n", "sglang") == []


def test_numbers_are_read_in_every_notation() -> None:
    text = line("prompt_tokens_total", "1.7e+09") + line("generation_tokens_total", "12 1796151035650")
    assert one(text).counters == {"prompt_tokens": 1_700_000_000, "generated_tokens": 12}
    assert one(line("prompt_tokens_total", "9007199254740993")).counters["prompt_tokens"] == 2**53 + 1


@pytest.mark.parametrize(
    "value", ["NaN", "+Inf", "-Inf", "-1", "0.5", "1e300", "1_0", "", "ten", "0x10", "9" * 5000, "1 # {} 2"]
)
def test_a_value_that_is_no_count_leaves_out_its_column_and_not_the_page(value: str) -> None:
    reading = one(line("prompt_tokens_total", value) + line("generation_tokens_total", 7))
    expected = {"generated_tokens": 7} | ({"prompt_tokens": 1} if value.startswith("1 #") else {})
    assert reading.counters == expected


def test_seconds_become_microseconds_and_ratios_parts_per_million() -> None:
    text = line("request_queue_time_seconds_sum", 84.17070716000126) + line("kv_cache_usage_perc", 0.28169014084507044)
    reading = one(text)
    assert reading.counters == {"queue_us": 84_170_707}
    assert reading.kv_usage_ppm == 281_690


@pytest.mark.parametrize("usage", ["1.5", "-0.1", "NaN"])
def test_a_usage_that_is_no_share_is_unknown(usage: str) -> None:
    reading = one(
        line("kv_cache_usage_perc", usage) + line("num_requests_running", 2**31) + line("num_requests_waiting", 3)
    )
    assert (reading.kv_usage_ppm, reading.running, reading.waiting) == (None, None, 3)


def test_a_name_that_only_begins_alike_is_not_taken() -> None:
    text = line("prompt_tokens_total", 5) + line("prompt_tokens_created", 1.7961511e9) + line("prompt_tokens", 9)
    reading = one(text + line("iteration_tokens_total_sum", 99) + line("estimated_flops_per_gpu_total", 88))
    assert reading.counters == {"prompt_tokens": 5}
    # The creation of a counter is a start time where the page has no other.
    assert reading.started_us == 1_796_151_100_000_000


def test_the_start_of_the_process_is_preferred() -> None:
    text = line("prompt_tokens_created", 1.7961511e9) + "process_start_time_seconds 1.79615103565e+09\n"
    assert one(text).started_us == 1_796_151_035_650_000
    assert one(line("prompt_tokens_total", 1) + "process_start_time_seconds NaN\n").started_us is None


def test_a_series_shown_twice_is_kept_only_where_both_agree() -> None:
    other_order = f'{{model_name="{MODEL}",engine="0"}}'
    agree = line("prompt_tokens_total", 5) + line("prompt_tokens_total", 5.0, other_order)
    contradict = line("generation_tokens_total", 6) + line("generation_tokens_total", 7, other_order)
    assert one(agree + contradict).counters == {"prompt_tokens": 5}


def test_labels_hold_what_the_format_allows() -> None:
    model = r"org/{a}, \"b\" # {c} é"
    text = line("prompt_tokens_total", 5, f'{{ engine="0" , model_name="{model}", }}')
    assert one(text).model == 'org/{a}, "b" # {c} é'


def test_a_line_that_cannot_be_read_is_left_out() -> None:
    text = line("prompt_tokens_total", 1, '{engine="0",engine="1"}') + line("prompt_tokens_total", 2, '{engine="0"')
    text += (
        line("prompt_tokens_total", 3, "{engine=0}") + line("generation_tokens_total", 4) + "vllm:prompt_tokens_total"
    )
    assert one(text).counters == {"generated_tokens": 4}


def test_names_are_cut_to_what_a_row_holds() -> None:
    text = line("prompt_tokens_total", 1, '{engine="0",model_name="' + "m\\n" * 200 + '"}')
    reading = one(text)
    assert reading.model == "m " * 100
    Engine(url="http://node:8000/metrics", label=reading.label, model=reading.model, kind=reading.kind)


def test_engines_whose_names_are_alike_once_cut_are_refused() -> None:
    long = "m" * 200
    text = "".join(line("prompt_tokens_total", 1, f'{{engine="0",model_name="{long}{end}"}}') for end in "ab")
    with pytest.raises(PageError, match="alike in their first 200 characters"):
        read_page(text)


def test_several_engines_of_a_page_are_read_apart_and_share_no_count() -> None:
    text = vllm_page("0.32.0", Work("1", prompt_tokens=7, rejected=3), Work("0", prompt_tokens=5), started_s=None)
    first, second = read_page(text)
    assert [(one.label, one.counters["prompt_tokens"]) for one in (first, second)] == [("0", 5), ("1", 7)]
    assert "rejected" not in first.counters  # whose it was, the page does not tell
    assert one(vllm_page("0.32.0", Work(rejected=3))).counters["rejected"] == 3


def test_buckets_become_counts_of_their_own() -> None:
    histogram = ttft({"0.001": 1, "0.5": 3, "+Inf": 6}, 12.25)
    assert histogram == Histogram((1_000, 500_000), (1, 2, 3), 12_250_000)
    # The order of the lines is no matter, nor how a bound is written.
    assert ttft({"+Inf": 6, "5e-01": 3, "1e-3": 1}, 12.25) == histogram
    assert ttft({"+Inf": 4}) == Histogram((), (4,), 1_500_000)


def test_bounds_that_no_row_can_hold_are_merged_into_their_neighbours() -> None:
    # Nothing takes 0 s or less; two bounds of one microsecond; one beyond 2^53 us.
    histogram = ttft({"-1": 0, "0": 1, "0.0000011": 2, "0.0000012": 4, "1": 5, "1e10": 7, "+Inf": 9})
    assert histogram == Histogram((1, 1_000_000), (4, 1, 4), 1_500_000)


def test_too_many_buckets_are_merged_and_no_observation_is_lost() -> None:
    bounds = {f"{n / 100}": n for n in range(1, 1001)}
    histogram = ttft({**bounds, "+Inf": 1_005})
    assert histogram is not None
    assert len(histogram.counts) == MAX_BUCKETS
    assert (sum(histogram.counts), histogram.counts[-1]) == (1_005, 5)
    # Bound n / 100 s has n observations at or under it, so a bound in us is 10,000 times its cumulative count.
    below = 0
    for bound, count in zip(histogram.bounds_us, histogram.counts, strict=False):
        below += count
        assert bound == below * 10_000


@pytest.mark.parametrize(
    "cumulative",
    [
        {"0.1": 3, "0.5": 2, "+Inf": 4},  # falls
        {"0.1": 1, "0.5": 2},  # no last bucket
        {"0.1": 1, "NaN": 2, "+Inf": 3},
        {"0.1": 1, "half": 2, "+Inf": 3},
        {"0.1": "NaN", "+Inf": 3},
        {"0.1": 0.5, "+Inf": 3},
        {"0.1": -1, "+Inf": 3},
    ],
)
def test_a_histogram_that_is_not_sound_is_left_out(cumulative: dict[str, Any]) -> None:
    assert ttft(cumulative) is None


@pytest.mark.parametrize("total", ["NaN", "-1", "1e20"])
def test_a_histogram_without_a_sum_is_left_out(total: str) -> None:
    assert ttft({"0.1": 1, "+Inf": 3}, total) is None


def test_only_the_lines_that_matter_are_parsed_and_their_labels_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real = series.text_string_to_metric_families

    def count(text: str) -> Any:
        parsed.append(text)
        return real(text)

    monkeypatch.setattr(series, "text_string_to_metric_families", count)
    work = Work(model="counted-lines", prompt_tokens=5, ttft=[0.2])
    text = vllm_page("0.12.0", work)
    first = one(text)
    names = {written.partition("{")[0] for written in parsed}
    assert len(parsed) < text.count("\n") / 2
    assert not names & {"vllm:iteration_tokens_total_bucket", "vllm:request_queue_time_seconds_bucket", "python_info"}
    assert "vllm:cache_config_info" not in names  # the block size matters only where blocks are counted
    parsed.clear()
    work.prompt_tokens, work.ttft = 9, [0.2, 0.3]
    second = one(vllm_page("0.12.0", work))
    assert parsed == []
    assert (first.counters["prompt_tokens"], second.counters["prompt_tokens"]) == (5, 9)


def test_a_page_may_be_long_but_not_without_end() -> None:
    padding = 'other_metric{a="b"} 1\n' * 400_000  # 9 MB that are none of an engine's
    assert one(padding + line("prompt_tokens_total", 5)).counters == {"prompt_tokens": 5}
    with pytest.raises(PageError, match="characters; at most 16000000"):
        read_page(padding * 2)


def test_absurdly_many_series_engines_or_lines_are_refused() -> None:
    many = "".join(line("prompt_tokens_total", 1, f'{{engine="{n}"}}') for n in range(series.MAX_SERIES + 1))
    with pytest.raises(PageError, match="too many series of vLLM: at most 20000"):
        read_page(many)
    with pytest.raises(PageError, match="more than 256 engines"):
        read_page(many[: many.index('engine="300"')])
    reasons = (line("request_success_total", 1, f'{{finished_reason="{n}"}}') for n in range(series.MAX_SERIES + 1))
    with pytest.raises(PageError, match="too many series of vLLM: at most 20000"):
        read_page("".join(reasons))
    with pytest.raises(PageError, match="more than 200000 lines"):
        read_page("vllm:x 1\n" * (series.MAX_LINES + 1))


def test_a_line_of_megabytes_is_skipped() -> None:
    monster = line("generation_tokens_total", 1, '{engine="' + '\\"' * 1_000_000 + '"}')
    assert one(monster + line("prompt_tokens_total", 5)).counters == {"prompt_tokens": 5}


WORDS = st.sampled_from(
    [
        *("vllm:prompt_tokens_total", "vllm:time_to_first_token_seconds_bucket", "# HELP ", "# TYPE ", "# {"),
        *('engine="0"', 'le="0.1"', 'le="+Inf"', "1", "-1", "NaN", "1e999"),
        *("{", "}", '"', "\\", ",", "=", " ", "\n", "\t", "\x00", "é"),
    ]
)


@given(st.lists(WORDS, max_size=40).map("".join), st.sampled_from([None, "vllm", "sglang", "triton"]))
def test_no_text_breaks_the_reader(text: str, kind: Any) -> None:
    try:
        readings = read_page(text, kind)
    except PageError:
        return
    for reading in readings:
        assert all(type(value) is int and value >= 0 for value in reading.counters.values())


@given(st.text(max_size=200))
def test_no_rest_of_a_line_breaks_the_reader(rest: str) -> None:
    """What cannot be read is left out; the page's other lines count all the same."""
    good = "vllm:generation_tokens_total 7.0\n"
    page = f"{SETTINGS}{good}vllm:prompt_tokens_total{rest}\nvllm:request_success_total{{{rest}}} 1\n"
    readings = [reading for reading in read_page(page) if "generated_tokens" in reading.counters]
    assert [reading.counters["generated_tokens"] for reading in readings] == [7]


def test_every_kind_has_a_table() -> None:
    assert set(page.TABLES) == {"vllm", "sglang", "tgi", "llama_cpp", "triton"}
