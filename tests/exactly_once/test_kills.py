"""Design law 6: what was acknowledged is in the store once, whatever was killed when."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from app.store.database import Store
from collectors.spool import Spool
from tests.conftest import ROOT
from tests.hub_process import free_port

DEADLINE_S = 60.0


class Crew:
    """The hub and the feeder as real processes, each of which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.db, self.spool, self.journal = folder / "s.duckdb", folder / "spool.db", folder / "journal"
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        commands = {
            "hub": ["-m", "app", "serve", "--db", str(self.db), "--port", str(self.port)],
            "feeder": ["-m", "tests.exactly_once.feeder", str(self.spool), self.address, str(self.journal)],
        }
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WATTMIX_")}
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, *commands[name]],
                cwd=self._folder, env=environment | {"PYTHONPATH": str(ROOT)}, stdout=log, stderr=log,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGKILL)
        self._processes[name].wait(10)

    def stop_all(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
                process.wait(10)

    def stored(self) -> int:
        """Batches that the running hub says it has stored since it started; -1 while it does not answer."""
        try:
            text = requests.get(f"{self.address}/metrics", timeout=1).text
        except requests.RequestException:
            return -1
        return int(float(text.split('wattmix_ingest_batches_total{result="stored"} ')[1].split()[0]))

    def wait_until_it_stores(self) -> None:
        wait_for(lambda: self.stored() > 0)

    def appended(self) -> list[int]:
        return [int(line) for line in self.journal.read_text(encoding="ascii").splitlines() if line]


def wait_for(holds: object, deadline_s: float = DEADLINE_S) -> None:
    assert callable(holds)
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, "nothing came through in time"
        time.sleep(0.02)


@contextmanager
def crew_in(folder: Path) -> Iterator[Crew]:
    crew = Crew(folder)
    try:
        yield crew
    finally:
        crew.stop_all()


@pytest.mark.parametrize(
    ("kills", "seed"), [(10, 1), pytest.param(100, 2, marks=pytest.mark.slow)], ids=["10 kills", "100 kills"]
)
def test_every_acknowledged_reading_is_in_the_store_once_whatever_was_killed(
    tmp_path: Path, kills: int, seed: int
) -> None:
    rng = random.Random(seed)
    with crew_in(tmp_path) as crew:
        crew.start("hub")
        crew.start("feeder")
        crew.wait_until_it_stores()
        for _ in range(kills):
            time.sleep(rng.uniform(0.0, 0.4))
            victim = rng.choice(["hub", "hub", "feeder"])
            crew.kill(victim)
            crew.start(victim)
            if victim == "hub" and rng.random() < 0.7:
                crew.wait_until_it_stores()
        crew.wait_until_it_stores()
        crew.kill("feeder")
        appended = crew.appended()
        drain_with(crew)
        crew.kill("hub")  # even now: what was acknowledged must be there
    assert stored_energies(crew.db) == list(range(1, max(stored_energies(crew.db)) + 1))
    assert set(appended) <= set(stored_energies(crew.db))
    assert len(appended) > 20 * kills**0.5


def drain_with(crew: Crew) -> None:
    """Let a last pusher send what is still in the spool, while nothing is added."""
    from collectors.push import Pusher

    spool = Spool(crew.spool)
    pusher = Pusher(spool, crew.address, batches_per_s=1000.0, jitter=lambda low, high: 0.05)
    waiting, end = spool.figures().batches, time.monotonic() + DEADLINE_S
    while waiting:
        assert time.monotonic() < end, "the hub takes nothing any more"
        pusher.step()
        left = spool.figures().batches
        if left < waiting:  # a busy machine may be slow, as long as it gets on
            waiting, end = left, time.monotonic() + DEADLINE_S
        time.sleep(0.001)
    spool.close()


def stored_energies(db: Path) -> list[int]:
    """Every reading of the store, sorted: a double would be there twice."""
    store = Store.open(db)
    try:
        return [int(value) for (value,) in store.query("SELECT energy_mj FROM gpu_sample ORDER BY 1").iter_rows()]
    finally:
        store.close()
