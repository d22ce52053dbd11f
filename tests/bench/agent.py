"""What the agent costs on a node with eight GPUs and eight engines, beside nvitop-exporter on the same fake driver."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.bench.report import Line
from tests.bench.servers import cpu_s, hub, memory_mb
from tests.conftest import ROOT
from tests.fakenvml.build import ADA, FakeDriver, build
from tests.hub_process import free_port

GPUS, ENGINES, MEASURE_S, SETTLE_S = 8, 8, 40.0, 8.0


def cost() -> list[Line]:
    if shutil.which("gcc") is None:
        return []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        driver = FakeDriver(build(folder)["current"], folder / "gpus.conf", old=False)
        driver.gpus = [
            {**ADA, "uuid": f"GPU-0000-{index}", "bus_id": f"00000000:{index + 1:02X}:00.0"} for index in range(GPUS)
        ]
        driver.write()
        environment = os.environ | {"FAKENVML_CONF": str(driver.conf), "PYTHONPATH": str(ROOT)}
        cpu, _ = _agent(driver, environment, folder, ports=[])
        ports = [free_port() for _ in range(ENGINES)]
        with _engines(ports, environment, folder):
            with_engines, memory = _agent(driver, environment, folder, ports=ports)
        peer = _nvitop(driver, environment, folder)
    samples = GPUS * MEASURE_S
    per_sample = 1e6 * cpu / samples
    peer_per_sample = None if peer is None else 1e6 * peer / samples
    both = "both of its processes"
    return [
        Line("agent, 8 GPUs at 1 Hz", 100 * cpu / MEASURE_S, "% of a core", "<= 2", note=both),
        Line("agent, 8 GPUs at 1 Hz and 8 engines every 5 s", 100 * with_engines / MEASURE_S, "% of a core", "<= 2",
             note=f"{both}; pages of vLLM 0.32"),
        Line("agent, memory of both processes", memory, "MB", "<= 80", note="with the engines"),
        Line("agent, CPU per GPU sample", per_sample, "us", "below the peer's", peer_per_sample, "nvitop-exporter"),
    ]  # fmt: skip


def _agent(driver: FakeDriver, environment: dict[str, str], folder: Path, *, ports: list[int]) -> tuple[float, float]:
    """(CPU seconds of MEASURE_S, resident MB) of an agent that pushes to a hub of its own."""
    run = folder / f"with {len(ports)} engines"
    run.mkdir()
    engines = "".join(f'[[agent.engine]]\nurl = "http://127.0.0.1:{port}"\n' for port in ports)
    (run / "wattmix.toml").write_text(f"[agent]\ndiscover_engines = {str(bool(ports)).lower()}\n{engines}")
    with hub(run) as (port, _):
        return _measure(
            [sys.executable, "-m", "app", "agent", "--hub", f"http://127.0.0.1:{port}", "--spool",
             str(run / "spool.db"), "--nvml-library", str(driver.library)], environment, run,
        )  # fmt: skip


@contextmanager
def _engines(ports: list[int], environment: dict[str, str], folder: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.bench.engine_pages", *map(str, ports)]
    process = subprocess.Popen(command, env=environment, cwd=folder)
    try:
        yield
    finally:
        process.terminate()
        process.wait(15)


def _measure(command: list[str], environment: dict[str, str], folder: Path) -> tuple[float, float]:
    """(CPU seconds of MEASURE_S, resident MB), both of the process and its children."""
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(SETTLE_S)
        before = sum(map(cpu_s, _family(process.pid)))
        time.sleep(MEASURE_S)
        family = _family(process.pid)
        return sum(map(cpu_s, family)) - before, sum(map(memory_mb, family))
    finally:
        process.terminate()
        process.wait(15)


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(member for child in children for member in _family(int(child)))]


def _nvitop(driver: FakeDriver, environment: dict[str, str], folder: Path) -> float | None:
    """CPU seconds of nvitop-exporter over MEASURE_S, sampling once a second; None where it is not installed."""
    if importlib.util.find_spec("nvitop_exporter") is None:
        return None
    (folder / "libnvidia-ml.so.1").symlink_to(driver.library)
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "nvitop_exporter",
        "--bind-address",
        "127.0.0.1",
        "--port",
        str(port),
        "--interval",
        "1",
    ]
    process = subprocess.Popen(
        command, env=environment | {"LD_LIBRARY_PATH": str(folder)}, cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        time.sleep(SETTLE_S)
        if "gpu_power_usage" not in requests.get(f"http://127.0.0.1:{port}/metrics", timeout=5).text:
            return None
        before = sum(map(cpu_s, _family(process.pid)))
        time.sleep(MEASURE_S)
        return sum(map(cpu_s, _family(process.pid))) - before
    except requests.RequestException:
        return None
    finally:
        process.terminate()
        process.wait(15)
