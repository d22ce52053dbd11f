"""A process that sends a known stream through the real spool and pusher, and can be killed at any instant.

    python -m tests.exactly_once.feeder SPOOL HUB JOURNAL

Batch k has one GPU row whose energy is k mJ. k is kept in the spool, in the transaction that stores the batch; after
that the journal gets the line k. So whatever the journal holds must end up in the hub's store, once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from collectors.push import Pusher
from collectors.samples import Batch, Gpu, GpuSamples, Node
from collectors.spool import Spool

EVERY_S = 0.03


def batch_of(k: int) -> Batch:
    now_us = time.time_ns() // 1000
    nothing = [None]
    samples = GpuSamples(
        gpu=[0], t_us=[now_us], dt_us=[1_000_000], energy_mj=[k], energy_method=["counter"], integral_mj=nothing,
        power_instant_mw=nothing, power_average_mw=nothing, utilisation_pct=nothing, memory_utilisation_pct=nothing,
        memory_used_bytes=nothing, temperature_c=nothing, sm_clock_mhz=nothing, memory_clock_mhz=nothing,
        power_cap=nothing, thermal_slowdown=nothing, hardware_slowdown=nothing,
    )  # fmt: skip
    gpu = Gpu(uuid="0000-feeder", name="Test card", index=0, energy_method="counter")
    node = Node(id="feeder", agent_version="test", sent_at_us=now_us)
    return Batch(agent="feeder", epoch="0" * 32, sequence=1, node=node, gpus=[gpu], gpu_samples=samples)


def main(spool_path: str, hub: str, journal_path: str) -> None:
    spool = Spool(Path(spool_path))
    pusher = Pusher(spool, hub, batches_per_s=400.0, read_timeout_s=5.0, jitter=lambda low, high: 0.05)
    threading.Thread(target=pusher.run, daemon=True).start()
    k = int(spool.state("k") or 0)
    with Path(journal_path).open("a", encoding="ascii") as journal:
        while True:
            k += 1
            spool.append(batch_of(k), {"k": k})
            journal.write(f"{k}\n")
            journal.flush()
            os.fsync(journal.fileno())
            pusher.wake()
            time.sleep(EVERY_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
