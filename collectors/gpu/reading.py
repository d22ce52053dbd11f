"""What the child tells the agent, as plain tuples: they travel as JSON lists and need no pydantic in the child."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """One GPU at one instant. t_us: wall clock, UTC; mono_us: monotonic clock. None: not measured.

    counter_mj: the driver's cumulative energy. event_reasons: NVML's bits of why the clocks are held down.
    """

    uuid: str
    t_us: int
    mono_us: int
    counter_mj: int | None = None
    power_instant_mw: int | None = None
    power_average_mw: int | None = None
    utilisation_pct: int | None = None
    memory_utilisation_pct: int | None = None
    memory_used_bytes: int | None = None
    temperature_c: int | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    event_reasons: int | None = None


class Facts(NamedTuple):
    """What seldom changes about a GPU. power_max_mw: the highest limit the board accepts.

    status: ok, lost, suspended, or in words why it is not read. missing: field -> why, in words.
    """

    uuid: str
    name: str
    nvml_index: int
    pci_bus_id: str | None = None
    power_limit_mw: int | None = None
    power_max_mw: int | None = None
    memory_total_bytes: int | None = None
    energy_scope: str = "gpu"
    mig_enabled: bool | None = None
    persistence_mode: bool | None = None
    status: str = "ok"
    missing: dict[str, str] = {}  # noqa: RUF012  a default that nothing writes to


class Process(NamedTuple):
    """A process seen on a GPU; memory_used_bytes is None where the driver does not tell."""

    uuid: str
    t_us: int
    pid: int
    memory_used_bytes: int | None = None
