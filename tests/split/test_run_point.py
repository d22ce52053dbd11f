from __future__ import annotations

import pytest

from app.split.run_point import is_burst, is_saturated, point_of_run, power_from_tdp
from collectors.benchmark.run import Latency

from .builders import a_class, a_run


@pytest.mark.parametrize(
    ("mean_e2e_ms", "burst"),
    [
        # 1,000 requests at 4/s arrive for 250 s; 3 x 83.333... s = 250 s is still steady
        (250_000 / 3, False),
        (83_334.0, True),
        (83_333.0, False),
    ],
)
def test_a_run_is_a_burst_when_arrivals_last_less_than_3_mean_times(mean_e2e_ms: float, burst: bool) -> None:
    run = a_run(latency={"e2e": Latency(mean_ms=mean_e2e_ms)})
    assert is_burst(run) is burst


@pytest.mark.parametrize(("tpot_ms", "burst"), [(840.0, False), (850.0, True)])
def test_without_e2e_the_mean_time_is_ttft_and_tpot_for_the_tokens_after_the_first(tpot_ms: float, burst: bool) -> None:
    # 100 generated tokens a request: 100 + 840 * 99 = 83,260 ms, x 3 = 249.8 s < 250 s; 850 ms: 252.8 s > 250 s
    run = a_run(latency={"ttft": Latency(mean_ms=100.0), "tpot": Latency(mean_ms=tpot_ms)})
    assert is_burst(run) is burst


@pytest.mark.parametrize(("offered", "burst"), [(None, True), (4.0, False)])
def test_all_at_once_is_a_burst_even_when_no_latency_was_measured(offered: float | None, burst: bool) -> None:
    assert is_burst(a_run(offered_requests_per_s=offered)) is burst


def test_all_at_once_with_latencies_is_a_burst() -> None:
    assert is_burst(a_run(offered_requests_per_s=None, latency={"e2e": Latency(mean_ms=1.0)}))


@pytest.mark.parametrize(
    ("duration_s", "saturated"),
    [(312.5, True), (250.0, False), (1000 / 3.6, False), (277.8, True)],
    # 1,000 in 312.5 s = 3.2/s = 0.8 of 4/s; 250 s = 1.0; 277.78 s = 0.9 exactly; 277.8 s a little less
)
def test_a_steady_run_is_saturated_below_nine_tenths_of_the_offered_rate(duration_s: float, saturated: bool) -> None:
    assert is_saturated(a_run(duration_s=duration_s)) is saturated


def test_a_burst_is_never_called_saturated() -> None:
    run = point_of_run(a_run(duration_s=1000.0, latency={"e2e": Latency(mean_ms=200_000.0)}), None, None)
    assert run.flags(a_class()) == ["burst"]
    assert not is_saturated(a_run(offered_requests_per_s=None, duration_s=1000.0))


def test_idle_power_is_a_fifth_of_the_cards_limits() -> None:
    # 4 x 450 W = 1,800 W loaded; 20% of it idle
    assert power_from_tdp(a_run(gpu_count=4), 450.0) == (pytest.approx(360.0), 1800.0)


def test_without_tdp_no_power_is_known() -> None:
    assert power_from_tdp(a_run(), None) == (None, None)
