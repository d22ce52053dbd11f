"""Arrivals follow their curve, and lengths their distribution, within what chance allows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.queueing.arrivals import DAY_S, HOUR_S, SECOND_NS, Curve, Lengths, Surge, by_curve, steadily

ALIKE = Lengths(10, 5, prompt_sigma=0.0, generated_sigma=0.0)


def test_arrivals_of_each_hour_follow_the_curve() -> None:
    curve = Curve(4.0, surges=(Surge(2 * DAY_S, 2 * DAY_S + HOUR_S, 3.0),))
    requests = by_curve(np.random.default_rng(1), curve, ALIKE, 0, 7 * DAY_S)
    found = np.bincount(requests.arrival_ns // (HOUR_S * SECOND_NS), minlength=7 * 24)
    at_s = np.arange(30, 7 * DAY_S, 60.0)
    expected = (curve.per_s(at_s) * 60).reshape(-1, 60).sum(axis=1)
    assert (np.abs(found - expected) < 5 * np.sqrt(expected)).all()
    # of a Poisson process the squared deviations are 1 in the mean
    assert float(((found - expected) ** 2 / expected).mean()) == pytest.approx(1.0, abs=0.4)


def test_the_curve_by_hand() -> None:
    """Monday 14:30 is the middle of the busiest hour, x 0.88 for the day; between two middles it is halfway."""
    curve = Curve(10.0, surges=(Surge(0, HOUR_S, 2.0),))
    at_s = np.array([14.5, 15.0, 24 + 14.5, 24.0, 0.5]) * HOUR_S
    # 10 x 0.88; 10 x 0.88 x (1.00 + 0.98) / 2; Tuesday x 0.95; (0.22 + 0.16) / 2; 0.16 x 0.88 x 10, twice
    assert curve.per_s(at_s).tolist() == pytest.approx([8.8, 8.712, 9.5, 1.805, 2.816])


def test_arrivals_ascend_within_their_span() -> None:
    requests = by_curve(np.random.default_rng(2), Curve(1.0), ALIKE, HOUR_S, 3 * HOUR_S + 90)
    arrivals_s = requests.arrival_ns / SECOND_NS
    assert arrivals_s.min() >= HOUR_S
    assert arrivals_s.max() <= 3 * HOUR_S + 90
    assert (np.diff(requests.arrival_ns) >= 0).all()


def test_gaps_of_a_steady_process_are_exponential() -> None:
    requests = steadily(np.random.default_rng(3), 5.0, ALIKE, 40_000)
    gaps_s = np.diff(requests.arrival_ns) / SECOND_NS
    assert gaps_s.mean() == pytest.approx(0.2, rel=0.02)
    assert gaps_s.std() == pytest.approx(0.2, rel=0.03)
    assert float((gaps_s > 0.4).mean()) == pytest.approx(np.exp(-2), rel=0.05)


def test_at_an_infinite_rate_all_come_at_once() -> None:
    assert set(steadily(np.random.default_rng(4), np.inf, ALIKE, 10).arrival_ns.tolist()) == {0}


def test_lengths_have_their_means_and_limits() -> None:
    prompt, generated = Lengths(1200, 400, longest=8192).draw(np.random.default_rng(5), 200_000)
    assert generated.mean() == pytest.approx(400, rel=0.01)
    assert np.median(generated) == pytest.approx(400 * np.exp(-0.18), rel=0.01)
    # the cut takes some of the longest
    assert prompt.mean() == pytest.approx(1200, rel=0.01)
    assert (prompt.min() >= 1, prompt.max()) == (True, 8192)
    assert abs(np.corrcoef(prompt, generated)[0, 1]) < 0.01
    assert [set(column.tolist()) for column in ALIKE.draw(np.random.default_rng(6), 50)] == [{10}, {5}]
