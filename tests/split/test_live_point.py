"""Bins of load as operating points: what a replica sustained, how long requests took, and what it drew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.latency import Bucket
from app.split.live_point import (
    IDLE_BY_TDP,
    LOADED_BY_TDP,
    Curve,
    Idle,
    fitted,
    live_curve,
)
from app.split.load_bin import LoadBin, ReplicaType, normal, widened
from app.split.options import Option, admit
from app.split.point import OperatingPoint
from app.split.run_point import TDP_ESTIMATE

from .builders import MODEL, a_class, a_demand, a_fleet, a_slo

KIND = ReplicaType("h100", MODEL, "X", 2)
END = datetime(2026, 2, 3, 4, tzinfo=UTC)
START = END - timedelta(days=14)
# An idle hour at 160 W
IDLE = Idle(60, 3600, 160 * 3600)
EDGES_S = (0.0, 0.05, 0.1, 0.2, math.inf)


def a_bin(load: float, *counts: int, **said: Any) -> LoadBin:
    """Ten minutes at `load` tokens/s, four in five of them prompt, a request per 100, 400 W; counts: TTFT buckets of up
    to 50, 100, 200 ms and above."""
    tokens = load * 600
    requests = counts or (round(tokens / 100),)
    known: dict[str, Any] = {
        "low": load * 0.98, "high": load * 1.02, "is_throttled": False, "engines": 3, "minutes": 10, "seconds": 600,
        "queued_s": 0, "finished": tokens / 100, "failed": 0, "prompt_tokens": tokens * 0.8,
        "generated_tokens": tokens * 0.2, "running_s": 0, "gauged_s": 0, "prefill_s": 0, "decode_s": 0,
        "timed_prompt_tokens": 0, "timed_generated_tokens": 0, "power_ws": 400 * 600,
        "latency": {"ttft": [Bucket(*edges, n) for edges, n in zip(pairwise(EDGES_S), requests, strict=False)]},
    }  # fmt: skip
    return LoadBin(**(known | said))


def curve(*bins: LoadBin, idle: Idle = IDLE, tdp_w: float | None = 350, kind: ReplicaType = KIND) -> Curve:
    return live_curve(kind, bins, idle, tdp_w, START, END)


def only(found: Curve) -> OperatingPoint:
    (point,) = found.points
    return point


def p99s(found: Curve) -> list[float]:
    return [point.latency["ttft"].quantiles_ms[99.0] for point in found.points]


def test_a_point_is_what_one_replica_sustained() -> None:
    """300 requests of 100 tokens in 600 s: 0.5 requests/s and 50 tokens/s."""
    point = only(curve(a_bin(50)))
    assert (point.point_id, point.source) == (f"live:h100:{MODEL}:2:49", "live")
    assert (point.qps, point.tokens_per_s, point.n, point.prompt_share) == (0.5, 50.0, 300, pytest.approx(0.8))
    assert point.window is not None
    assert (point.window.start, point.window.end, point.window.minutes, point.window.engines) == (START, END, 10, 3)
    assert (point.seen, point.recorded_at) == ((), END)


def test_quantiles_are_linear_in_their_bucket() -> None:
    """600 requests, 300 to 50 ms and 300 to 100 ms: p50 is the 300th, 50 ms; p90 the 540th, 50 + 240/300 x 50 = 90 ms;
    p99 the 594th, 99 ms; the longest took at most 100 ms."""
    quantiles = only(curve(a_bin(100, 300, 300))).latency["ttft"].quantiles_ms
    assert quantiles == pytest.approx({50.0: 50.0, 90.0: 90.0, 95.0: 95.0, 99.0: 99.0, 99.9: 100.0, 100.0: 100.0})


def test_a_quantile_past_the_last_bucket_passes_no_slo_and_says_so() -> None:
    """10 of 600 requests took more than 200 ms: p95 is known, p99 is only above 200 ms."""
    point = only(curve(a_bin(100, 590, 0, 0, 10)))
    assert point.latency["ttft"].quantiles_ms[95.0] == pytest.approx(50 * 570 / 590)
    assert point.latency["ttft"].quantiles_ms[99.0] == math.inf
    slo = a_slo(100_000)
    value, name = point.slo_value_ms(slo, "allow")
    assert value == math.inf
    assert point.slo_reason(slo, value, name) == "p99 TTFT >= 200 ms (beyond its last bucket), limit 100000 ms"


def test_admission_takes_the_highest_load_that_holds() -> None:
    """p99 of 100 tokens/s is 49.5 ms, of 200 above 100 ms."""
    fleet = a_fleet("h100")
    options = [Option(fleet, point) for point in curve(a_bin(100, 600), a_bin(200, 600, 0, 600)).points]
    admission = admit(a_demand([a_class(slo=(a_slo(100),))], [fleet]), options)
    assert [admission.options[index].point.tokens_per_s for index in admission.admissible["chat"]] == [100.0]
    (out,) = admission.excluded
    assert out.option.label == "h100: 2x card X at 2 req/s, live"
    # the 1,188th of 1,200: 100 + 588/600 x 100 ms
    assert out.reason == "p99 TTFT 198.0 ms > 100 ms"


def test_latency_never_falls_with_load() -> None:
    """The bin at 200 has no slow request by chance: it is one sample with that at 100, 12 of 1,200 above 100 ms. So the
    p99 of both is the 1,188th: 50 ms. That at 300 is its own."""
    found = curve(a_bin(100, 588, 0, 12), a_bin(200, 600), a_bin(300, 500, 100))
    # 594th of 600 in the first alone: 150 ms
    assert p99s(curve(a_bin(100, 588, 0, 12))) == [pytest.approx(150)]
    assert p99s(found) == [pytest.approx(50), pytest.approx(50), pytest.approx(50 + 50 * 94 / 100)]


@given(st.lists(st.tuples(*[st.integers(0, 50)] * 4).filter(any), min_size=1, max_size=8))
def test_p99_is_in_order_whatever_the_bins_hold(histograms: Sequence[tuple[int, ...]]) -> None:
    found = p99s(curve(*(a_bin(100.0 * number, *counts) for number, counts in enumerate(histograms, 1))))
    assert found == sorted(found)


def test_power_lies_on_a_line_through_the_loads() -> None:
    """300 W at 100, 400 W at 200, 500 W at 300: 200 W + 1 W per token/s; idle is measured at 160 W."""
    found = curve(*(a_bin(load, power_ws=(200 + load) * 600) for load in (100, 200, 300)))
    assert [point.loaded_w for point in found.points] == [pytest.approx(300), pytest.approx(400), pytest.approx(500)]
    assert {(point.idle_w, point.power_method) for point in found.points} == {(160.0, "measured")}


def test_seconds_weigh_on_the_line() -> None:
    """Two bins about load 100, 10 minutes of 300 W and 30 of 340 W, and one at 200 of 430 W: the line goes through
    (100, 330) and (200, 430)."""
    low = [a_bin(100, power_ws=300 * 600), a_bin(100, power_ws=340 * 1800, seconds=1800, prompt_tokens=180_000 * 0.8,
                                                 generated_tokens=180_000 * 0.2)]  # fmt: skip
    line = fitted([*low, a_bin(200, power_ws=430 * 600)])
    assert line is not None
    assert (line.power_w(100), line.power_w(200)) == (pytest.approx(330), pytest.approx(430))


def test_loaded_power_is_never_below_idle() -> None:
    assert [point.loaded_w for point in curve(a_bin(100, power_ws=1), a_bin(200, power_ws=1)).points] == [160.0, 160.0]


def test_what_power_lacks_is_by_tdp_and_says_so() -> None:
    """Two cards of 350 W: 700 W loaded, 140 W idle."""
    two = (a_bin(100, power_ws=300 * 600), a_bin(200, power_ws=400 * 600))
    by_tdp = [
        (curve(a_bin(100)), (160.0, 700.0, LOADED_BY_TDP)),
        (curve(a_bin(100), idle=Idle()), (140.0, 700.0, TDP_ESTIMATE)),
        (curve(*two, idle=Idle()), (140.0, pytest.approx(300), IDLE_BY_TDP)),
        (curve(a_bin(100), tdp_w=None), (None, None, LOADED_BY_TDP)),
    ]
    for found, expected in by_tdp:
        point = found.points[0]
        assert (point.idle_w, point.loaded_w, point.power_method) == expected


def test_engine_seconds_per_token() -> None:
    """48,000 prompt tokens in 48 s: 1 ms each. 12,000 generated ones took 480 s of requests, of which 8 ran together:
    480 / 12,000 / 8 = 5 ms."""
    timed = {
        "prefill_s": 48.0, "decode_s": 480.0, "timed_prompt_tokens": 48_000, "timed_generated_tokens": 12_000,
        "running_s": 8 * 600, "gauged_s": 600,
    }  # fmt: skip
    point = only(curve(a_bin(100, **timed)))
    assert (point.prefill_s_per_token, point.decode_s_per_token) == (pytest.approx(0.001), pytest.approx(0.005))
    # 0.8 x 1 + 0.2 x 5 = 1.8 ms a token; of a class with half of each 3 ms: 100 x 1.8 / 3
    assert point.tokens_per_s_for(a_class()) == pytest.approx(60)
    for untold in ({"gauged_s": 0}, {"timed_prompt_tokens": 0}, {"decode_s": 0.0}):
        alone = only(curve(a_bin(100, **(timed | untold))))
        assert (alone.prefill_s_per_token, alone.tokens_per_s_for(a_class())) == (None, 100.0)


def test_fewer_than_five_minutes_make_no_point_and_are_counted() -> None:
    found = curve(a_bin(100), a_bin(200, minutes=4))
    assert [point.tokens_per_s for point in found.points] == [100.0]
    assert found.left_out == {"throttled": 0, "few_minutes": 4}


def test_throttled_minutes_are_left_out_where_they_are_the_fewer() -> None:
    found = curve(a_bin(100), a_bin(100, is_throttled=True, minutes=3, seconds=180, finished=1e6))
    assert (only(found).n, only(found).seen, found.left_out["throttled"]) == (600, (), 3)


def test_a_load_that_always_throttles_keeps_its_minutes_and_the_flag() -> None:
    found = curve(a_bin(100, is_throttled=True), a_bin(100, minutes=3, seconds=180, finished=100))
    assert (only(found).n, only(found).seen, found.left_out["throttled"]) == (700, ("throttled",), 0)


def test_a_queue_for_most_of_the_time_is_saturation() -> None:
    assert only(curve(a_bin(100, queued_s=301))).seen == ("saturated",)
    assert only(curve(a_bin(100, queued_s=300))).seen == ()


def test_simulated_replicas_say_so() -> None:
    """Law 10."""
    point = only(curve(a_bin(100), kind=ReplicaType("h100", MODEL, "X", 2, simulated=True)))
    assert (point.seen, point.power_method) == (("simulated",), "simulated")


def test_where_no_request_is_counted_latencies_are() -> None:
    """600 first tokens were timed."""
    assert only(curve(a_bin(100, 500, 100, finished=None))).n == 600
    assert only(curve(a_bin(100, finished=None, latency={}))).n == 0


def lows(steps: Sequence[int], requests: int) -> list[int]:
    """Steps, 4 between a load and its double, that the bins begin with; each of so many requests."""
    bins = [a_bin(100, low=step, high=step + 1, finished=requests) for step in steps]
    return [round(one.low) for one in widened(bins, steps, 4)]


def test_bins_are_narrow_where_load_is_high() -> None:
    """The highest two doublings, 8 to 15, stay; 4 to 7 are taken in twos, 0 to 3 in fours."""
    assert lows(range(16), 500) == [0, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15]


def test_bins_of_few_requests_are_widened() -> None:
    """250 each: two of them show a p99; 125 each: four do; more are never taken together for it."""
    assert lows(range(8, 16), 250) == [8, 10, 12, 14]
    assert lows(range(8, 16), 125) == [8, 12]
    assert lows(range(8, 16), 1) == [8, 12]
    assert widened([], [], 4) == []


def test_nothing_measured_is_no_curve() -> None:
    assert curve().points == ()
    assert normal([]) == ([], 0.0)
