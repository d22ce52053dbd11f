"""The simulator as a process beside a real hub: it fills it, goes on, and never outlives it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from app.simulator.__main__ import SEED
from app.simulator.fleet import demo_world
from app.simulator.process import SimulatorProcess
from app.simulator.truth import gpu_truth
from app.store.database import Store
from tests.collectors.hubs import hub as refusing_hub
from tests.hub_process import HubProcess, running
from tests.simulator.wires import SECOND_US, node_named

DEADLINE_S = 20.0
HOUR_US = 3600 * SECOND_US
STORED = 'wattmix_ingest_batches_total{result="stored"}'
# grain: one row per GPU and hour that has ended
HOURS = """
    SELECT uuid, hour_us, counter_j, provisioned_s FROM gpu_hour JOIN gpu USING (gpu_id) WHERE hour_us < $1
"""


def wait_until(there: Callable[[], bool], what: str, *, within_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + within_s
    while not there():
        assert time.monotonic() < deadline, f"waited {within_s:g} s for {what}"
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Processes that `pid` started, simulators only."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = status.with_name("cmdline").read_bytes()
        except (OSError, IndexError):
            continue  # it has ended meanwhile
        if parent == pid and b"app.simulator" in command:
            found.append(int(status.parent.name))
    return found


def is_running(pid: int) -> bool:
    """Whether that process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def simulator_of(hub: HubProcess) -> int:
    wait_until(lambda: bool(children(hub.process.pid)), "the simulator to start")
    return children(hub.process.pid)[0]


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")


def test_it_fills_a_real_hub_and_goes_on(tmp_path: Path) -> None:
    db = tmp_path / "d.duckdb"
    with running(["demo", "--no-browser", "--no-simulation", "--db", str(db)], tmp_path) as hub:
        assert children(hub.process.pid) == []
        simulator = SimulatorProcess(hub.address, past_days=0.2)
        try:
            # one batch of the past and one of the present of each node: two of them may be off just now
            wait_until(lambda: metric(hub, STORED) >= 2 * 8, "the present's batches")
        finally:
            assert simulator.stop() == 0
        nodes = requests.get(f"{hub.address}/api/v1/health", timeout=10).json()["nodes"]
        assert {"h100-1", "h100-4", "gamer-1", "gamer-2"} <= {node["node"] for node in nodes}
        assert all(node["late_rows"] == node["skipped_batches"] == 0 for node in nodes)
        assert hub.stop() == 0
    store = Store.open(db)
    lengths = store.query("SELECT dt_us, count(*) AS n FROM gpu_sample GROUP BY dt_us")
    # at least three whole hours of 16 GPUs, and seconds after them
    rows = dict(lengths.iter_rows())
    assert rows[60 * SECOND_US] >= 3 * 60 * 16
    assert rows[SECOND_US] > 0
    assert store.query("SELECT DISTINCT simulated FROM node")["simulated"].to_list() == [True]
    store.close()


def metric(hub: HubProcess, name: str) -> float:
    text = requests.get(f"{hub.address}/metrics", timeout=10).text
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_demo_s_simulator_ends_with_its_hub_however_that_ends(tmp_path: Path, number: int) -> None:
    with running(["demo", "--no-browser", "--db", str(tmp_path / "d.duckdb")], tmp_path) as hub:
        pid = simulator_of(hub)
        os.kill(hub.process.pid, number)
        hub.process.wait(15)
        wait_until(lambda: not is_running(pid), "the simulator to end")
    assert not is_running(pid)


def test_what_a_hub_refuses_is_told_with_exit_code_2(tmp_path: Path) -> None:
    with refusing_hub(*["422"] * 10) as hub:
        command = [sys.executable, "-m", "app.simulator", "--hub", hub.address, "--days", "0.1"]
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert (told.returncode, told.stdout) == (2, "")
    assert re.fullmatch(
        rf"error: the hub at {hub.address} refused a batch of [a-z0-9-]+: 422: scripted 422\n", told.stderr
    )


@needs_proc
@pytest.mark.slow
def test_a_week_is_in_the_store_as_the_truth_has_it(tmp_path: Path) -> None:
    """The whole demo: its hours hold the hidden truth, and the present costs little."""
    db = tmp_path / "d.duckdb"
    with running(["demo", "--no-browser", "--db", str(db)], tmp_path) as hub:
        simulator = simulator_of(hub)
        wait_until(lambda: metric(hub, STORED) >= 60, "live batches", within_s=90)
        wait_until(lambda: metric(hub, "wattmix_rollup_waiting_minutes") < 500, "the rollups", within_s=90)
        began_s, used_s = time.monotonic(), cpu_s(simulator)
        time.sleep(12.0)
        assert (cpu_s(simulator) - used_s) / (time.monotonic() - began_s) < 0.1
        assert hub.stop() == 0
    store = Store.open(db)
    hours = store.query(HOURS, [time.time_ns() // 1000 - 2 * HOUR_US])
    store.close()
    assert hours.height > 20 * 120
    world = demo_world(SEED)
    for uuid, hour_us, energy_j, present_s in hours.iter_rows():
        name, _, index = uuid.removeprefix("simulated-").rpartition("-")
        truth = gpu_truth(world, node_named(world, name), int(index), hour_us, hour_us + HOUR_US)
        assert energy_j == pytest.approx(truth.energy_j, abs=1e-6)
        assert present_s == pytest.approx(truth.present_s, abs=1e-6)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
