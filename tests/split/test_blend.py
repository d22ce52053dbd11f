"""A live point and a run that measure the same load: the better sample stays, and the answer says why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.split.blend import blend
from app.split.point import OperatingPoint, Window
from app.split.run_point import point_of_run

from .builders import MODEL, a_run

NEW = datetime(2026, 2, 3, 4, tzinfo=UTC)


def a_live(**said: Any) -> OperatingPoint:
    """2,000 requests at 800 tokens/s, in a bin of 780 to 820."""
    known: dict[str, Any] = {
        "point_id": "live:fleet:m:1:780", "source": "live", "model": MODEL, "gpu_name": "X", "gpus": 1, "qps": 4.0,
        "tokens_per_s": 800.0, "prompt_share": 0.5, "n": 2000, "idle_w": 100.0, "loaded_w": 300.0,
        "power_method": "measured", "recorded_at": NEW,
        "window": Window(NEW - timedelta(days=14), NEW, 60, 2, 780, 820),
    }  # fmt: skip
    return OperatingPoint(**(known | said))


def run_point(**said: Any) -> OperatingPoint:
    """1,000 requests at 800 tokens/s, steady."""
    return point_of_run(a_run(**said), 100.0, 500.0)


@pytest.mark.parametrize(
    ("live", "run", "stays", "reason"),
    [
        pytest.param({}, {}, "live", "larger sample at the same load: 2,000 requests against 1,000", id="larger"),
        pytest.param({"n": 500}, {}, "run", "1,000 requests against 500", id="the run is larger"),
        pytest.param({"n": 1000}, {"recorded_at": NEW - timedelta(days=1)}, "live", "and newer", id="newer"),
        pytest.param({"n": 1000}, {"recorded_at": NEW + timedelta(days=1)}, "run", "and newer", id="the run is newer"),
        pytest.param(
            {"n": 1}, {"offered_requests_per_s": None}, "live", "no steady state", id="a burst says less"
        ),
        pytest.param({"seen": ("simulated",)}, {}, "run", "simulated", id="simulated says less"),
    ],
)  # fmt: skip
def test_one_of_two_stays(live: dict[str, Any], run: dict[str, Any], stays: str, reason: str) -> None:
    kept, superseded = blend([a_live(**live)], [run_point(**run)])
    assert [point.source for point in kept] == [stays]
    (out,) = superseded
    assert (out.by, out.point.source != stays) == (kept[0], True)
    assert reason in out.reason


@pytest.mark.parametrize(
    "run",
    [
        pytest.param({"duration_s": 260.0}, id="another load"),  # 200,000 / 260 = 769 tokens/s
        pytest.param({"gpu_count": 2}, id="another number of GPUs"),
        pytest.param({"model": "org/other"}, id="another model"),
    ],
)
def test_what_measures_something_else_stays_beside_it(run: dict[str, Any]) -> None:
    kept, superseded = blend([a_live()], [run_point(**run)])
    assert ([point.source for point in kept], superseded) == (["live", "run"], [])


def test_a_model_may_be_said_without_its_organisation() -> None:
    assert len(blend([a_live(model="model")], [run_point()])[0]) == 1
    assert len(blend([a_live()], [run_point(model="model")])[0]) == 1


def test_repeats_of_a_run_are_each_judged() -> None:
    """The smaller one yields to the live point, and that to the larger one."""
    small, large = run_point(), run_point(num_prompts=9000, completed=9000, duration_s=250.0)
    kept, superseded = blend([a_live()], [small, large])
    assert kept == [large]
    assert {out.point.source for out in superseded} == {"live", "run"}
