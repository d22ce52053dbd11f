"""Log-normal latencies and their counts by bucket."""

from __future__ import annotations

import numpy as np
import pytest

from app.simulator.latency import E2E_BOUNDS_S, ITL_BOUNDS_S, TTFT_BOUNDS_S, LogNormal, bounds_us, draw

ONE = np.array([1.0])


def test_the_shares_follow_the_quantiles() -> None:
    # p50 = 0.1 s and p99 = 0.5 s, both bounds: half lies below the one, 99% below the other
    shares = LogNormal.through(0.1 * ONE, 0.5 * ONE).shares(TTFT_BOUNDS_S)[0]
    below = np.cumsum(shares)
    assert below[TTFT_BOUNDS_S.index(0.1)] == pytest.approx(0.5, abs=1e-5)
    assert below[TTFT_BOUNDS_S.index(0.5)] == pytest.approx(0.99, abs=1e-5)
    assert below[-1] == pytest.approx(1.0)
    assert len(shares) == len(TTFT_BOUNDS_S) + 1


def test_the_mean_is_the_log_normal_s() -> None:
    latency = LogNormal.with_mean(4.0 * ONE, 0.8)
    assert latency.mean_s[0] == pytest.approx(4.0)
    # median = 4 / exp(0.8^2 / 2) = 2.9046
    assert latency.median_s[0] == pytest.approx(2.9046, abs=1e-4)
    assert latency.times(3.0 * ONE).mean_s[0] == pytest.approx(12.0)


@pytest.mark.parametrize("bounds_s", [TTFT_BOUNDS_S, ITL_BOUNDS_S, E2E_BOUNDS_S])
def test_the_counts_add_up_and_follow_the_quantiles(bounds_s: tuple[float, ...]) -> None:
    counts = np.array([0, 1, 17, 100_000])
    latency = LogNormal.through(np.full(4, 0.8), np.full(4, 5.0))
    drawn = draw(np.random.default_rng(1), counts, latency, bounds_s)
    assert drawn.sum(axis=1).tolist() == counts.tolist()
    below = np.cumsum(drawn[3]) / 100_000
    # the log-normal's distribution at the first bound above the median, by hand in the shares' test
    assert below == pytest.approx(np.cumsum(latency.shares(bounds_s)[3]), abs=0.01)


def test_the_bounds_are_ascending_microseconds() -> None:
    assert bounds_us(TTFT_BOUNDS_S)[:3] == [1_000, 5_000, 10_000]
    for bounds_s in (TTFT_BOUNDS_S, ITL_BOUNDS_S, E2E_BOUNDS_S):
        assert sorted(set(bounds_us(bounds_s))) == bounds_us(bounds_s)
