"""Puts a batch together from what the meters and the host gave."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import ValidationError

from collectors.engine.drain import EngineDrain
from collectors.host import HostReading
from collectors.json_logs import log
from collectors.meter import Drain
from collectors.samples import AgentSamples, Batch, Engine, HostSamples, Node
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


@dataclass(frozen=True)
class Measured:
    """What a batch is made of. gpus, engines: None where the meter failed. missing: field -> reason, of the host."""

    gpus: Drain | None
    engines: EngineDrain | None
    host: HostSamples | None
    agent: AgentSamples | None
    missing: Mapping[str, str]


def assemble(node: Node, measured: Measured, timeline: Timeline) -> Batch:
    """The batch, its rows placed in time.

    Should a meter hand over what the wire does not take, its part is left out, and node.status or `missing` says so.
    """
    try:
        return _assemble(node, measured, timeline)
    except (ValidationError, IndexError) as problem:
        finding = str(problem).splitlines()
    said = " ".join(finding[1:3])
    log(logging.ERROR, "readings do not fit the wire; a part is left out", error=" ".join(finding[:3]))
    with suppress(ValidationError, IndexError):
        reasons = {**measured.missing, "engines": f"engine readings left out: {said}"}
        return _assemble(node, replace(measured, engines=None, missing=reasons), timeline)
    node = node.model_copy(update={"status": f"GPU readings left out: {said}"[:_MAX_TEXT]})
    with suppress(ValidationError, IndexError):
        return _assemble(node, replace(measured, gpus=None), timeline)
    return _assemble(node, replace(measured, gpus=None, engines=None), timeline)


def _assemble(node: Node, measured: Measured, timeline: Timeline) -> Batch:
    gpus, engines = measured.gpus, measured.engines
    reasons = dict(measured.missing)
    for drain in (gpus, engines):
        reasons |= {} if drain is None else drain.missing
    batch = Batch(
        agent=node.id,
        epoch=UNNUMBERED,
        sequence=1,
        node=node,
        gpus=[] if gpus is None else list(gpus.gpus),
        engines=[] if engines is None else engines.engines,
        gpu_samples=None if gpus is None else gpus.samples,
        engine_samples=None if engines is None else engines.samples,
        host_samples=measured.host,
        processes=None if gpus is None else gpus.processes,
        agent_samples=measured.agent,
        missing={name[:200]: why[:_MAX_TEXT] for name, why in sorted(reasons.items())[:_MAX_MISSING]},
    )
    return placed(batch, timeline)


def placed(batch: Batch, timeline: Timeline) -> Batch:
    """The batch with its GPU, engine and host rows placed; rows that had to be left out are logged."""
    series = {
        "gpu_samples": [] if batch.gpu_samples is None else [batch.gpus[gpu].uuid for gpu in batch.gpu_samples.gpu],
        "engine_samples": [] if batch.engine_samples is None else [
            _series_of(batch.engines[engine]) for engine in batch.engine_samples.engine
        ],
        "host_samples": [] if batch.host_samples is None else [HOST_SERIES] * len(batch.host_samples),
    }  # fmt: skip
    left_out = 0
    changes: dict[str, Any] = {}
    for name, names in series.items():
        if names:
            table, lost = timeline.place(getattr(batch, name), names)
            left_out, changes[name] = left_out + lost, table if len(table) else None
    if left_out:
        log(logging.WARNING, "the clock was set back: rows of moments already told are left out", rows=left_out)
    return batch.model_copy(update=changes)


def _series_of(engine: Engine) -> str:
    return f"engine {engine.url} {engine.label} {engine.model or ''}"
