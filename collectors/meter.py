"""The GPU meter as the agent uses it; collectors/gpu has the real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from collectors.agent_settings import AgentSettings
from collectors.samples import Gpu, GpuSamples, Processes


class Drain(Protocol):
    """What the GPU meter gave since the last drain; collectors/gpu makes it.

    rejected_readings, restarts: counted since the meter began. tick_p99_us: of its ticks since the last drain.
    """

    @property
    def gpus(self) -> Sequence[Gpu]: ...
    @property
    def samples(self) -> GpuSamples | None: ...
    @property
    def processes(self) -> Processes | None: ...
    @property
    def status(self) -> str | None: ...
    @property
    def missing(self) -> Mapping[str, str]: ...
    @property
    def restarts(self) -> int: ...
    @property
    def rejected_readings(self) -> int: ...
    @property
    def tick_p99_us(self) -> int | None: ...
    @property
    def driver_version(self) -> str | None: ...


class Meter(Protocol):
    """Measures the GPUs. state: what a later meter needs to go on without a gap, as JSON can hold it."""

    def start(self) -> None: ...
    def poll(self, timeout_s: float) -> None: ...
    def drain(self) -> Drain: ...
    def state(self) -> dict[str, Any]: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...


# (settings, the state stored with the last batch, boot id) -> a meter that is not started yet.
MeterMaker = Callable[[AgentSettings, dict[str, Any] | None, str | None], Meter]


def gpu_meter(settings: AgentSettings, state: dict[str, Any] | None, boot_id: str | None) -> Meter:
    """The meter of this node's GPUs."""
    from collectors.gpu.process import GpuMeter

    return GpuMeter(nvml_library=settings.nvml_library, interval_s=settings.interval_s, state=state, boot_id=boot_id)
