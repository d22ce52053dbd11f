"""One full reading of this node, for a person who wants to see what the agent sees."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from collectors.agent_settings import AgentSettings
from collectors.host import Host, node_id
from collectors.meter import Drain, MeterMaker, gpu_meter


def once(
    settings: AgentSettings, *, make_meter: MeterMaker = gpu_meter, host: Host | None = None, wait_s: float = 10.0
) -> dict[str, Any]:
    """One full reading of this node, as JSON can hold it. Needs no hub and no spool; takes about two intervals.

    Keys: node, gpus (each with its last `sample` and `processes`), host, missing (field -> reason).
    wait_s: how long at most to wait for every GPU's first row.
    """
    host = host or Host()
    meter = make_meter(settings, None, host.boot_id())
    began_s = time.monotonic()
    host.read(0.0)
    meter.start()
    drains: list[Drain] = []
    try:
        while time.monotonic() - began_s < wait_s and not _is_complete(drains):
            meter.poll(settings.interval_s)
            time.sleep(0.02)
            if time.monotonic() - began_s >= 2.2 * settings.interval_s:
                drains.append(meter.drain())
    finally:
        meter.stop()
    reading = host.read(time.monotonic() - began_s)
    return _full_reading(settings, host, asdict(reading), drains)


def _is_complete(drains: list[Drain]) -> bool:
    """Whether there are samples, or the word that there are none."""
    return any(drain.samples is not None or drain.status is not None for drain in drains)


def _full_reading(
    settings: AgentSettings, host: Host, reading: Mapping[str, Any], drains: list[Drain]
) -> dict[str, Any]:
    last = drains[-1] if drains else None
    node = {
        "id": node_id(settings.node_id),
        "boot_id": host.boot_id(),
        "agent_version": settings.agent_version,
        "driver_version": None if last is None else last.driver_version,
        "labels": settings.labels,
        "status": "the GPU meter gave nothing in time" if last is None else last.status,
    }
    gpus = [] if last is None else [{**gpu.model_dump(mode="json")} for gpu in last.gpus]
    for position, gpu in enumerate(gpus):
        gpu["sample"] = next(iter(_rows(None if last is None else last.samples, position)[-1:]), None)
        gpu["processes"] = _rows(None if last is None else last.processes, position)
    missing = {**host.missing, **({} if last is None else last.missing)}
    return {"node": node, "gpus": gpus, "host": dict(reading), "missing": missing}


def _rows(table: Any, gpu: int) -> list[dict[str, Any]]:
    """The rows of `table` that belong to the GPU at that position."""
    if table is None:
        return []
    columns = table.model_dump(mode="json", exclude={"gpu"})
    return [
        {name: column[row] for name, column in columns.items()}
        for row, position in enumerate(table.gpu)
        if position == gpu
    ]
