"""One hour of a known load, read once a second with the jitter of a busy machine: the energy against the truth."""

from __future__ import annotations

import random

import pytest

from tests.collectors.gpu.rig import Rig, energy_mj, methods
from tests.fakenvml.build import ADA_UUID

# Bursts of 5 to 20 s between idle spells, over a minute: (second, mW).
CURVE = [(0, 60_000), (7, 300_000), (12, 290_000), (23, 60_000), (31, 410_000), (51, 120_000)]
MINUTE_MJ = 7 * 60_000 + 5 * 300_000 + 11 * 290_000 + 8 * 60_000 + 20 * 410_000 + 9 * 120_000


@pytest.fixture(params=["counter", "power only", "average power only"])
def source(request: pytest.FixtureRequest, rig: Rig) -> str:
    """What the GPU offers."""
    curve = ",".join(f"{second}:{power_mw}" for second, power_mw in CURVE)
    rig.driver.change(0, curve=curve, curve_repeat_s=60, power_mw=None)
    if request.param != "counter":
        rig.driver.change(0, energy_mj=None)
    if request.param == "average power only":
        rig.driver.change(0, ret__field186=3)
    return str(request.param)


def test_an_hour_of_load_adds_up(rig: Rig, source: str):
    moments = random.Random(7)
    rig.tick()
    began_us = rig.now_us
    while rig.now_us < began_us + 3_600_000_000 - 1_200_000:
        rig.tick(moments.uniform(0.8, 1.2))
    rig.tick((began_us + 3_600_000_000 - rig.now_us) / 1e6)
    rows = rig.rows()[ADA_UUID]
    assert sum(row["dt_us"] for row in rows) == 3_600_000_000
    truth_mj = 60 * MINUTE_MJ
    if source == "counter":
        assert methods(rows) == {"counter"}
        assert energy_mj(rows) == pytest.approx(truth_mj, rel=0.005)
        assert sum(row["integral_mj"] for row in rows) == pytest.approx(truth_mj, rel=0.02)
    else:
        assert methods(rows) <= {"integral_instant", "integral_average"}
        assert energy_mj(rows) == pytest.approx(truth_mj, rel=0.02)


def test_an_hour_of_resets_frozen_spells_and_jumps_still_adds_up(rig: Rig):
    curve = ",".join(f"{second}:{power_mw}" for second, power_mw in CURVE)
    rig.driver.change(0, curve=curve, curve_repeat_s=60, power_mw=None)
    rig.tick()
    for minute in range(60):
        if minute % 4 == 1:
            rig.driver.change(0, energy_offset_mj=-(minute * 10**6))
        if minute % 4 == 2:
            rig.driver.change(0, energy_frozen_at=rig.now_us / 1e6)
        if minute % 4 == 3:
            rig.driver.change(0, energy_frozen_at=None, energy_offset_mj=minute * 10**8)
        for _ in range(60):
            rig.tick()
    rows = rig.rows()[ADA_UUID]
    assert methods(rows) > {"counter"}
    assert energy_mj(rows) == pytest.approx(60 * MINUTE_MJ, rel=0.01)
