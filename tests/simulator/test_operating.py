"""Curves through the study's operating points."""

from __future__ import annotations

import numpy as np
import pytest

from app.errors import UnknownName
from app.simulator.fleet import MODEL_14B
from app.simulator.operating import study_curve

H100 = study_curve(MODEL_14B, "NVIDIA H100 PCIe", 1)


def at(offered: float) -> np.ndarray:
    return np.array([offered])


def test_at_a_rate_of_the_study_the_curve_is_its_runs() -> None:
    # two runs of 200 requests at 16 req/s: 200 / 27.681969 s = 7.22492 and 200 / 27.955665 s = 7.15418; mean 7.18955
    assert H100.served(at(16.0))[0] == pytest.approx(7.18955, abs=1e-4)
    # their TTFT p50: (41.87507 + 40.65063) / 2 = 41.26285 ms, p99: (54.41418 + 56.02504) / 2 = 55.21961 ms
    ttft = H100.ttft(at(16.0))
    assert ttft.median_s[0] == pytest.approx(0.04126285, abs=1e-7)
    assert ttft.median_s[0] * np.exp(2.3263479 * ttft.sigma[0]) == pytest.approx(0.05521961, abs=1e-7)
    # ITL p50: (21.86812 + 22.20290) / 2 = 22.03551 ms
    assert H100.itl(at(16.0)).median_s[0] == pytest.approx(0.02203551, abs=1e-7)


def test_between_two_rates_it_goes_straight_and_beyond_them_level() -> None:
    middle = (H100.served(at(8.0))[0] + H100.served(at(16.0))[0]) / 2
    assert H100.served(at(12.0))[0] == pytest.approx(middle)
    assert H100.served(at(0.0))[0] == 0.0
    assert H100.served(at(0.5))[0] == pytest.approx(H100.served(at(1.0))[0] / 2)
    assert H100.served(at(500.0))[0] == H100.served(at(32.0))[0]
    assert H100.ttft(at(0.1)).median_s[0] == H100.ttft(at(1.0)).median_s[0]


def test_a_request_is_the_study_s_mean_request() -> None:
    # 41,650 prompt tokens of 200 requests: 208.25
    assert H100.prompt_tokens == pytest.approx(208.25)
    assert 207 < H100.generated_tokens < 210


def test_a_pair_of_4090s_carries_less_and_answers_later() -> None:
    pair = study_curve(MODEL_14B, "NVIDIA GeForce RTX 4090", 2)
    assert pair.best_per_s < H100.best_per_s
    assert pair.ttft(at(4.0)).median_s[0] > 3 * H100.ttft(at(4.0)).median_s[0]


def test_what_the_study_did_not_run_is_told() -> None:
    with pytest.raises(UnknownName, match=r"no run of .*14B on 1 x NVIDIA GeForce RTX 4090"):
        study_curve(MODEL_14B, "NVIDIA GeForce RTX 4090", 1)
