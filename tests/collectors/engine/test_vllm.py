"""vLLM by its versions: built pages of each, and real captures against what the client of the same run saw."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from collectors.engine.difference import Differences, Interval
from collectors.engine.page import read_page, recognise
from collectors.engine.reading import EngineReading, Histogram
from tests.collectors.engine.pages import E2E_BOUNDS, ITL_BOUNDS, TTFT_BOUNDS, VERSIONS, Version, Work, vllm_page
from tests.conftest import ROOT

CAPTURES = ROOT.parent / "shared" / "vllm_metrics"
V0, V1_OLD = "0.8.5.post2", "0.8.5.post2-v1stub"
FULL_RUNS = (V0, V1_OLD, "0.10.2.post2", "0.12.0.post2", "0.32.0")
V1_RUNS = FULL_RUNS[1:]
TOKENS = ("prompt_tokens", "generated_tokens")
FINISHED = ("finished_stop", "finished_length")

WORK = Work(
    prompt_tokens=4291, cached_tokens=3360, transferred_tokens=32, generated_tokens=72,
    finished={"stop": 2, "length": 4, "abort": 1}, preemptions=3, running=2, waiting=5, kv_usage=0.25,
    prefill_s=0.5, decode_s=1.5, queue_s=0.25, ttft=[0.015, 0.05, 0.05], itl=[0.005, 0.02], e2e=[0.4, 0.6],
)  # fmt: skip


def one(text: str) -> EngineReading:
    (reading,) = read_page(text)
    return reading


def in_buckets(bounds_s: tuple[float, ...], observed: list[float]) -> Histogram:
    edges = [*bounds_s, float("inf")]
    counts = [sum(low < one <= high for one in observed) for low, high in zip([0, *edges], edges, strict=False)]
    return Histogram(tuple(round(bound * 1e6) for bound in bounds_s), tuple(counts), round(sum(observed) * 1e6))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_the_same_work(version: Version) -> None:
    text = vllm_page(version, WORK)
    reading = one(text)
    assert (recognise(text), reading.kind, reading.model) == ("vllm", "vllm", "tiny-llama")
    assert reading.label == ("" if version == "0.8.5-v0" else "0")
    common = {
        "prompt_tokens": 4291, "generated_tokens": 72, "finished_stop": 2, "finished_length": 4, "finished_aborted": 1,
        "preemptions": 3, "prefill_us": 500_000, "decode_us": 1_500_000, "queue_us": 250_000, "inference_us": 2_000_000,
    }  # fmt: skip
    assert {name: reading.counters.get(name) for name in common} == common
    assert (reading.running, reading.waiting, reading.kv_usage_ppm) == (2, 5, 250_000)
    assert reading.histograms == {
        "ttft": in_buckets(TTFT_BOUNDS, WORK.ttft),
        "itl": in_buckets(ITL_BOUNDS, WORK.itl),
        "e2e": in_buckets(E2E_BOUNDS, WORK.e2e),
    }


def test_the_cache_is_told_by_source_from_0_20_on() -> None:
    counters = one(vllm_page("0.32.0", WORK)).counters
    # Served by a cache: 3328 of this engine's own and 32 of another's.
    assert (counters["cached_tokens"], counters["transferred_tokens"]) == (3360, 32)
    assert (counters["finished_failed"], counters["rejected"]) == (0, 0)


@pytest.mark.parametrize("version", ["0.9.1", "0.10.2", "0.12.0"])
def test_the_prefix_cache_is_told_in_tokens(version: Version) -> None:
    counters = one(vllm_page(version, WORK)).counters
    assert (counters["prefix_query_tokens"], counters["prefix_hit_tokens"]) == (4291, 3360)
    # What a version does not have is unknown, not 0.
    assert not {"cached_tokens", "transferred_tokens", "finished_failed", "rejected"} & counters.keys()


def test_prefix_cache_blocks_of_0_8_5_become_tokens() -> None:
    counters = one(vllm_page("0.8.5", WORK, block_size=32)).counters
    # 4291 // 32 = 134 blocks looked up, 3360 // 32 = 105 found; 134 x 32 = 4288, 105 x 32 = 3360.
    assert (counters["prefix_query_tokens"], counters["prefix_hit_tokens"]) == (4288, 3360)


def test_prefix_cache_of_unknown_unit_is_unknown() -> None:
    text = vllm_page("0.8.5", WORK)
    silent = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("# HELP"))
    no_size = text.replace('block_size="16"', 'block_size="None"')
    two_sizes = text + 'vllm:cache_config_info{block_size="32",cache_dtype="auto"} 1.0\n'
    for page in (silent, no_size, two_sizes):
        assert not {"prefix_query_tokens", "prefix_hit_tokens"} & one(page).counters.keys()


def test_an_idle_v0_shows_no_engine_and_an_idle_v1_zeros() -> None:
    assert read_page(vllm_page("0.8.5-v0", Work())) == []
    assert one(vllm_page("0.12.0", Work())).counters["prompt_tokens"] == 0


def test_v0_knows_of_a_reason_once_it_has_happened() -> None:
    assert "finished_stop" not in one(vllm_page("0.8.5-v0", Work(prompt_tokens=5))).counters
    counters = one(vllm_page("0.8.5-v0", Work(prompt_tokens=5, finished={"length": 2}))).counters
    assert (counters["finished_length"], counters["finished_stop"], counters["finished_aborted"]) == (2, 0, 0)
    assert "finished_failed" not in counters


def test_a_repetition_is_a_stop_and_an_error_a_failure() -> None:
    work = Work(finished={"stop": 3, "repetition": 2, "error": 4}, prompt_tokens=1)
    counters = one(vllm_page("0.32.0", work)).counters
    assert (counters["finished_stop"], counters["finished_failed"]) == (5, 4)


# Real captures.


@dataclass
class Client:
    """What the client of a run saw in one phase, summed over its requests."""

    finished: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cached_told: bool = False
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, request: dict[str, Any]) -> None:
        self.refused += request["http_status"] is not None and request["http_status"] >= 400
        if request["aborted_by_client"] or not request["finish_reasons"]:
            return
        self.finished += len(request["finish_reasons"])
        # The server counts the prompt of `n=2` twice, usage bills it once.
        self.prompt_tokens += request["prompt_tokens"] * request["n"]
        self.completion_tokens += request["completion_tokens"]
        self.cached_tokens += request["cached_tokens"] or 0
        self.cached_told |= request["cached_tokens"] is not None
        self.reasons.update(request["finish_reasons"])


@dataclass
class Run:
    """One capture, replayed: phase -> what happened since the look before it, by engine label."""

    client: dict[str, Client]
    snapshots: dict[str, Path]
    intervals: dict[str, dict[str, Interval]]

    def of(self, snapshot: str) -> Interval:
        (interval,) = self.intervals[snapshot].values()
        return interval

    def load(self, column: str) -> int:
        """Over the whole load, three looks."""
        return sum(self.of(name).counters[column] for name in ("load_mid", "load_mid2", "load_end"))


def replay(name: str) -> Run:
    folder = CAPTURES / name
    if not folder.is_dir():
        pytest.skip("the captures of real vLLM servers are not beside this checkout")
    client: dict[str, Client] = {}
    for line in (folder / "requests.jsonl").read_text().splitlines():
        request = json.loads(line)
        client.setdefault(request["phase"], Client()).add(request)
    differences = Differences()
    run = Run(client, {}, {})
    for snapshot in json.loads((folder / "timeline.json").read_text())["snapshots"]:
        run.snapshots[snapshot["name"]] = path = folder / snapshot["file"]
        if "openmetrics" in snapshot["name"]:
            continue
        intervals = differences.look(read_page(path.read_text()), round(snapshot["t_unix"] * 1e6))
        run.intervals[snapshot["name"]] = {interval.reading.label: interval for interval in intervals}
    return run


def counted(interval: Interval, *columns: str) -> tuple[int | None, ...]:
    return tuple(interval.counters.get(column) for column in columns)


@pytest.mark.parametrize("name", FULL_RUNS)
def test_captured_tokens_and_requests_are_those_of_the_client(name: str) -> None:
    run = replay(name)
    for phase in ("s1_basic", "s2_prefix", "s3_rejected", "s4_parallel", "restarted_s1"):
        client, interval = run.client[phase], run.of(phase)
        assert counted(interval, *TOKENS) == (client.prompt_tokens, client.completion_tokens), phase
        assert counted(interval, *FINISHED) == (client.reasons["stop"], client.reasons["length"]), phase
        assert sum(interval.histograms["e2e"].counts) == client.finished, phase
        assert sum(interval.histograms["ttft"].counts) == client.finished, phase
        # One gap less than tokens for each request.
        assert sum(interval.histograms["itl"].counts) == client.completion_tokens - client.finished, phase
        assert counted(interval, "finished_aborted", "preemptions") == (0, 0), phase
    assert run.client["s3_rejected"].refused == 3
    assert counted(run.of("s3_rejected"), "prompt_tokens", *FINISHED) == (0, 0, 0)


@pytest.mark.parametrize("name", FULL_RUNS)
def test_captured_aborts_count_their_tokens_and_finish_nothing(name: str) -> None:
    interval = replay(name).of("s5_aborted")
    # Prompts of 72 + 69 + 71 tokens by usage, and 66 of the request that was not streamed and so never told.
    assert interval.counters["prompt_tokens"] == 278
    # 3 + 10 + 40 tokens reached the client; the server made more, and those of the request that was dropped.
    assert interval.counters["generated_tokens"] > 53
    assert counted(interval, *FINISHED, "finished_aborted") == (0, 0, 0)
    assert (sum(interval.histograms["e2e"].counts), sum(interval.histograms["ttft"].counts)) == (0, 4)


# generated, prompt, first tokens, preemptions of the load; README of the captures.
@pytest.mark.parametrize(
    ("name", "generated", "prompt", "first_tokens", "preemptions"),
    [
        (V0, 7741, 5701, 18, 3),  # V0 counts preempted work again
        (V1_OLD, 7740, 4121, 15, 3),
        ("0.10.2.post2", 7741, 4121, 15, 0),
        ("0.12.0.post2", 7742, 4121, 15, 2),
        ("0.32.0", 7740, 4121, 15, 3),
    ],
)
def test_captured_load_counts_what_the_engines_did(
    name: str, generated: int, prompt: int, first_tokens: int, preemptions: int
) -> None:
    run = replay(name)
    looks = [run.of(snapshot) for snapshot in ("load_mid", "load_mid2", "load_end")]
    # 3917 + 204 of the aborted one = 4121 prompt tokens; 7680 + 60 or more of the aborted one generated.
    assert (run.client["load"].prompt_tokens, run.client["load"].completion_tokens) == (3917, 7680)
    assert (run.load("generated_tokens"), run.load("prompt_tokens")) == (generated, prompt)
    assert run.load("preemptions") == preemptions
    assert sum(sum(look.histograms["ttft"].counts) for look in looks) == first_tokens
    assert sum(run.load(column) for column in FINISHED) == run.client["load"].finished == 14
    assert sum(sum(look.histograms["e2e"].counts) for look in looks) == 14
    assert (looks[0].reading.running, looks[0].reading.waiting) in {(4, 11), (4, 12)}
    assert (looks[-1].reading.running, looks[-1].reading.waiting) == (0, 0)


@pytest.mark.parametrize("name", ["0.10.2.post2", "0.12.0.post2", "0.32.0"])
def test_captured_prefix_hits_agree_with_the_client_without_pressure(name: str) -> None:
    run = replay(name)
    assert run.client["s2_prefix"].cached_tokens == 3360
    assert counted(run.of("s2_prefix"), "prefix_query_tokens", "prefix_hit_tokens") == (4291, 3360)
    assert run.of("s4_parallel").counters["prefix_hit_tokens"] == run.client["s4_parallel"].cached_tokens == 32


def test_captured_cached_tokens_of_0_32_agree_with_the_client_under_pressure_too() -> None:
    run = replay("0.32.0")
    for phase in ("s1_basic", "s2_prefix", "s4_parallel", "restarted_s1"):
        assert run.client[phase].cached_told
        assert run.of(phase).counters["cached_tokens"] == run.client[phase].cached_tokens, phase
        assert run.of(phase).counters["transferred_tokens"] == 0
    # The finished requests' 2080 and 160 of the aborted one, which never learnt of it.
    assert (run.client["load"].cached_tokens, run.load("cached_tokens")) == (2080, 2240)


def test_captured_prefix_cache_repeats_itself_under_pressure() -> None:
    # Blocks of 16 tokens in 0.8.5: 5705 looked up and 4357 found, most of them again and again.
    old = replay(V1_OLD)
    assert (old.load("prefix_query_tokens"), old.load("prefix_hit_tokens")) == (5705 * 16, 4357 * 16)
    middle = replay("0.12.0.post2")
    assert (middle.load("prefix_query_tokens"), middle.load("prefix_hit_tokens")) == (10801, 5440)
    new = replay("0.10.2.post2")
    assert (new.load("prefix_query_tokens"), new.load("prefix_hit_tokens")) == (4121, 2240)
    assert "prefix_query_tokens" not in replay(V0).of("load_end").counters


@pytest.mark.parametrize("name", V1_RUNS)
def test_a_captured_restart_starts_from_0_when_the_process_began(name: str) -> None:
    run = replay(name)
    before, interval = run.of("load_end").reading, run.of("restarted")
    assert before.started_us is not None
    assert interval.reading.started_us is not None
    assert interval.reading.started_us > before.started_us
    assert interval.t_us - interval.dt_us == interval.reading.started_us
    assert set(interval.counters.values()) == {0}
    assert run.of("restarted_s1").counters["prompt_tokens"] == 209


def test_a_captured_v0_begins_with_its_first_request() -> None:
    run = replay(V0)
    assert run.intervals["idle"] == run.intervals["restarted"] == {}
    first, again = run.of("s1_basic"), run.of("restarted_s1")
    assert (first.reading.label, first.reading.started_us) == ("", None)
    # From 0, since the look that did not show the engine.
    assert (first.counters["prompt_tokens"], again.counters["prompt_tokens"]) == (1295, 209)
    assert 0 < first.dt_us < 10_000_000


def test_a_capture_of_two_engines_adds_up_to_the_client() -> None:
    run = replay("0.32.0-dp2")
    assert [reading.label for reading in read_page(run.snapshots["idle"].read_text())] == ["0", "1"]
    client = run.client["load"]
    totals: Counter[str] = Counter()
    for snapshot in ("load_mid", "load_end"):
        assert run.intervals[snapshot].keys() == {"0", "1"}
        for interval in run.intervals[snapshot].values():
            totals.update(interval.counters)
            assert interval.reading.started_us is None
            assert "rejected" not in interval.counters
    assert (totals["prompt_tokens"], totals["generated_tokens"]) == (client.prompt_tokens, client.completion_tokens)
    assert (client.prompt_tokens, client.completion_tokens, totals["finished_length"]) == (827, 1800, 12)
    mid = run.intervals["load_mid"]
    assert [mid[label].reading.running for label in "01"] == [4, 4]
    assert [mid[label].reading.kv_usage_ppm for label in "01"] == [253_521, 239_437]  # 18 and 17 of 71 blocks


def test_a_capture_with_other_metrics_switched_on_reads_alike() -> None:
    run = replay("0.32.0-mfu")
    intervals = [run.of(snapshot) for snapshot in ("load_mid", "load_end")]
    assert [sum(one.counters[column] for one in intervals) for column in TOKENS] == [827, 1800]


@pytest.mark.parametrize("name", FULL_RUNS)
def test_a_capture_that_was_asked_for_openmetrics_reads_alike(name: str) -> None:
    run = replay(name)
    for snapshot in ("idle", "load_end"):
        plain, other = (read_page(run.snapshots[which].read_text()) for which in (snapshot, f"{snapshot}_openmetrics"))
        assert plain == other


@pytest.mark.parametrize("name", FULL_RUNS)
def test_captured_latencies_have_the_buckets_of_the_page(name: str) -> None:
    reading = replay(name).of("load_end").reading
    bounds = {"ttft": TTFT_BOUNDS, "itl": ITL_BOUNDS, "e2e": E2E_BOUNDS}
    assert {metric: histogram.bounds_us for metric, histogram in reading.histograms.items()} == {
        metric: tuple(round(bound * 1e6) for bound in seconds) for metric, seconds in bounds.items()
    }
    assert reading.model == "tiny-llama"
