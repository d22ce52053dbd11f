"""The hub and its peer as processes of their own, with the CPU time they use."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.hub_process import free_port, running

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@contextmanager
def hub(folder: Path) -> Iterator[tuple[int, int]]:
    """(port, pid) of a hub on an empty store."""
    with running(["serve", "--db", str(folder / "bench.duckdb")], folder) as process:
        yield int(process.address.rsplit(":", 1)[1]), process.process.pid
        process.stop()


@contextmanager
def victoria_metrics(folder: Path) -> Iterator[tuple[int, int] | None]:
    """(port, pid) of VictoriaMetrics on an empty store; None where it is not installed."""
    program = shutil.which("victoria-metrics")
    if program is None:
        yield None
        return
    port = free_port()
    process = subprocess.Popen(
        [program, f"-httpListenAddr=127.0.0.1:{port}", f"-storageDataPath={folder / 'vm'}", "-retentionPeriod=100y"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                if requests.get(f"http://127.0.0.1:{port}/health", timeout=1).ok:
                    break
            except requests.RequestException:
                time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def cpu_s(pid: int) -> float:
    """User and system time of a process so far, with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024
