"""The node around its GPUs: who it is, its processors' and memory's energy, its memory and load."""

from __future__ import annotations

import os
import platform
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from collectors.rapl import POWERCAP, Rapl

PROC = Path("/proc")
_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))


@dataclass(frozen=True)
class HostReading:
    """What one look at the node gave; energies are those since the look before, None is unknown."""

    cpu_energy_mj: int | None
    dram_energy_mj: int | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    load_1m_milli: int | None


class Host:
    """Reads the node. powercap, proc: where the kernel's files are (for tests). Nothing here raises.

    missing: field -> why it is None on this node, and what to do about it; up to date after each `read`.
    """

    def __init__(self, *, powercap: Path = POWERCAP, proc: Path = PROC) -> None:
        self._proc = proc
        self._rapl = Rapl(powercap)
        self._notes: dict[str, str] = {}
        self.missing: dict[str, str] = {}

    def read(self, pause_s: float) -> HostReading:
        """The node now; pause_s: seconds since the last call, by a clock that is never set."""
        cpu_mj, dram_mj = self._rapl.read(pause_s)
        used, total = self._memory()
        load = self._load_1m_milli()
        self.missing = {name: reason for name, reason in self._notes.items() if reason} | self._rapl.missing
        return HostReading(cpu_mj, dram_mj, used, total, load)

    def boot_id(self) -> str | None:
        """An id that changes at each boot of the kernel; None where the system has none."""
        try:
            return (self._proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:100] or None
        except (OSError, ValueError):
            return None

    def _memory(self) -> tuple[int | None, int | None]:
        """(used, total) bytes: total less what the kernel calls available, so caches do not count as used."""
        try:
            text = (self._proc / "meminfo").read_text(encoding="ascii")
            sizes = {name: int(kib) * 1024 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
            total, available = sizes.get("MemTotal"), sizes.get("MemAvailable")
        except (OSError, ValueError):
            total = available = None
        self._note("memory_total_bytes", total, f"{platform.system()} has no {self._proc / 'meminfo'} to read it from")
        self._note("memory_used_bytes", available, f"{self._proc / 'meminfo'} does not say what is available")
        used = None if total is None or available is None else max(total - available, 0)
        return used, total

    def _load_1m_milli(self) -> int | None:
        load: float | None
        try:
            load = float((self._proc / "loadavg").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            load = os.getloadavg()[0] if self._proc == PROC and hasattr(os, "getloadavg") else None
        self._note("load_1m_milli", load, f"{platform.system()} tells no load average")
        return None if load is None else round(load * 1000)

    def _note(self, name: str, value: float | None, reason: str) -> None:
        self._notes[name] = reason if value is None else ""


def node_id(configured: str | None = None) -> str:
    """The node's stable name: the configured one, else the host name.

    The host name and not /etc/machine-id: people know their nodes by it, it survives a new installation, and images
    that are copied to many machines often share one machine-id. Where host names are not unique or not stable, as in
    most containers, configure the name.
    """
    return (configured or socket.gethostname()).strip() or "unnamed"


def name_warning(configured: str | None) -> str | None:
    """Why the default name of this node may not last, or None."""
    if configured or not any(mark.exists() for mark in _CONTAINER_MARKS):
        return None
    return "the agent runs in a container, whose host name may change with each start: configure node_id"
