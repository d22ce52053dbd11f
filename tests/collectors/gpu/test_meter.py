"""The child process and its watcher, with real processes: hangs, crashes, losses, restarts. Deadlines are short."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collectors.gpu.process import read_once
from tests.collectors.gpu.conftest import Starter
from tests.collectors.gpu.rig import energy_mj
from tests.collectors.gpu.watching import alive, assert_hopper_is_exact
from tests.fakenvml.build import ADA, ADA_UUID, HOPPER_UUID, FakeDriver


@pytest.fixture
def driver(current_driver: FakeDriver) -> FakeDriver:
    """What is tested here is the same on old drivers."""
    return current_driver


def test_gpu_left_alone_is_tried_again_and_comes_back(begin: Starter, driver: FakeDriver):
    watch = begin(quarantine_s=0.5)
    watch.until(watch.rows_more(ADA_UUID, 3))
    driver.change(0, hang__nvmlDeviceGetUtilizationRates=1)
    watch.until(lambda: watch.status(ADA_UUID) != "ok")
    driver.change(0, hang__nvmlDeviceGetUtilizationRates=None)
    watch.until(watch.rows_more(ADA_UUID, 3))
    assert watch.status(ADA_UUID) == "ok"
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    assert_hopper_is_exact(watch)
    assert energy_mj(watch.rows[ADA_UUID]) > 0


def test_gpu_that_hangs_before_it_tells_its_name(begin: Starter, driver: FakeDriver):
    driver.change(0, hang__nvmlDeviceGetHandleByIndex_v2=1)
    watch = begin(init_deadline_s=1.0)
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    assert watch.last.missing["gpu #0"].startswith("not answering: ")
    assert [gpu.uuid for gpu in watch.last.gpus] == [HOPPER_UUID]


def test_library_that_hangs_at_start_is_killed_and_tried_again(begin: Starter, driver: FakeDriver):
    driver.change(None, hang__nvmlInitWithFlags=1)
    watch = begin(init_deadline_s=0.5)
    watch.until(lambda: watch.last.restarts >= 2)
    assert watch.last.status is not None
    assert watch.last.status.startswith("nvml_fails: NVML did not start; a call of the driver did not return")
    driver.change(None, hang__nvmlInitWithFlags=None)
    watch.until(watch.rows_more(HOPPER_UUID, 2))
    assert watch.last.status is None


def test_library_that_crashes_at_start_says_so(begin: Starter, driver: FakeDriver):
    driver.change(None, segv__nvmlInitWithFlags=1)
    watch = begin()
    watch.until(lambda: watch.last.status is not None)
    assert "signal 11" in str(watch.last.status)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (18, "driver_mismatch: .*reboot or reload"),
        (9, "no_driver: .*modprobe nvidia"),
        (4, "no_permission: .*root"),
        (999, "nvml_error: .*restart it"),
        (12, "no_nvml: .*NVIDIA_DRIVER_CAPABILITIES=utility"),
    ],
)
def test_node_whose_nvml_does_not_start_says_why_and_recovers(
    begin: Starter, driver: FakeDriver, error: int, status: str
):
    driver.change(None, ret__nvmlInitWithFlags=error)
    watch = begin()
    watch.until(lambda: watch.last.status is not None)
    assert re.match(status, str(watch.last.status))
    assert watch.last.gpus == []
    driver.change(None, ret__nvmlInitWithFlags=None)
    watch.until(watch.rows_more(HOPPER_UUID, 1))
    assert (watch.last.status, watch.last.restarts) == (None, 0)


@pytest.mark.parametrize("library", [None, "/nowhere/libnvidia-ml.so.1", __file__])
def test_library_that_is_not_there_or_none_is_said(begin: Starter, library: str | None):
    watch = begin(nvml_library=library)
    watch.until(lambda: watch.last.status is not None)
    assert str(watch.last.status).startswith("no_nvml: ")
    assert library is None or library in str(watch.last.status)


def test_node_without_gpus_says_so_until_one_appears(begin: Starter, driver: FakeDriver):
    gpus, driver.gpus = driver.gpus, []
    driver.write()
    watch = begin()
    watch.until(lambda: watch.last.status is not None)
    assert str(watch.last.status).startswith("no_gpu: ")
    driver.gpus = gpus
    driver.write()
    watch.until(watch.rows_more(HOPPER_UUID, 2))
    assert watch.last.status is None


def test_child_killed_from_outside_is_replaced(begin: Starter):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    child = watch.meter.child_pid
    assert child is not None
    os.kill(child, signal.SIGKILL)
    watch.until(watch.rows_more(HOPPER_UUID, 5))
    assert watch.meter.child_pid != child
    assert watch.last.restarts == 1
    assert_hopper_is_exact(watch)


def test_next_meter_goes_on_from_the_state_of_the_last(begin: Starter):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    watch.meter.stop()
    watch.drain()
    kept = json.loads(json.dumps(watch.last.state))
    assert kept == watch.meter.state()
    later = begin(state=kept)
    later.rows = watch.rows
    later.until(later.rows_more(HOPPER_UUID, 3))
    assert_hopper_is_exact(later)


def test_state_is_that_of_the_rows_drained(begin: Starter):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    before = watch.meter.state()
    for _ in range(3):  # the first may only end a tick whose readings were drained already
        watch.meter.poll(1.0)
    assert watch.meter.state() == before
    watch.drain()
    assert watch.meter.state() != before
    assert watch.meter.state()[HOPPER_UUID]["t_us"] == watch.rows[HOPPER_UUID][-1]["t_us"]


def test_paused_meter_has_no_process_and_goes_on_when_resumed(begin: Starter):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    child = watch.meter.child_pid
    watch.meter.pause()
    assert not alive(child)
    watch.drain()
    assert str(watch.last.status).startswith("paused: ")
    watch.meter.poll(0.01)
    assert watch.meter.child_pid is None
    watch.meter.resume()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    assert_hopper_is_exact(watch)
    assert watch.last.restarts == 0


def test_driver_changed_while_paused_is_bridged_with_energy_unknown(begin: Starter, driver: FakeDriver):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    watch.meter.pause()
    driver.change(None, driver_version="590.1")
    driver.change(1, epoch=time.time(), energy_mj=0)
    watch.meter.resume()
    seen = len(watch.rows[HOPPER_UUID])
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    row, *others = watch.rows[HOPPER_UUID][seen:]
    assert (row["energy_mj"], row["energy_method"]) == (None, "bridged")
    assert energy_mj(others) > 0
    assert watch.last.driver_version == "590.1"


def test_child_does_not_outlive_its_agent_even_while_it_hangs(driver: FakeDriver, tmp_path: Path):
    driver.change(0, hang__nvmlDeviceGetName=1)
    code = (
        "import os, sys, time; from collectors.gpu.process import GpuMeter\n"
        f"m = GpuMeter(nvml_library={str(driver.library)!r}); m.start(); print(m.child_pid, flush=True)\n"
        "time.sleep(1); os.kill(os.getpid(), 9)"
    )
    root = Path(__file__).resolve().parents[3]
    agent = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=30)
    child = int(agent.stdout)
    end_s = time.monotonic() + 10
    while alive(child):
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_child_that_has_grown_is_replaced_in_good_order(begin: Starter, driver: FakeDriver):
    watch = begin()
    watch.meter._order = watch.meter._order._replace(most_rss_bytes=1)
    watch.meter.pause()
    watch.meter.resume()
    child = watch.meter.child_pid
    watch.until(lambda: watch.meter.child_pid not in (None, child))
    watch.until(watch.rows_more(HOPPER_UUID, 8))
    assert_hopper_is_exact(watch)
    assert watch.last.restarts == 0


def test_child_is_light(begin: Starter):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    status = Path(f"/proc/{watch.meter.child_pid}/status").read_text()
    rss_kib = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
    assert rss_kib < 40 * 1024


def test_agent_that_was_held_up_does_not_blame_the_child(begin: Starter):
    watch = begin()
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    child = watch.meter.child_pid
    assert child is not None
    os.kill(child, signal.SIGSTOP)  # the whole machine sleeps, agent and child
    time.sleep(1.2)
    os.kill(child, signal.SIGCONT)
    watch.until(watch.rows_more(HOPPER_UUID, 3))
    assert (watch.meter.child_pid, watch.last.restarts) == (child, 0)


def test_processes_come_with_the_samples(begin: Starter):
    watch = begin()
    pids: set[int | None] = set()
    watch.until(lambda: pids.update(watch.last.processes.pid if watch.last.processes else []) or len(pids) == 2)
    assert pids == {4242, 5151}


def test_one_full_reading(driver: FakeDriver):
    driver.change(1, epoch=time.time() - 60)
    reading = read_once(str(driver.library), interval_s=0.3)
    assert reading.samples is not None and reading.processes is not None
    assert len(reading.samples) == 2
    assert (reading.status, reading.gpus[0].name) == (None, ADA["name"])


def test_one_full_reading_without_a_driver_is_a_status():
    assert str(read_once("/nowhere/nvml.so").status).startswith("no_nvml: ")
