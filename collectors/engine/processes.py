"""What Linux tells of a process: its parent, session, title and the environment that it was started with."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from collectors.engine.listeners import PROC

_INITIAL_PIDS = "pid:[4026531836]"  # the kernel's fixed name of the namespace that a machine boots with
_GPU_FILES = ("/dev/nvidia", "/dev/dxg")
_DEEPEST = 64  # no tree of processes is so deep; a loop in a stale reading is


@dataclass(frozen=True)
class ProcessFacts:
    """name: of the program, at most 15 letters. began_ticks: its start, in clock ticks since boot."""

    pid: int
    parent: int
    session: int
    name: str
    began_ticks: int


class ProcessTable:
    """Processes as they are asked for; each is read once, so that one table shows one moment."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._facts: dict[int, ProcessFacts | None] = {}

    def facts(self, pid: int) -> ProcessFacts | None:
        """None when there is no such process, or no /proc."""
        if pid not in self._facts:
            self._facts[pid] = self._read(pid)
        return self._facts[pid]

    def line(self, pid: int) -> list[ProcessFacts]:
        """The process and its ancestors, the nearest first, without process 1."""
        found: list[ProcessFacts] = []
        while pid > 1 and len(found) < _DEEPEST and (facts := self.facts(pid)) is not None:
            found.append(facts)
            pid = facts.parent
        return found

    def title(self, pid: int) -> str:
        """The command line, which vLLM sets to the process's role; empty when it is not told."""
        return self._text(f"{pid}/cmdline").replace("\0", " ").strip()

    def environment(self, pid: int) -> dict[str, str] | None:
        """The environment at its start; None when this user may not see it."""
        try:
            text = (self._proc / str(pid) / "environ").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)

    def is_as_the_driver_says(self, pid: int) -> bool:
        """Whether the driver's `pid` is this one: in a container with process ids of its own it may be another's.

        There only a process that holds a GPU's device file open is believed to be the one that was meant.
        """
        return not self._has_own_pids or any(file.startswith(_GPU_FILES) for file in self._open_files(pid))

    @cached_property
    def _has_own_pids(self) -> bool:
        try:
            return str((self._proc / "self/ns/pid").readlink()) != _INITIAL_PIDS
        except OSError:
            return False

    def _open_files(self, pid: int) -> list[str]:
        try:
            return [str(file.readlink()) for file in (self._proc / str(pid) / "fd").iterdir()]
        except OSError:
            return []

    def began_us(self, pid: int) -> int | None:
        """When the process began, in UTC microseconds, to a hundredth of a second; None when it is not told."""
        facts = self.facts(pid)
        boot = re.search(r"^btime (\d+)$", self._text("stat"), re.MULTILINE)
        if facts is None or boot is None:
            return None
        return int(boot[1]) * 1_000_000 + facts.began_ticks * 1_000_000 // os.sysconf("SC_CLK_TCK")

    def _read(self, pid: int) -> ProcessFacts | None:
        # 4711 (any name) S parent group session ...: the name may hold blanks and brackets.
        head, _, tail = self._text(f"{pid}/stat").rpartition(")")
        fields = tail.split()
        try:
            return ProcessFacts(pid, int(fields[1]), int(fields[3]), head.partition("(")[2], int(fields[19]))
        except (IndexError, ValueError):
            return None

    def _text(self, name: str) -> str:
        try:
            return (self._proc / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
