"""What an agent would send of a replica, against each token, step and request by itself."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulator.latency import E2E_BOUNDS_S, ITL_BOUNDS_S, TTFT_BOUNDS_S
from tests.queueing.arrivals import SECOND_NS, Lengths, steadily
from tests.queueing.engine import serve
from tests.queueing.hidden import RTX_4090, ReplicaType
from tests.queueing.naive import Traced, serve_by_steps
from tests.queueing.pieces import Intervals, cut
from tests.queueing.samples import energy_mj, engine_columns, gpu_columns
from tests.queueing.test_engine import ROWS, arriving, requests_of, small

SLOW = 20_000  # times the small engine's nanoseconds: steps of tens of milliseconds
Moments = Iterable[tuple[int, int]]


def slow(**given: int) -> ReplicaType:
    """Steps of 20 ms, 0.6 ms for a prompt token, 0.14 ms for a sequence, 0.04 ms for a token of context."""
    times = {"step_ns": 1_000, "prompt_token_ns": 30, "sequence_ns": 7, "context_token_ns": 2}
    return small(**{name: SLOW * value for name, value in times.items()}, **given)


def powered(kind: ReplicaType) -> ReplicaType:
    return replace(kind, idle_w=100.0, stepping_w=400.0, prompt_token_mj=30.0, generated_token_mj=50.0)


def slowly(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    return [(gap * SLOW, prompt, generated) for gap, prompt, generated in rows]


def by_interval(moments: Moments, intervals: Intervals) -> list[int]:
    """Sums of the values whose moments lie in each (start, end]."""
    edges = [0, *intervals.ends_ns.tolist()]
    moments = list(moments)
    return [sum(value for at, value in moments if low < at <= high) for low, high in pairwise(edges)]


def buckets(moments: Moments, intervals: Intervals, bounds_s: Sequence[float]) -> list[list[int]]:
    bounds_ns = [round(bound * SECOND_NS) for bound in bounds_s]
    edges = [0, *intervals.ends_ns.tolist()]
    rows = [[0] * (len(bounds_ns) + 1) for _ in edges[1:]]
    for at, value in moments:
        row = bisect_left(edges, at) - 1
        if row < len(rows):
            rows[row][bisect_left(bounds_ns, value)] += 1
    return rows


@given(ROWS, st.integers(1, 40), st.sampled_from([3, 40]))
def test_columns_are_those_of_the_tokens_one_by_one(
    rows: list[tuple[int, int, int]], every_ms: int, context_factor: int
) -> None:
    kind = slow(kv_tokens=120 * context_factor)
    intervals = Intervals(every_ms * 10_000_000, 25)
    requests = arriving(slowly(rows))
    columns = engine_columns(serve(kind, requests), intervals)
    everyone, _ = serve_by_steps(kind, requests)
    firsts = [(one.tokens_ns[0], one.tokens_ns[0] - one.arrival_ns) for one in everyone]
    ends = [(one.tokens_ns[-1], one.tokens_ns[-1] - one.arrival_ns) for one in everyone]
    gaps = [(late, late - early) for one in everyone for early, late in pairwise(one.tokens_ns)]
    expected = {
        "prompt_tokens": by_interval(((one.tokens_ns[0], one.prompt) for one in everyone), intervals),
        "generated_tokens": by_interval(((at, 1) for one in everyone for at in one.tokens_ns), intervals),
        "finished_stop": by_interval(((at, 1) for at, _ in ends), intervals),
        "queue_us": _at_end(everyone, [one.scheduled_ns - one.arrival_ns for one in everyone], intervals),
        "prefill_us": _at_end(everyone, [one.tokens_ns[0] - one.scheduled_ns for one in everyone], intervals),
        "decode_us": _at_end(everyone, [one.tokens_ns[-1] - one.tokens_ns[0] for one in everyone], intervals),
        "inference_us": _at_end(everyone, [one.tokens_ns[-1] - one.scheduled_ns for one in everyone], intervals),
        "ttft_us": by_interval(((at, ns // 1000) for at, ns in firsts), intervals),
        "itl_us": by_interval(((at, ns // 1000) for at, ns in gaps), intervals),
        "e2e_us": by_interval(((at, ns // 1000) for at, ns in ends), intervals),
        "ttft_buckets": buckets(firsts, intervals, TTFT_BOUNDS_S),
        "itl_buckets": buckets(gaps, intervals, ITL_BOUNDS_S),
        "e2e_buckets": buckets(ends, intervals, E2E_BOUNDS_S),
        **_gauges(everyone, intervals, kind),
    }
    assert {name: column.tolist() for name, column in columns.items()} == expected


def _at_end(everyone: Sequence[Traced], values_ns: Iterable[int], intervals: Intervals) -> list[int]:
    moments = ((one.tokens_ns[-1], ns // 1000) for one, ns in zip(everyone, values_ns, strict=True))
    return by_interval(moments, intervals)


def _gauges(everyone: Sequence[Traced], intervals: Intervals, kind: ReplicaType) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {"running": [], "waiting": [], "kv_usage_ppm": []}
    for now in intervals.ends_ns.tolist():
        running = [one for one in everyone if one.scheduled_ns <= now < one.tokens_ns[-1]]
        decoding = [one for one in running if one.tokens_ns[0] <= now]
        context = sum(one.prompt + sum(at <= now for at in one.tokens_ns) for one in decoding)
        found["running"].append(len(running))
        found["waiting"].append(sum(one.arrival_ns <= now < one.scheduled_ns for one in everyone))
        found["kv_usage_ppm"].append(round(context / kind.kv_tokens * 1e6))
    return found


@given(ROWS, st.integers(1, 40))
def test_energy_is_that_of_the_steps_one_by_one(rows: list[tuple[int, int, int]], every_ms: int) -> None:
    kind = powered(slow())
    intervals = Intervals(every_ms * 10_000_000, 25)
    requests = arriving(slowly(rows))
    everyone, steps = serve_by_steps(kind, requests)
    done_mj = energy_mj(serve(kind, requests), intervals.ends_ns)
    for now, found in zip(intervals.ends_ns.tolist(), done_mj.tolist(), strict=True):
        stepping_s = sum(max(min(step.end_ns, now) - step.start_ns, 0) for step in steps) / SECOND_NS
        read = sum(step.prompt_tokens for step in steps if step.end_ns <= now)
        tokens = sum(at <= now for one in everyone for at in one.tokens_ns)
        expected_mj = 1e5 * now / SECOND_NS + 3e5 * stepping_s + 30 * read + 50 * tokens
        assert found == pytest.approx(expected_mj, rel=1e-9)


def test_energy_by_hand() -> None:
    """A request of 10 + 2 tokens at 1 s: steps of 20 + 6 ms and of 20 + 0.14 + 11 x 0.04 = 20.58 ms, 46.58 ms in all.

    Of 2 s at 100 W, 200 J; 300 W more in steps, 13.974 J; 10 x 0.03 J and 2 x 0.05 J: 214.374 J; a half for each of two
    GPUs, and 2.329% of the time in steps.
    """
    kind = powered(replace(slow(), gpus=2))
    served = serve(kind, requests_of((SECOND_NS, 10, 2)))
    columns = gpu_columns(served, Intervals(2 * SECOND_NS, 2))
    assert columns["energy_mj"].tolist() == [107_187, 100_000]
    assert columns["power_average_mw"].tolist() == [53_594, 50_000]
    assert columns["utilisation_pct"].tolist() == [2, 0]


@given(ROWS, st.integers(1, 40))
def test_nothing_is_lost_between_intervals(rows: list[tuple[int, int, int]], every_ms: int) -> None:
    requests = arriving(slowly(rows))
    served = serve(slow(), requests)
    last_ns = int(served.finished_ns.max())
    intervals = Intervals(every_ms * 1_000_000, last_ns // (every_ms * 1_000_000) + 1)
    columns = engine_columns(served, intervals)
    assert columns["prompt_tokens"].sum() == requests.prompt_tokens.sum()
    assert columns["generated_tokens"].sum() == requests.generated_tokens.sum()
    assert columns["finished_stop"].sum() == len(requests)
    assert columns["itl_buckets"].sum() == requests.generated_tokens.sum() - len(requests)
    assert cut(served.runs, intervals).steps.sum() == served.runs.steps.sum()


def test_energy_grows_with_load_and_utilisation_is_full_in_a_queue() -> None:
    intervals = Intervals(60 * SECOND_NS, 30)
    watts = []
    for per_s in (0.01, 0.2, 0.5, 2.0):
        served = serve(RTX_4090, steadily(np.random.default_rng(2), per_s, Lengths(1200, 400), int(per_s * 1_900) + 1))
        columns = gpu_columns(served, intervals)
        watts.append(float(columns["power_average_mw"].mean()))
    assert watts == sorted(watts)
    assert watts[0] > RTX_4090.idle_w / RTX_4090.gpus * 1000
    assert columns["utilisation_pct"][1:].tolist() == [100] * 29
