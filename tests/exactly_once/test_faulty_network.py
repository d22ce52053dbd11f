"""Exactly once through a network that fails, duplicates and loses answers after the commit."""

from __future__ import annotations

import time
from pathlib import Path

from collectors.push import Pusher
from collectors.spool import Spool
from tests.exactly_once.feeder import batch_of
from tests.exactly_once.proxy import FAULTS, faulty_proxy
from tests.exactly_once.test_kills import DEADLINE_S, stored_energies
from tests.hub_process import running

BATCHES = 60
WAIT_S = 0.4


def test_every_reading_is_in_the_store_once_whatever_the_network_does(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.db")
    for k in range(1, BATCHES + 1):
        spool.append(batch_of(k))
    with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
        with faulty_proxy(hub.address, seed=3, late_s=2 * WAIT_S) as (address, played):
            pusher = Pusher(spool, address, batches_per_s=1000.0, read_timeout_s=WAIT_S, jitter=lambda low, high: 0.01)
            end = time.monotonic() + DEADLINE_S
            while spool.oldest() is not None:
                assert time.monotonic() < end
                time.sleep(min(pusher.step() or 0.0, 0.05))
        assert hub.stop() == 0
    assert set(played) == set(FAULTS)
    assert stored_energies(tmp_path / "s.duckdb") == list(range(1, BATCHES + 1))
    assert spool.figures().rejected_batches == 0
    spool.close()
