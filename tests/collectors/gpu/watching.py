"""Watching a GpuMeter from outside: poll until something has come, with a deadline instead of a sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from collectors.gpu.process import GpuDrain, GpuMeter
from collectors.samples import GpuSamples
from tests.collectors.gpu.rig import energy_mj
from tests.fakenvml.build import HOPPER_UUID

Row = dict[str, Any]
HOPPER_MW = 600_000
STEP_MJ = HOPPER_MW // 100  # the fake's counter is set to move every 10 ms
PATIENCE_S = 20.0  # for a slow machine; nothing waits that long when all is well


class Watch:
    """A meter and everything it has drained so far."""

    def __init__(self, meter: GpuMeter) -> None:
        self.meter = meter
        self.rows: dict[str, list[Row]] = {}
        self.last = GpuDrain()

    def until(self, what: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
        """Poll and drain until `what()` is true. No poll may take longer than it was allowed."""
        end_s = time.monotonic() + patience_s
        while not what():
            assert time.monotonic() < end_s, f"not within {patience_s} s; last: {self.last}"
            began_s = time.monotonic()
            self.meter.poll(0.05)
            assert time.monotonic() - began_s < 3.0, "poll must not block"
            self.drain()

    def drain(self) -> None:
        """Take what has come."""
        self.last = self.meter.drain()
        if self.last.samples is not None:
            for row in rows_of(self.last.samples):
                self.rows.setdefault(self.last.gpus[row["gpu"]].uuid, []).append(row)

    def rows_more(self, uuid: str, count: int) -> Callable[[], bool]:
        """Whether that GPU has `count` more rows than at the time of this call."""
        have = len(self.rows.get(uuid, []))
        return lambda: len(self.rows.get(uuid, [])) >= have + count

    def status(self, uuid: str) -> str:
        """The GPU's status at the last drain."""
        return next((gpu.status for gpu in self.last.gpus if gpu.uuid == uuid), "unknown")


def rows_of(samples: GpuSamples) -> list[Row]:
    """A table's rows."""
    names = list(GpuSamples.model_fields)
    columns = [getattr(samples, name) for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def assert_hopper_is_exact(watch: Watch) -> None:
    """The healthy GPU: no hole between its rows, energy exact to one step of its counter, never zero."""
    rows = watch.rows[HOPPER_UUID]
    for row, later in pairwise(rows):
        assert abs(later["t_us"] - later["dt_us"] - row["t_us"]) < 2000
    span_us = sum(row["dt_us"] for row in rows)
    # The reading's time is taken after the counter is read: on a busy machine some ms lie between.
    assert abs(energy_mj(rows) - HOPPER_MW * span_us / 1e6) <= STEP_MJ + 0.02 * HOPPER_MW
    assert 0 not in [row["energy_mj"] for row in rows]


def alive(pid: int | None) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
