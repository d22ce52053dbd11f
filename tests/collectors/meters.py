"""A GPU meter without GPUs: one row a poll, scripted faults."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from collectors.agent_settings import AgentSettings
from collectors.samples import Gpu, GpuSamples, Processes
from tests.collectors.batches import UUID, gpu_rows


@dataclass
class FakeDrain:
    gpus: list[Gpu]
    samples: GpuSamples | None
    processes: Processes | None = None
    status: str | None = None
    missing: dict[str, str] = field(default_factory=dict)
    restarts: int = 0
    rejected_readings: int = 2
    tick_p99_us: int | None = 1500
    driver_version: str | None = "580.95.05"


class FakeMeter:
    """One GPU of 300 W. Its state is the number of rows that it has drained, so that a test can add up."""

    def __init__(self, state: dict[str, Any] | None = None, fails: frozenset[str] = frozenset()) -> None:
        self.state_given = state
        self.rows_told: int = (state or {}).get("rows", 0)
        self.fails = fails
        self.calls: list[str] = []
        self._times: list[int] = []
        self._dts: list[int] = []
        self._last = time.monotonic_ns()
        self._paused = False
        self.extra_rows = 0

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fails:
            raise RuntimeError(f"{name} is broken")

    def start(self) -> None:
        self._call("start")

    def poll(self, timeout_s: float) -> None:
        self._call("poll")
        now = time.monotonic_ns()
        dt_us, self._last = max((now - self._last) // 1000, 1), now
        if not self._paused:
            self._times.append(time.time_ns() // 1000)
            self._dts.append(dt_us)

    def drain(self) -> FakeDrain:
        self._call("drain")
        samples = gpu_rows(self._times) if self._times else None
        if samples is not None:
            samples = samples.model_copy(update={"dt_us": self._dts, "gpu": [self.extra_rows] * len(self._times)})
        self.rows_told += len(self._times)
        self._times, self._dts = [], []
        gpus = [Gpu(uuid=UUID, name="Fake", index=0)]
        return FakeDrain(gpus, samples, status="paused" if self._paused else None)

    def state(self) -> dict[str, Any]:
        self._call("state")
        return {"rows": self.rows_told}

    def pause(self) -> None:
        self._call("pause")
        self._paused = True

    def resume(self) -> None:
        self._call("resume")
        self._paused = False

    def stop(self) -> None:
        self._call("stop")


def fake_meter(_settings: AgentSettings, state: dict[str, Any] | None, _boot_id: str | None) -> FakeMeter:
    return FakeMeter(state)
