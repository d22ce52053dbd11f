"""What the agent itself costs: CPU time and memory of its process and of the meter's child."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


class OwnUsage:
    """Measures this process and its living children. CPU time of ended children counts once they are reaped."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._last_ms: int | None = self._cpu_ms()

    def cpu_ms(self) -> int:
        """Milliseconds of CPU since the last call."""
        before, self._last_ms = self._last_ms, self._cpu_ms()
        # A child that was killed and not reaped yet takes its time with it for a moment.
        return max(self._last_ms - (before or 0), 0)

    def memory_bytes(self) -> int | None:
        """Resident memory of agent and children; None where the system does not tell. Shared pages count twice."""
        sizes = [_resident_bytes(self._proc / str(pid)) for pid in [os.getpid(), *self._children()]]
        return None if sizes[0] is None else sum(size for size in sizes if size is not None)

    def _cpu_ms(self) -> int:
        times = os.times()
        own_s = times.user + times.system + times.children_user + times.children_system
        return round(own_s * 1000) + sum(_cpu_ms(self._proc / str(pid)) for pid in self._children())

    def _children(self) -> list[int]:
        try:
            lists = [path.read_text(encoding="ascii") for path in (self._proc / "self/task").glob("*/children")]
        except OSError:
            return []
        return [int(pid) for text in lists for pid in text.split()]


def _cpu_ms(process: Path) -> int:
    try:
        # The name in brackets may hold anything; user and system time are fields 14 and 15.
        fields = (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0


def _resident_bytes(process: Path) -> int | None:
    try:
        return int((process / "statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
