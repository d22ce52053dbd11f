"""Which replica is slow or unbalanced: by hand, and as laws that hold for any replicas."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.balance import (
    FEW_FACTOR,
    MANY_FACTOR,
    MIN_FIRST_TOKENS,
    MIN_REQUESTS,
    SLOW_FACTOR,
    Balance,
    Observation,
    judge,
)

WINDOW_S = 300.0


def observed(replica: str, *, ttft_s: float | None = 0.1, speed: float | None = 40.0, load: float | None = 1.0,
             like: str = "a", first_tokens: int = 300, seen_s: float = WINDOW_S) -> Observation:  # fmt: skip
    return Observation(replica, like, first_tokens, ttft_s, speed, load, seen_s)


def ttfts(*values_ms: float, first_tokens: int = 300) -> list[Observation]:
    return [observed(f"r{i}", ttft_s=ms / 1e3, first_tokens=first_tokens) for i, ms in enumerate(values_ms)]


def loads(*requests_per_s: float, seen_s: float = WINDOW_S) -> list[Observation]:
    return [observed(f"r{i}", load=rate, seen_s=seen_s) for i, rate in enumerate(requests_per_s)]


def named(balance: Balance) -> list[tuple[str, str]]:
    return [(one.replica, one.quantity) for one in balance.deviations]


def test_the_slow_one_of_four_is_named_with_its_factor_and_its_peers_median() -> None:
    [found] = judge(ttfts(90, 100, 330, 110)).deviations
    # peers 90, 100, 110: median 100, deviations 10, 0, 10 -> MAD 10; 330 > 150 and 230 > 3 x 14.826
    assert (found.replica, found.quantity, found.peers) == ("r2", "ttft", 3)
    assert (found.value, found.peers_median, found.factor) == pytest.approx((0.33, 0.1, 3.3))


@pytest.mark.parametrize(
    ("values_ms", "slow"),
    [
        ((100, 100, 150), []),  # at the factor is not beyond it
        ((100, 100, 151), ["r2"]),
        ((100, 100, 100, 100, 100, 151), ["r5"]),
        ((100, 100, 100, 400, 500), ["r3", "r4"]),  # two outliers do not hide one another
        ((100, 300, 500, 800), []),  # a kind that differs anyway: peers' median 300, MAD 200; 500 < 3 x 296.5
        ((10, 100, 100, 100), []),  # faster than the others is no fault
    ],
    ids=str,
)  # fmt: skip
def test_what_counts_as_slow(values_ms: tuple[float, ...], slow: list[str]) -> None:
    assert named(judge(ttfts(*values_ms))) == [(replica, "ttft") for replica in slow]


@pytest.mark.parametrize(("first_tokens", "slow"), [(MIN_FIRST_TOKENS - 1, []), (MIN_FIRST_TOKENS, [("r2", "ttft")])])
def test_a_latency_of_few_requests_accuses_nobody(first_tokens: int, slow: list[tuple[str, str]]) -> None:
    usual_0, usual_1, slow_one, usual_3 = ttfts(100, 100, 900, 100)
    slow_one = replace(slow_one, first_tokens=first_tokens)
    assert named(judge([usual_0, usual_1, slow_one, usual_3])) == slow


def test_tokens_per_running_request_below_the_peers_is_slow() -> None:
    replicas = [observed("r0"), observed("r1", speed=42.0), observed("r2", speed=20.0), observed("r3", speed=38.0)]
    [found] = judge(replicas).deviations
    # peers 38, 40, 42: median 40; 20 x 1.5 = 30 < 40
    assert (found.replica, found.quantity, found.peers_median, found.factor) == ("r2", "speed", 40.0, 0.5)


@pytest.mark.parametrize(
    ("rates", "unbalanced"),
    [
        ((1.0, 1.0, 1.0, 0.6), []),
        ((1.0, 1.0, 1.0, 0.59), ["r3"]),
        ((1.0, 1.0, 1.0, 1.6), []),
        ((1.0, 1.0, 1.0, 1.61), ["r3"]),
        ((1.0, 1.0, 1.0, 0.0), ["r3"]),  # nothing is a share, too
        ((0.15, 0.15, 0.15, 0.0), []),  # 0.15/s x 300 s = 45 requests: too few to tell
        ((0.17, 0.17, 0.17, 0.0), ["r3"]),  # 51 requests
    ],
    ids=str,
)
def test_what_counts_as_unbalanced(rates: tuple[float, ...], unbalanced: list[str]) -> None:
    assert named(judge(loads(*rates))) == [(replica, "load") for replica in unbalanced]


def test_a_replica_that_is_young_is_compared_by_its_rate() -> None:
    young = replace(loads(1.0)[0], replica="young", seen_s=60.0)
    assert judge([*loads(1.0, 1.0, 1.0), young]).deviations == ()
    assert named(judge([*loads(1.0, 1.0, 1.0), replace(young, requests_per_s=0.2)])) == [("young", "load")]
    # 40 s at the peers' 1/s would be 40 requests, below the 50 that can be judged
    assert judge([*loads(1.0, 1.0, 1.0), replace(young, requests_per_s=0.2, seen_s=40.0)]).deviations == ()


def test_only_like_replicas_are_compared() -> None:
    others = [observed(f"b{i}", ttft_s=2.0, speed=5.0, load=0.3, like="b") for i in range(3)]
    assert judge([*ttfts(100, 100, 100), *others]) == Balance((), ())


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_are_not_judged_and_it_is_said_why(count: int) -> None:
    balance = judge(ttfts(*[100, 900][:count]))
    assert balance.deviations == ()
    assert [(one.like, one.replicas, one.reason) for one in balance.not_judged] == [
        ("a", count, "3 like replicas are needed to tell which one is off")
    ]


def test_idle_replicas_are_not_judged_and_it_is_said_why() -> None:
    idle = [observed(f"r{i}", ttft_s=None, speed=None, load=0.0, first_tokens=0) for i in range(4)]
    [said] = judge(idle).not_judged
    assert (said.replicas, said.reason) == (4, "too few requests to compare them")


positive = st.floats(0.001, 1000.0)
observation = st.builds(
    Observation,
    replica=st.uuids().map(str),
    like=st.sampled_from(["a", "b"]),
    first_tokens=st.sampled_from([0, MIN_FIRST_TOKENS - 1, MIN_FIRST_TOKENS, 500]),
    ttft_s=st.none() | positive,
    tokens_per_request_s=st.none() | positive,
    requests_per_s=st.none() | st.floats(0.0, 100.0),
    seen_s=st.sampled_from([5.0, 60.0, 300.0]),
)
replicas = st.lists(observation, max_size=12, unique_by=lambda one: one.replica)


@given(st.data(), replicas)
def test_the_order_does_not_matter(data: st.DataObject, observations: list[Observation]) -> None:
    assert judge(data.draw(st.permutations(observations))) == judge(observations)


@given(replicas, st.integers(0, 6))
def test_the_unit_does_not_matter(observations: list[Observation], power: int) -> None:
    """Powers of two, so that floating point scales exactly; more requests only make more of them comparable."""
    many = [replace(one, seen_s=1e6) for one in observations]
    scaled = [
        replace(
            one,
            ttft_s=one.ttft_s and one.ttft_s * 2**power,
            tokens_per_request_s=one.tokens_per_request_s and one.tokens_per_request_s * 2**power,
            requests_per_s=one.requests_per_s and one.requests_per_s * 2**power,
            seen_s=one.seen_s / 2**power,
        )
        for one in many
    ]
    assert named(judge(scaled)) == named(judge(many))


@given(observation, st.integers(3, 20))
def test_equal_replicas_are_never_accused(one: Observation, count: int) -> None:
    assert judge([replace(one, replica=f"r{i}") for i in range(count)]).deviations == ()


@given(st.lists(st.floats(0.5, 1.0), min_size=2, max_size=15), st.floats(10.0, 1e6))
def test_one_outlier_among_close_peers_never_hides_itself(peers: list[float], outlier: float) -> None:
    """However far: its own value has no part in the median and the spread that it is held against."""
    observations = [observed(f"r{i}", ttft_s=value) for i, value in enumerate(peers)]
    assert ("far", "ttft") in named(judge([*observations, observed("far", ttft_s=outlier)]))


@given(replicas)
def test_each_deviation_is_beyond_its_factor(observations: list[Observation]) -> None:
    by_name = {one.replica: one for one in observations}
    for found in judge(observations).deviations:
        like = by_name[found.replica].like
        values = {"ttft": "ttft_s", "speed": "tokens_per_request_s", "load": "requests_per_s"}[found.quantity]
        peers = [
            getattr(one, values) for one in observations
            if one.like == like and one.replica != found.replica and getattr(one, values) is not None
            and (found.quantity == "load" or one.first_tokens >= MIN_FIRST_TOKENS)
        ]  # fmt: skip
        assert (found.peers, found.peers_median) == (len(peers), median(peers))
        assert {
            "ttft": found.factor > SLOW_FACTOR,
            "speed": found.factor < 1 / SLOW_FACTOR,
            "load": (found.factor < FEW_FACTOR or found.factor > MANY_FACTOR)
            and found.peers_median * by_name[found.replica].seen_s >= MIN_REQUESTS,
        }[found.quantity]
