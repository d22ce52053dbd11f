from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from app.split.point import OperatingPoint, is_small_sample, upper_order_statistic
from app.split.run_point import point_of_run
from collectors.benchmark.run import Latency

from .builders import a_class, a_run, a_slo, ttft


def point(**changes: Any) -> OperatingPoint:
    return point_of_run(a_run(**changes), 100.0, 500.0)


def test_tokens_per_s_counts_prompt_and_generated() -> None:
    assert point().tokens_per_s == 800.0  # (100,000 + 100,000) / 250 s


@pytest.mark.parametrize(
    ("n", "percentile", "small"),
    [
        # small when n * (1 - p) < 5: exactly 5 above the percentile is enough
        (500, 99.0, False),
        (499, 99.0, True),
        (100, 95.0, False),
        (99, 95.0, True),
        (50, 90.0, False),
        (49, 90.0, True),
        (10, 50.0, False),
        (9, 50.0, True),
        (5000, 99.9, False),
        (4999, 99.9, True),
        (10**9, 100.0, True),  # nothing lies above the maximum
        (200, 99.0, True),  # the study's runs
        (0, 50.0, True),
    ],
)
def test_a_sample_is_small_when_fewer_than_5_requests_lie_above(n: int, percentile: float, small: bool) -> None:
    assert is_small_sample(n, percentile) is small


@pytest.mark.parametrize(("n", "flagged"), [(499, True), (500, False)])
def test_small_sample_is_about_the_classes_own_percentile(n: int, flagged: bool) -> None:
    run = point(completed=n, duration_s=n / 4)
    assert ("small_sample" in run.flags(a_class(slo=(a_slo(100, percentile=50), a_slo(100))))) is flagged
    assert "small_sample" not in run.flags(a_class(slo=(a_slo(100, percentile=50),)))
    assert "small_sample" not in run.flags(a_class())


@pytest.mark.parametrize(
    ("prompt", "generated", "extrapolated"),
    [
        # the point's prompt share is 0.5
        (100.0, 100.0, False),
        (100.0, 300.0, False),  # 0.25: a factor 2 exactly
        (100.0, 301.0, True),
        (100.0, 0.0, False),  # 1.0: a factor 2 exactly
        (0.0, 100.0, True),
    ],
)
def test_extrapolated_when_prompt_shares_differ_by_more_than_a_factor_2(
    prompt: float, generated: float, extrapolated: bool
) -> None:
    flags = point().flags(a_class(prompt_tokens=prompt, generated_tokens=generated))
    assert flags == (["extrapolated"] if extrapolated else [])


def test_no_prompts_on_either_side_is_not_extrapolated() -> None:
    assert point(prompt_tokens=0).flags(a_class(prompt_tokens=0.0)) == []


def test_a_run_without_tokens_is_extrapolated() -> None:
    assert point(prompt_tokens=0, generated_tokens=0).flags(a_class()) == ["extrapolated"]


def test_flags_keep_their_order() -> None:
    run = point(completed=100, latency={"e2e": Latency(mean_ms=200_000.0)}, prompt_tokens=1)
    assert run.flags(a_class(slo=(a_slo(100),))) == ["small_sample", "burst", "extrapolated"]


def test_with_timings_a_class_is_worth_its_own_engine_seconds() -> None:
    # 800 tokens/s, half prompts, 1 ms of prefill and 4 ms of decode each: 800 x 2.5 ms = 2 engine seconds a second.
    # A class of 3 prompt tokens to 1 generated takes 0.75 x 1 + 0.25 x 4 = 1.75 ms a token: 2 s / 1.75 ms = 1,142.86
    timed = replace(point(), prefill_s_per_token=0.001, decode_s_per_token=0.004)
    assert timed.tokens_per_s_for(a_class(prompt_tokens=300.0)) == pytest.approx(8000 / 7)
    assert timed.tokens_per_s_for(a_class()) == pytest.approx(800.0)


def test_without_timings_total_tokens_count_as_they_are() -> None:
    assert point().tokens_per_s_for(a_class(prompt_tokens=300.0)) == 800.0
    half_timed = replace(point(), prefill_s_per_token=0.001)
    assert half_timed.tokens_per_s_for(a_class(prompt_tokens=300.0)) == 800.0


def exact_rank(n: int, p: Fraction, confidence: Fraction) -> int | None:
    """Smallest r with P(Binomial(n, p) <= r - 1) >= confidence, in whole fractions."""
    cumulative = Fraction(0)
    for below in range(n):
        cumulative += math.comb(n, below) * p**below * (1 - p) ** (n - below)
        if cumulative >= confidence:
            return below + 1
    return None


@pytest.mark.parametrize("percentile", ["0.5", "0.9", "0.95", "0.99", "0.999"])
def test_the_upper_order_statistic_is_the_exact_binomial_one(percentile: str) -> None:
    sizes = [*range(1, 70), 100, 150, 199, 200, 298, 299, 300, 400, 499, 500]
    found = {n: upper_order_statistic(n, float(percentile)) for n in sizes}
    assert found == {n: exact_rank(n, Fraction(percentile), Fraction("0.95")) for n in sizes}


@pytest.mark.parametrize(
    ("n", "p", "rank"),
    [
        (58, 0.95, None),  # 1 - 0.95^58 = 0.949: even the maximum of 58 is below the p95 too often
        (59, 0.95, 59),  # 1 - 0.95^59 = 0.9515
        (298, 0.99, None),  # 1 - 0.99^298 = 0.94996
        (299, 0.99, 299),  # 1 - 0.99^299 = 0.95046
        (0, 0.99, None),
        (100, 1.0, None),
    ],
)
def test_the_upper_order_statistic_at_its_borders(n: int, p: float, rank: int | None) -> None:
    assert upper_order_statistic(n, p) == rank


def test_the_upper_order_statistic_of_a_large_sample_does_not_underflow() -> None:
    # mean 99,000, standard deviation sqrt(100,000 * 0.99 * 0.01) = 31.46; 99,000 + 1.645 * 31.46 = 99,051.8
    rank = upper_order_statistic(100_000, 0.99)
    assert rank == pytest.approx(99_052, abs=2)


def test_allow_takes_the_measured_percentile() -> None:
    assert point(latency=ttft(54.0), completed=200).slo_value_ms(a_slo(60), "allow") == (54.0, "p99 TTFT")


@pytest.mark.parametrize("policy", ["penalise", "refuse"])
def test_a_large_sample_is_taken_as_measured_under_every_policy(policy: Any) -> None:
    assert point(latency=ttft(54.0, p100=90.0)).slo_value_ms(a_slo(60), policy) == (54.0, "p99 TTFT")


def test_penalise_takes_1_25_times_the_maximum_where_no_order_statistic_exists() -> None:
    # 200 requests: not even their maximum is above the p99 with 95% confidence (1 - 0.99^200 = 0.866); 1.25 * 56 = 70
    value, name = point(latency=ttft(54.0, p100=56.0), completed=200).slo_value_ms(a_slo(60), "penalise")
    assert value == 70.0
    assert "1.25 x maximum TTFT" in name


def test_penalise_takes_the_upper_order_statistic_where_one_exists() -> None:
    # 300 requests, p99: 0.99^300 = 0.049 and 300 * 0.01 * 0.99^299 = 0.149, so only the 300th is high enough
    assert exact_rank(300, Fraction("0.99"), Fraction("0.95")) == 300
    value, name = point(latency=ttft(54.0, p100=57.0), completed=300).slo_value_ms(a_slo(60), "penalise")
    assert (value, name) == (57.0, "95% upper bound of p99 TTFT")


def test_penalise_takes_the_next_higher_measured_percentile_of_the_order_statistic() -> None:
    # 19 requests, p75: P(Binomial(19, 0.75) <= 17) = 1 - 0.75^19 - 19 * 0.25 * 0.75^18 = 0.969 and P(<= 16) = 0.889,
    # so the 18th of 19; 18 / 19 = p94.7, and the next that was measured is p95
    assert exact_rank(19, Fraction("0.75"), Fraction("0.95")) == 18
    latency = {"ttft": Latency(quantiles_ms={75.0: 30.0, 90.0: 41.0, 95.0: 46.0, 99.0: 50.0, 100.0: 51.0})}
    value, name = point(latency=latency, completed=19).slo_value_ms(a_slo(60, percentile=75), "penalise")
    assert (value, name) == (46.0, "95% upper bound of p75 TTFT")


def test_penalise_without_a_measured_maximum_has_no_value() -> None:
    value, name = point(latency=ttft(54.0), completed=200).slo_value_ms(a_slo(60), "penalise")
    assert value is None
    assert "maximum TTFT" in name


def test_penalise_never_tests_a_smaller_value_than_allow() -> None:
    latency = {"ttft": Latency(quantiles_ms={50.0: 20.0, 90.0: 30.0, 95.0: 35.0, 99.0: 54.0, 100.0: 56.0})}
    for n in (1, 10, 20, 50, 99, 150, 200, 300, 400, 499, 500, 1000):
        for percentile in (50.0, 90.0, 95.0, 99.0, 100.0):
            run, slo = point(latency=latency, completed=n), a_slo(60, percentile=percentile)
            allowed, penalised = run.slo_value_ms(slo, "allow")[0], run.slo_value_ms(slo, "penalise")[0]
            assert allowed is not None and penalised is not None
            assert penalised >= allowed
