"""Which GPUs an engine runs on: as configured, else by its processes, else by its environment, else not known.

Never a guess: where none of the three tells, the GPUs are None with the reason in words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from collectors.engine.environment import NotTold, visible_gpus
from collectors.engine.listeners import PROC
from collectors.engine.processes import ProcessTable
from collectors.engine.targets import is_index
from collectors.samples import Gpu

Source = Literal["config", "processes", "environment"]

# A shell or a service manager starts many things: what else it started is not part of the engine.
_STARTERS = frozenset({"bash", "sh", "dash", "zsh", "fish", "ksh", "tmux", "tmux: server", "screen", "systemd", "init",
                       "tini", "dumb-init", "supervisord", "s6-svscan", "runsvdir", "sshd", "cron", "containerd-shim",
                       "dockerd", "conmon", "make", "slurmstepd"})  # fmt: skip
# vLLM names its processes VLLM::EngineCore_DP1, VLLM::Worker_DP1_TP0; the number is the engine's label.
_RANK = re.compile(r"VLLM::\w*?_DP(\d+)(?![0-9])")
_REMEDY = "set `gpus` of this engine in the configuration"


@dataclass(frozen=True)
class Served:
    """One page: its engines' labels, its GPUs as configured, and the processes that listen there, where known."""

    url: str
    labels: tuple[str, ...]
    configured: tuple[str, ...] | None = None
    pids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Placement:
    """gpus: UUIDs, None when unknown for the reason given."""

    gpus: tuple[str, ...] | None
    source: Source | None = None
    reason: str | None = None


def place(
    pages: Sequence[Served], gpus: Sequence[Gpu], seen: Mapping[int, Collection[str]], proc: Path = PROC
) -> dict[tuple[str, str], Placement]:
    """(url, label) -> where that engine runs.

    seen: pid -> UUIDs of the GPUs on which the driver saw that process.
    """
    table = ProcessTable(proc)
    seen = {pid: uuids for pid, uuids in seen.items() if table.is_as_the_driver_says(pid)}
    listening = {pid: page.url for page in pages for pid in page.pids}
    owned = _owned(table, listening, seen)
    placed: dict[tuple[str, str], Placement] = {}
    for page in pages:
        if page.configured is not None:
            placed |= _configured(page, page.configured, gpus)
        elif page.pids:
            pids = owned.get(page.url) or _siblings(table, page, listening, seen)
            placed |= _by_pids(table, page, pids, seen) if pids else _by_environment(table, page, gpus, bool(seen))
        else:
            reason = f"the process that listens there cannot be seen; run the agent beside it as root, or {_REMEDY}"
            placed |= _all(page, Placement(None, None, reason))
    return placed


def _all(page: Served, placement: Placement) -> dict[tuple[str, str], Placement]:
    return {(page.url, label): placement for label in page.labels}


def _configured(page: Served, named: tuple[str, ...], gpus: Sequence[Gpu]) -> dict[tuple[str, str], Placement]:
    """Several engines behind one page get equal parts of the list, in the order of their labels, as vLLM deals."""
    by_index = {str(gpu.index): gpu.uuid for gpu in gpus}
    uuids: list[str] = []
    for name in named:
        uuid = by_index.get(str(int(name))) if is_index(name) else name
        if uuid is None:
            return _all(
                page, Placement(None, None, f"the configuration names GPU {name}, which this node does not have")
            )
        uuids.append(uuid)
    share, rest = divmod(len(uuids), max(len(page.labels), 1))
    if rest:
        reason = f"{len(page.labels)} engines cannot share {len(uuids)} configured GPUs equally"
        return _all(page, Placement(None, None, reason))
    parts = {label: uuids[share * n : share * (n + 1)] for n, label in enumerate(sorted(page.labels, key=_rank_order))}
    return {(page.url, label): Placement(tuple(part), "config") for label, part in parts.items()}


def _rank_order(label: str) -> tuple[int, str]:
    return (int(label), "") if is_index(label) else (-1, label)


def _owned(
    table: ProcessTable, listening: Mapping[int, str], seen: Mapping[int, Collection[str]]
) -> dict[str, set[int]]:
    """URL -> processes seen on GPUs whose nearest listening ancestor, or itself, serves that URL."""
    found: dict[str, set[int]] = {}
    for pid in seen:
        url = next((listening[one.pid] for one in table.line(pid) if one.pid in listening), None)
        if url is not None:
            found.setdefault(url, set()).add(pid)
    return found


def _siblings(
    table: ProcessTable, page: Served, listening: Mapping[int, str], seen: Mapping[int, Collection[str]]
) -> set[int]:
    """Processes seen on GPUs that the listener's own launcher started beside it, as vLLM's and TGI's launchers do.

    The launcher is of the listener's session, is no shell or service manager, and started no other engine's listener.
    """
    line = next((line for pid in page.pids if (line := table.line(pid))), [])
    others = {one.pid for pid, url in listening.items() if url != page.url for one in table.line(pid)}
    free = [pid for pid in seen if not any(one.pid in listening for one in table.line(pid))]
    for launcher in line[1:]:
        if launcher.session != line[0].session or launcher.name in _STARTERS or launcher.pid in others:
            return set()
        started = {pid for pid in free if launcher.pid in {one.pid for one in table.line(pid)}}
        if started:
            return started
    return set()


def _by_pids(
    table: ProcessTable, page: Served, pids: Collection[int], seen: Mapping[int, Collection[str]]
) -> dict[tuple[str, str], Placement]:
    if len(page.labels) == 1:
        uuids = {uuid for pid in pids for uuid in seen[pid]}
        return _all(page, Placement(tuple(sorted(uuids)), "processes"))
    ranks: dict[str, set[str]] = {}
    for pid in pids:
        rank = next((match[1] for one in table.line(pid) if (match := _RANK.search(table.title(one.pid)))), None)
        if rank is None or rank not in page.labels:
            reason = f"its {len(page.labels)} engines' processes cannot be told apart; {_REMEDY}"
            return _all(page, Placement(None, None, reason))
        ranks.setdefault(rank, set()).update(seen[pid])
    silent = Placement(None, None, "the driver shows no process of this engine yet")
    return {
        (page.url, label): Placement(tuple(sorted(ranks[label])), "processes") if label in ranks else silent
        for label in page.labels
    }


def _by_environment(
    table: ProcessTable, page: Served, gpus: Sequence[Gpu], driver_tells: bool
) -> dict[tuple[str, str], Placement]:
    environment = next((found for pid in page.pids if (found := table.environment(pid)) is not None), None)
    name = facts.name if (facts := table.facts(page.pids[0])) is not None else "which has ended"
    unseen = "none of the processes on GPUs is its" if driver_tells else "the driver shows no processes on GPUs"
    try:
        if environment is None:
            raise NotTold("its environment may not be read; run the agent as root")
        if len(page.labels) > 1:
            raise NotTold(f"its environment does not tell {len(page.labels)} engines apart")
        return _all(page, Placement(visible_gpus(environment, gpus), "environment"))
    except NotTold as problem:
        told = f"{unseen} (process {page.pids[0]}, {name}), and {problem}; or {_REMEDY}"
        return _all(page, Placement(None, None, told))
