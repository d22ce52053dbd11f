"""A GPU that fails under a real child process, on a current and an old driver: the other GPU's rows stay exact."""

from __future__ import annotations

import time

import pytest

from tests.collectors.gpu.conftest import Starter
from tests.collectors.gpu.watching import alive, assert_hopper_is_exact
from tests.fakenvml.build import ADA_UUID, HOPPER_UUID, FakeDriver


def test_healthy_node_is_read_on_the_beat(begin: Starter, driver: FakeDriver):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 10))
    assert_hopper_is_exact(watch)
    assert (watch.last.status, watch.last.restarts, watch.last.driver_version) == (None, 0, "580.65.06")
    assert watch.last.tick_p99_us > 0
    assert [gpu.uuid for gpu in watch.last.gpus] == [ADA_UUID, HOPPER_UUID]
    beats = sorted(row["dt_us"] for row in watch.rows[HOPPER_UUID])
    assert 80_000 < beats[len(beats) // 2] < 120_000


@pytest.mark.parametrize("fault", ["hang", "segv", "sleep_ms"])
def test_gpu_that_hangs_or_crashes_the_reader_is_left_alone_and_the_other_goes_on(
    begin: Starter, driver: FakeDriver, fault: str
):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    child = watch.meter.child_pid
    struck_s = time.monotonic()
    driver.change(0, **{f"{fault}__nvmlDeviceGetUtilizationRates": 30_000})
    watch.until(lambda: watch.last.restarts == 1 and watch.meter.child_pid not in (None, child))
    assert time.monotonic() - struck_s < 5  # 0.5 s of deadline, on a slow machine
    watch.until(watch.rows_more(HOPPER_UUID, 5))
    assert_hopper_is_exact(watch)
    assert watch.status(ADA_UUID).startswith("not answering: ")
    assert watch.status(HOPPER_UUID) == "ok"
    assert watch.last.status is None
    assert watch.last.missing[f"gpu {ADA_UUID}"].startswith("not answering: ")
    assert watch.last.restarts == 1
    assert not alive(child)


def test_lost_gpu_goes_and_comes_back_without_a_restart(begin: Starter, driver: FakeDriver):
    watch = begin()
    watch.until(watch.rows_more(ADA_UUID, 3))
    driver.change(0, ret=15)
    watch.until(lambda: watch.status(ADA_UUID).startswith("lost: "))
    watch.until(watch.rows_more(HOPPER_UUID, 5))
    driver.change(0, ret=None)
    watch.until(watch.rows_more(ADA_UUID, 2))
    assert watch.status(ADA_UUID) == "ok"
    assert_hopper_is_exact(watch)
    assert watch.last.restarts == 0
