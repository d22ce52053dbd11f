"""The meters as the agent uses them; collectors/gpu and collectors/engine have the real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from collectors.agent_settings import AgentSettings
from collectors.engine.discovery import Discovery
from collectors.engine.meter import EngineMeter
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


# (settings, the state stored with the last batch, the node's clock) -> a meter that is not started yet.
EngineMeterMaker = Callable[[AgentSettings, dict[str, Any] | None, Callable[[], int]], EngineMeter]


def engine_meter(settings: AgentSettings, state: dict[str, Any] | None, utc_us: Callable[[], int]) -> EngineMeter:
    """The meter of the engines that are configured or, unless that is off, found on this node."""
    hub = urlsplit(settings.hub)
    port = hub.port or (443 if hub.scheme == "https" else 80)
    discovery = Discovery(settings.engines, avoid=[(hub.hostname or "", port)], probing=settings.discover_engines)
    return EngineMeter(
        settings.engines,
        discovery=discovery if settings.engines or settings.discover_engines else None,
        scrape_every_s=settings.scrape_every_s,
        state=state,
        utc_us=utc_us,
    )
