"""Real hub processes for tests: started on a free port, waited for, stopped by pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

START_S = 30.0
STOP_S = 15.0


@dataclass(frozen=True)
class HubProcess:
    process: subprocess.Popen[str]
    address: str

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    arguments: Sequence[str], folder: Path, *, command: Sequence[str] = (sys.executable, "-m", "app")
) -> Iterator[HubProcess]:
    """`wattmix <arguments> --port N` in `folder`, ready to answer; killed at the end if still there."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WATTMIX_")}
    process = subprocess.Popen(
        [*command, *arguments, "--port", str(port)],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(process, address)
        yield HubProcess(process, address)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _wait(process: subprocess.Popen[str], address: str) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the hub ended with {process.returncode}: {process.communicate()[0]}")
        try:
            if requests.get(f"{address}/healthz", timeout=1).ok:
                return
        except requests.RequestException:
            time.sleep(0.05)
    raise AssertionError(f"the hub did not answer within {START_S:g} s")
