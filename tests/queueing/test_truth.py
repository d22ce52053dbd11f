"""The truth of loads and splits: against the tokens one by one, by hand, and as queues must behave."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.split.demand import Slo
from collectors.benchmark.run import LatencyMetric
from tests.queueing.arrivals import SECOND_NS, Lengths, steadily
from tests.queueing.engine import serve
from tests.queueing.hidden import H100, L40S, RTX_4090, ReplicaType
from tests.queueing.naive import Traced, serve_by_steps
from tests.queueing.pool import Pool, parted
from tests.queueing.samples import energy_mj
from tests.queueing.test_engine import CHAT, ROWS, arriving, requests_of, small
from tests.queueing.truth import Truth, alone, at_load, capacity, highest_load, pool_at_load, simulate_split

METRICS: tuple[LatencyMetric, ...] = ("ttft", "tpot", "itl", "e2e")
SLOWER: tuple[tuple[LatencyMetric, int], ...] = (("ttft", 50), ("ttft", 99), ("tpot", 50), ("tpot", 99), ("itl", 50),
                                                 ("e2e", 50), ("e2e", 99))  # fmt: skip
TTFT_SLO = Slo(metric="ttft", percentile=99, max_ms=2_500)


def values_of(everyone: list[Traced], metric: LatencyMetric, start_ns: int, end_ns: int) -> list[int]:
    """Latencies whose moment lies in (start, end]."""
    found: list[tuple[int, int]] = []
    means: list[int] = []
    for one in everyone:
        arrived_ns, tokens_ns = one.arrival_ns, one.tokens_ns
        ttft, e2e = [(arrived_ns, tokens_ns[0])], [(arrived_ns, tokens_ns[-1])]
        found += {"ttft": ttft, "e2e": e2e, "itl": list(pairwise(tokens_ns)), "tpot": []}[metric]
        if metric == "tpot" and one.generated > 1 and start_ns < tokens_ns[-1] <= end_ns:
            means.append((tokens_ns[-1] - tokens_ns[0]) // (one.generated - 1))
    return sorted([*means, *(late - early for early, late in found if start_ns < late <= end_ns)])


@given(ROWS, st.integers(0, 20_000), st.integers(1, 200_000), st.sampled_from([1, 50, 90, 99, 100]))
def test_latencies_are_those_of_the_tokens_one_by_one(
    rows: list[tuple[int, int, int]], start_us: int, length_us: int, percentile: int
) -> None:
    microseconds = small(step_ns=1_000_000, prompt_token_ns=30_000, sequence_ns=7_000, context_token_ns=2_000)
    requests = arriving([(gap * 1000, prompt, generated) for gap, prompt, generated in rows])
    everyone, _ = serve_by_steps(microseconds, requests)
    start_ns, end_ns = start_us * 1000, (start_us + length_us) * 1000
    truth = Truth([serve(microseconds, requests)], start_ns, end_ns)
    for metric in METRICS:
        values = values_of(everyone, metric, start_ns, end_ns)
        if not values:
            continue
        rank = math.ceil(len(values) * percentile / 100)
        assert truth.quantile_ms(metric, percentile) == values[rank - 1] / 1e6
        limit_ns = values[len(values) // 2]
        held = sum(value <= limit_ns for value in values) / len(values)
        assert truth.attainment(Slo(metric=metric, percentile=50, max_ms=limit_ns / 1e6)) == held


def test_a_light_load_by_its_means() -> None:
    """At 0.05 req/s the H100 makes 0.05 x (1200 + 400) = 80 tokens/s but for the cut of long prompts, and mostly rests.

    A request alone takes 16.3 + 0.193 x 1200 = 248 ms to its first token, the median one of 1200 x exp(-0.245) = 939
    tokens 198 ms, and about 16.4 ms for each of the others.
    """
    truth = at_load(H100, CHAT, 0.05, count=10_000)
    assert truth.tokens_per_s == pytest.approx(80.0, rel=0.04)
    assert truth.quantile_ms("ttft", 50) == pytest.approx(198.0, rel=0.1)
    assert truth.quantile_ms("itl", 50) == pytest.approx(16.4, rel=0.01)
    # within steps 0.05 x (0.248 + 400 x 0.0164) = 0.34 of the time, a little less as some are there together
    tokens_w = 0.05 * (1200 * 0.095 + 400 * 0.130)
    assert truth.power_w == pytest.approx(236 + 404 * (1 - math.exp(-0.34)) + tokens_w, rel=0.03)


@pytest.mark.parametrize("kind", [H100, L40S, RTX_4090], ids=lambda kind: kind.card)
def test_more_load_is_slower_and_draws_more(kind: ReplicaType) -> None:
    best = capacity(kind, CHAT) / CHAT.tokens
    truths = [at_load(kind, CHAT, part * best, count=8_000) for part in (0.2, 0.5, 0.8)]
    # p99 of itl is that of a step full of prompts at any load
    for metric, percentile in SLOWER:
        quantiles = [truth.quantile_ms(metric, percentile) for truth in truths]
        assert quantiles == sorted(quantiles), (metric, percentile)
    watts = [truth.power_w for truth in truths]
    assert kind.idle_w < watts[0] < watts[1] < watts[2]
    for truth, part in zip(truths, (0.2, 0.5, 0.8), strict=True):
        assert truth.tokens_per_s == pytest.approx(part * best * CHAT.tokens, rel=0.04)


def test_capacity_hardly_depends_on_chance() -> None:
    rates = [capacity(L40S, CHAT, seed=seed) for seed in range(5)]
    assert max(rates) < 1.02 * min(rates)


def test_the_highest_load_keeps_the_slo_and_a_higher_one_does_not() -> None:
    most = highest_load(alone(H100), CHAT, [TTFT_SLO])
    best = capacity(H100, CHAT) / CHAT.tokens
    assert 0.2 * best < most < best
    assert at_load(H100, CHAT, most, count=20_000).keeps([TTFT_SLO])
    assert not at_load(H100, CHAT, most + best / 128, count=20_000).keeps([TTFT_SLO])


def test_no_load_keeps_a_limit_below_a_single_step() -> None:
    assert highest_load(alone(H100), CHAT, [Slo(metric="itl", percentile=50, max_ms=10)], count=500, steps=3) == 0.0


def test_a_split_by_hand() -> None:
    """Two pools with like engines that serve 100 + 2 tokens in steps of 1 + 1 = 2 ms and of 1 ms: nobody waits long.

    3 x 2 GPUs at $1.50 are $9 an hour; 2 x 1 at $0.40 with electricity, $0.80 and 0.2 kW x 1.5 x $0.10 = $0.03. Every
    replica draws 100 W.
    """
    kind = small(step_ns=1_000_000, prompt_token_ns=10_000, sequence_ns=0, context_token_ns=0, max_batched_tokens=200)
    flat = replace(kind, idle_w=100.0, stepping_w=100.0)
    pools = [
        Pool("big", replace(flat, gpus=2), 3, 0.75, 1.5),
        Pool("small", flat, 2, 0.25, 0.4, usd_per_kwh=0.10, pue=1.5),
        Pool("none", flat, 0, 0.0, 99.0),
    ]
    alike = Lengths(100, 2, prompt_sigma=0.0, generated_sigma=0.0)
    requests = steadily(np.random.default_rng(1), 10.0, alike, 8_000)
    split = simulate_split(pools, requests)
    assert split.usd_per_hour == pytest.approx(9.83)
    assert set(split.pools) == {"big", "small"}
    assert split.pools["big"].power_w == pytest.approx(300.0)
    assert split.everyone.power_w == pytest.approx(500.0)
    served = {name: sum(len(one.requests) for one in truth.replicas) for name, truth in split.pools.items()}
    assert served["big"] + served["small"] == 8_000
    # 0.75 of 8000 by chance: 4 deviations of sqrt(8000 x 0.75 x 0.25) = 38.7
    assert served["big"] == pytest.approx(6_000, abs=155)
    # alone at once: 2 ms, or up to the 2 ms of a step under way longer; with two the reading takes a millisecond more
    assert split.everyone.attainment(Slo(metric="ttft", percentile=50, max_ms=1.9)) == 0.0
    assert split.everyone.attainment(Slo(metric="ttft", percentile=50, max_ms=5.0)) > 0.999
    assert split.everyone.quantile_ms("ttft", 50) == 2.0


def test_requests_go_where_the_fewest_are() -> None:
    """Steps of 1000 ns + 30 a prompt token: the first two go apart, and end at 1030 + n x 1000 or so.

    The third comes while both have one and goes to the next in turn, the first; the fourth to the second. The fifth
    comes when the two long ones (50 tokens) are left, and the fourth, but not the short third: the first again.
    """
    pool = Pool("two", small(), 2, 1.0, 0.0)
    rows = [(0, 1, 50), (10, 1, 50), (20, 1, 2), (30, 1, 40), (20_000, 1, 3)]
    first, second = pool.serve(requests_of(*rows), np.random.default_rng(0))
    assert first.requests.arrival_ns.tolist() == [0, 20, 20_000]
    assert second.requests.arrival_ns.tolist() == [10, 30]


def test_joining_the_least_loaded_is_no_slower_than_chance() -> None:
    requests = steadily(np.random.default_rng(3), 2.4, CHAT, 8_000)
    by_join = {
        join: simulate_split([Pool("pool", RTX_4090, 3, 1.0, 0.35, join=join)], requests).everyone
        for join in ("random", "least_loaded")
    }
    waits = {join: truth.quantile_ms("ttft", 99) for join, truth in by_join.items()}
    assert waits["least_loaded"] < waits["random"]
    for truth in by_join.values():
        assert sum(len(one.requests) for one in truth.replicas) == len(requests)


def test_a_replica_of_a_pool_waits_less_than_one_alone_at_the_same_load() -> None:
    per_s = 0.8 * capacity(RTX_4090, CHAT) / CHAT.tokens
    pool = Pool("pool", RTX_4090, 4, 1.0, 0.35)
    single, shared = at_load(RTX_4090, CHAT, per_s, count=8_000), pool_at_load(pool, CHAT, per_s, count=32_000)
    assert shared.tokens_per_s == pytest.approx(single.tokens_per_s, rel=0.04)
    assert shared.quantile_ms("ttft", 99) < 0.8 * single.quantile_ms("ttft", 99)


def test_an_overloaded_split_counts_those_who_wait_longest() -> None:
    """Twice what a replica takes: half of the requests end after the last arrival, and all are late but the first."""
    best = capacity(RTX_4090, CHAT) / CHAT.tokens
    requests = steadily(np.random.default_rng(8), 2 * best, CHAT, 2_000)
    split = simulate_split([Pool("pool", RTX_4090, 1, 1.0, 0.35)], requests)
    values = np.sort(split.everyone.replicas[0].ttft_ns) / 1e6
    assert split.everyone.quantile_ms("ttft", 99) == values[math.ceil(0.99 * 2_000) - 1]
    assert not split.everyone.keeps([TTFT_SLO])
    # the last waits while the other half is served
    assert split.everyone.quantile_ms("ttft", 100) / 1000 == pytest.approx(1_000 / best, rel=0.15)


def test_every_request_goes_to_one_pool() -> None:
    requests = steadily(np.random.default_rng(4), 5.0, CHAT, 5_000)
    pools = [Pool("a", H100, 1, 0.5, 1.0), Pool("b", L40S, 1, 0.3, 1.0), Pool("c", RTX_4090, 1, 0.2, 1.0)]
    parts = parted(requests, pools, np.random.default_rng(5))
    arrivals = np.sort(np.concatenate([part.arrival_ns for part in parts]))
    assert arrivals.tolist() == requests.arrival_ns.tolist()


def test_power_of_a_window_is_the_difference_of_its_edges() -> None:
    served = serve(H100, steadily(np.random.default_rng(6), 1.0, CHAT, 400))
    edges = np.array([100, 160]) * SECOND_NS
    low_mj, high_mj = energy_mj(served, edges).tolist()
    assert Truth([served], *edges.tolist()).power_w == pytest.approx((high_mj - low_mj) / 60_000)
