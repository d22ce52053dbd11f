"""A real agent process on the fake driver, pushing to a real hub: the energy of a known load reaches the rollups."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from app.store.database import Store
from tests.conftest import ROOT, need
from tests.fakenvml.build import ADA_UUID, FakeDriver, build
from tests.hub_process import running

# 60 W for 2 s, 400 W for 3 s, over and over: 1,320 J every 5 s
CURVE = "0:60000,2:400000"
PERIOD_S = 5.0


def truth_j(begin_s: float, end_s: float) -> float:
    """Energy of the curve between two times since its epoch."""

    def until(t: float) -> float:
        whole, rest = divmod(t, PERIOD_S)
        return whole * 1320.0 + 60.0 * min(rest, 2.0) + 400.0 * max(rest - 2.0, 0.0)

    return until(end_s) - until(begin_s)


@contextmanager
def agent_on(driver: FakeDriver, hub: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WATTMIX_")}
    (folder / "wattmix.toml").write_text("[agent]\nnode = 'bench-node'\npush_every_s = 2\n", encoding="utf-8")
    with (folder / "agent.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "app", "agent", "--hub", hub, "--spool", str(folder / "spool.db"),
             "--nvml-library", str(driver.library)],
            cwd=folder, env=environment | {"PYTHONPATH": str(ROOT), "FAKENVML_CONF": str(driver.conf)},
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(10)


@pytest.mark.parametrize("seconds", [12.0, pytest.param(60.0, marks=pytest.mark.slow)], ids=["12 s", "60 s"])
def test_the_energy_of_a_known_load_reaches_the_store(tmp_path: Path, seconds: float) -> None:
    need(shutil.which("gcc") is not None, "gcc", "apt-get install gcc libc6-dev")
    driver = FakeDriver(build(tmp_path)["current"], tmp_path / "gpus.conf", old=False)
    epoch = time.time() - 100
    driver.change(0, curve=CURVE, curve_repeat_s=PERIOD_S, epoch=epoch, power_mw=None, energy_step_ms=20)
    with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
        with agent_on(driver, hub.address, tmp_path) as agent:
            wait_for(lambda: health(hub.address)["gpus"], 30)
            time.sleep(seconds)
            agent.send_signal(signal.SIGTERM)
            assert agent.wait(15) == 0
        node = health(hub.address)["nodes"][0]
        assert (node["node"], node["gpus"], node["agent_version"]) == ("bench-node", 2, "0.1.0")
        assert hub.stop() == 0
    rows = samples(tmp_path / "s.duckdb", ADA_UUID)
    begin_us, end_us = rows[0]["t_us"] - rows[0]["dt_us"], rows[-1]["t_us"]
    assert end_us - begin_us > (seconds - 4) * 1e6
    assert sum(row["dt_us"] for row in rows) == pytest.approx(end_us - begin_us, rel=1e-3)  # no gap, no overlap
    truth = truth_j(begin_us / 1e6 - epoch, end_us / 1e6 - epoch)
    assert sum(row["energy_mj"] for row in rows) / 1e3 == pytest.approx(truth, rel=0.02)
    # a load that jumps twice in five seconds, read once a second: the integral is a check, not the measure
    assert sum(row["integral_mj"] or 0 for row in rows) / 1e3 == pytest.approx(truth, rel=0.25)


def health(address: str) -> dict[str, Any]:
    answer: dict[str, Any] = requests.get(f"{address}/api/v1/health", timeout=10).json()
    return answer


def wait_for(holds: Any, deadline_s: float) -> None:
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, "nothing came through in time"
        time.sleep(0.1)


def samples(db: Path, uuid: str) -> list[dict[str, Any]]:
    store = Store.open(db)
    try:
        sql = "SELECT sample.* FROM gpu_sample AS sample JOIN gpu USING (gpu_id) WHERE uuid = $1 ORDER BY t_us"
        return list(store.query(sql, [uuid]).iter_rows(named=True))
    finally:
        store.close()
