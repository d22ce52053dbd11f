"""Quantiles come from merged buckets and are right to within their bucket; nothing is ever averaged."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.latency import Attainment, Bucket, Quantile, attainment, merged, quantile, wilson

LAYOUTS = ((0.01, 0.05, 0.1, 0.5), (0.01, 0.1, 0.25, 0.5, 1.0), (0.05, 0.2), ())
values_s = st.lists(st.floats(0, 2, exclude_min=True), max_size=60)


def histogram(values: list[float], bounds: tuple[float, ...]) -> list[Bucket]:
    edges = [0.0, *bounds, math.inf]
    return [Bucket(low, high, sum(low < value <= high for value in values)) for low, high in pairwise(edges)]


def exact(values: list[float], percentile: float) -> float:
    """The smallest value that holds that share of them."""
    rank = max(math.ceil(len(values) * percentile / 100 - 1e-9), 1)
    return sorted(values)[rank - 1]


@given(
    st.lists(st.tuples(values_s, st.sampled_from(LAYOUTS)), min_size=1, max_size=4),
    st.sampled_from([1.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0]),
)
def test_a_merged_quantile_lies_in_the_bucket_of_the_exact_one(
    engines: list[tuple[list[float], tuple[float, ...]]], percentile: float
) -> None:
    buckets = [bucket for values, bounds in engines for bucket in histogram(values, bounds)]
    everything = [value for values, _ in engines for value in values]
    found = quantile(merged(buckets), percentile)
    assert found.n == len(everything)
    if not everything:
        assert found == Quantile(None, None, None, 0)
        return
    truth = exact(everything, percentile)
    assert found.lower_s is not None and found.upper_s is not None and found.value_s is not None
    assert found.lower_s < truth <= found.upper_s
    assert found.lower_s <= found.value_s <= found.upper_s
    assert found.at_least == math.isinf(found.upper_s)


@given(values_s, values_s, st.sampled_from(LAYOUTS))
def test_engines_of_one_layout_merge_bucket_by_bucket(
    one: list[float], other: list[float], bounds: tuple[float, ...]
) -> None:
    both = merged([*histogram(one, bounds), *histogram(other, bounds)])
    assert both == [bucket for bucket in histogram(one + other, bounds) if bucket.n]


@given(st.lists(st.tuples(values_s, st.sampled_from(LAYOUTS)), max_size=4), st.randoms())
def test_merging_keeps_every_observation_in_any_order(
    engines: list[tuple[list[float], tuple[float, ...]]], order: random.Random
) -> None:
    buckets = [bucket for values, bounds in engines for bucket in histogram(values, bounds)]
    shuffled = buckets.copy()
    order.shuffle(shuffled)
    found = merged(buckets)
    assert merged(shuffled) == found == merged(found)
    assert sum(bucket.n for bucket in found) == sum(bucket.n for bucket in buckets)
    assert all(low.upper_s <= high.lower_s for low, high in pairwise(found))


def test_layouts_merge_on_the_boundaries_that_leave_no_doubt() -> None:
    # (0.1, 0.25] holds 5 of one version; 0.15 and 0.2 of the other lie inside it, 0.1 and 0.25 do not
    old = [Bucket(0.05, 0.1, 2), Bucket(0.1, 0.25, 5)]
    new = [Bucket(0.05, 0.1, 1), Bucket(0.1, 0.15, 3), Bucket(0.15, 0.2, 4), Bucket(0.25, 0.3, 7)]
    assert merged([*old, *new]) == [Bucket(0.05, 0.1, 3), Bucket(0.1, 0.25, 12), Bucket(0.25, 0.3, 7)]


def test_the_quantile_is_linear_inside_its_bucket() -> None:
    # 100 requests: 90 up to 50 ms, 10 in (50, 100]. p95 is the 95th: 5 of 10 into the bucket, 50 + 0.5 x 50 = 75 ms
    found = quantile([Bucket(0.0, 0.05, 90), Bucket(0.05, 0.1, 10)], 95)
    assert found == Quantile(pytest.approx(0.075), 0.05, 0.1, 100)


def test_what_falls_into_the_open_bucket_is_at_least_its_lower_bound() -> None:
    found = quantile([Bucket(0.0, 1.0, 9), Bucket(1.0, math.inf, 1)], 99)
    assert (found.value_s, found.at_least, found.n) == (1.0, True, 10)


def test_two_engines_are_never_averaged() -> None:
    # 1000 requests at 10 ms and 10 at 900 ms: averaging their p99s would say 455 ms; of all 1010, 99% are at 10 ms
    fast, slow = [Bucket(0.0, 0.01, 1000)], [Bucket(0.5, 1.0, 10)]
    assert quantile(merged([*fast, *slow]), 99).upper_s == 0.01


def test_attainment_on_a_boundary_is_known_but_for_the_sample() -> None:
    # 95 of 100 at or under 100 ms; Wilson 95%: 0.8882 to 0.9785 (Newcombe 1998, table of 95/100)
    found = attainment([Bucket(0.0, 0.1, 95), Bucket(0.1, 0.2, 5)], 0.1)
    assert (found.low, found.high, found.n) == (pytest.approx(0.8882, abs=5e-5), pytest.approx(0.9785, abs=5e-5), 100)


def test_a_limit_inside_a_bucket_leaves_it_open() -> None:
    found = attainment([Bucket(0.0, 0.1, 90), Bucket(0.1, 0.2, 10)], 0.15)
    assert found == Attainment(wilson(90, 100)[0], wilson(100, 100)[1], 100)
    assert found.high == 1.0


def test_failed_and_aborted_requests_are_misses() -> None:
    found = attainment([Bucket(0.0, 0.1, 50)], 0.1, misses=50)
    assert (found.low, found.high, found.n) == (*wilson(50, 100), 100)
    assert attainment([], 0.1) == Attainment(None, None, 0)
    assert attainment([], 0.1, misses=3).high == wilson(0, 3)[1]


@given(st.integers(1, 10_000), st.data())
def test_the_wilson_interval_holds_the_share_and_stays_within_0_and_1(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = wilson(hits, n)
    assert 0 <= low <= hits / n <= high <= 1
