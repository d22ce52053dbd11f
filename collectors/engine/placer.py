"""Remembers what was seen of GPUs, processes and ports, and says from that where engines run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from collectors.engine.gpus import Placement, Served, place
from collectors.engine.listeners import PROC
from collectors.engine.processes import ProcessTable
from collectors.samples import Gpu, Processes

# Processes on GPUs are listed every ten seconds, and a batch may fall between.
SEEN_FOR_S = 60.0
_SAME_START_US = 50_000


class Placer:
    """pids: URL -> processes that listen there, as discovery saw them last."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._gpus: Sequence[Gpu] = ()
        self._seen: dict[tuple[int, str], float] = {}
        self.pids: Mapping[str, tuple[int, ...]] = {}

    def note(self, gpus: Sequence[Gpu], processes: Processes | None, now_s: float) -> None:
        """What the GPU meter gave; without GPUs those known before count on. now_s: of a clock never set."""
        self._gpus = gpus or self._gpus
        if processes is not None:
            rows = zip(processes.gpu, processes.pid, strict=True)
            self._seen |= {(pid, gpus[gpu].uuid): now_s for gpu, pid in rows if pid is not None}
        self._seen = {key: at for key, at in self._seen.items() if now_s - at < SEEN_FOR_S}

    def placements(self, pages: Sequence[Served]) -> dict[tuple[str, str], Placement]:
        """(url, label) -> where that engine runs; a page's own pids are filled in here."""
        seen: dict[int, set[str]] = {}
        for pid, uuid in self._seen:
            seen.setdefault(pid, set()).add(uuid)
        return place(pages, self._gpus, seen, self._proc)

    def is_front(self, url: str, other: str, started_us: int) -> bool:
        """Whether `url` only passes on the page of `other`: both tell the same start of process, and it is not that of
        the process that listens at `url`, which would be known, while it is not ruled out for `other`."""
        table = ProcessTable(self._proc)
        return self._began(table, url, started_us) is False and self._began(table, other, started_us) is not False

    def _began(self, table: ProcessTable, url: str, started_us: int) -> bool | None:
        """Whether a process that listens there began at that time; None when that cannot be told."""
        starts = [began for pid in self.pids.get(url, ()) if (began := table.began_us(pid)) is not None]
        return any(abs(began - started_us) <= _SAME_START_US for began in starts) if starts else None
