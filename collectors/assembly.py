"""Puts a batch together from what the meter and the host gave."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from collectors.host import HostReading
from collectors.json_logs import log
from collectors.meter import Drain
from collectors.samples import AgentSamples, Batch, HostSamples, Node
from collectors.timeline import Timeline

UNNUMBERED = "0" * 32  # the spool puts its epoch and sequence here
_MAX_TEXT = 500
_MAX_MISSING = 200
HOST_SERIES = "host"


class HostRows:
    """Host readings of the batch in the making, one a second."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, HostReading]] = []

    def add(self, t_us: int, dt_us: int, reading: HostReading) -> None:
        """t_us: UTC microseconds; dt_us: microseconds since the reading before."""
        self._rows.append((t_us, dt_us, reading))

    def take(self) -> HostSamples | None:
        """The rows so far, and begin anew; None without rows."""
        rows, self._rows = self._rows, []
        if not rows:
            return None
        readings = [asdict(reading) for _, _, reading in rows]
        columns = {name: [reading[name] for reading in readings] for name in readings[0]}
        return HostSamples(t_us=[t_us for t_us, _, _ in rows], dt_us=[dt_us for _, dt_us, _ in rows], **columns)


def assemble(
    node: Node,
    drain: Drain | None,
    host: HostSamples | None,
    agent: AgentSamples | None,
    missing: Mapping[str, str],
    timeline: Timeline,
) -> Batch:
    """The batch, its rows placed in time. missing: field -> reason, of the host; the drain's are added.

    Should the meter hand over what the wire does not take, the GPU part is left out and node.status says so.
    """
    try:
        return _assemble(node, drain, host, agent, missing, timeline)
    except (ValidationError, IndexError) as problem:
        finding = str(problem).splitlines()
        log(logging.ERROR, "the GPU readings do not fit the wire; they are left out", error=" ".join(finding[:3]))
        node = node.model_copy(update={"status": f"GPU readings left out: {' '.join(finding[1:3])}"[:_MAX_TEXT]})
        return _assemble(node, None, host, agent, missing, timeline)


def _assemble(
    node: Node,
    drain: Drain | None,
    host: HostSamples | None,
    agent: AgentSamples | None,
    missing: Mapping[str, str],
    timeline: Timeline,
) -> Batch:
    gpus = [] if drain is None else list(drain.gpus)
    samples = None if drain is None else drain.samples
    reasons = {**missing, **({} if drain is None else drain.missing)}
    batch = Batch(
        agent=node.id,
        epoch=UNNUMBERED,
        sequence=1,
        node=node,
        gpus=gpus,
        gpu_samples=samples,
        host_samples=host,
        processes=None if drain is None else drain.processes,
        agent_samples=agent,
        missing={name[:200]: why[:_MAX_TEXT] for name, why in sorted(reasons.items())[:_MAX_MISSING]},
    )
    return _placed(batch, timeline)


def _placed(batch: Batch, timeline: Timeline) -> Batch:
    """The batch with its GPU and host rows placed; rows that had to be left out are logged."""
    left_out = 0
    changes: dict[str, Any] = {}
    if batch.gpu_samples is not None:
        series = [batch.gpus[gpu].uuid for gpu in batch.gpu_samples.gpu]
        table, lost = timeline.place(batch.gpu_samples, series)
        left_out, changes["gpu_samples"] = left_out + lost, table if len(table) else None
    if batch.host_samples is not None:
        rows, lost = timeline.place(batch.host_samples, [HOST_SERIES] * len(batch.host_samples))
        left_out, changes["host_samples"] = left_out + lost, rows if len(rows) else None
    if left_out:
        log(logging.WARNING, "the clock was set back: rows of moments already told are left out", rows=left_out)
    return batch.model_copy(update=changes)
