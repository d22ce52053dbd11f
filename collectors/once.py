"""One full reading of this node, for a person who wants to see what the agent sees."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from collectors.agent_settings import AgentSettings
from collectors.engine.drain import EngineDrain
from collectors.host import Host, node_id
from collectors.meter import Drain, EngineMeterMaker, MeterMaker, engine_meter, gpu_meter
from collectors.samples import EngineSamples, GpuSamples, Processes


def once(
    settings: AgentSettings,
    *,
    make_meter: MeterMaker = gpu_meter,
    make_engine_meter: EngineMeterMaker = engine_meter,
    host: Host | None = None,
    wait_s: float = 10.0,
) -> dict[str, Any]:
    """One full reading of this node, as JSON can hold it. Needs no hub and no spool; takes about two intervals.

    Keys: node, gpus (each with its last `sample` and `processes`), engines (each with its last `sample`), host,
    missing (field -> reason). wait_s: how long at most to wait for every GPU's first row and every engine's page.
    """
    host = host or Host()
    meter = make_meter(settings, None, host.boot_id())
    # Twice within the time that the GPUs need.
    often = settings.model_copy(update={"scrape_every_s": settings.interval_s})
    engines = make_engine_meter(often, None, lambda: time.time_ns() // 1000)
    began_s = time.monotonic()
    host.read(0.0)
    meter.start()
    engines.start()
    last: Drain | None = None
    try:
        while time.monotonic() - began_s < wait_s and not (_is_complete(last) and engines.is_settled):
            meter.poll(settings.interval_s)
            time.sleep(0.02)
            if not _is_complete(last) and time.monotonic() - began_s >= 2.2 * settings.interval_s:
                last = meter.drain()
        seen = engines.drain(() if last is None else last.gpus, None if last is None else last.processes)
    finally:
        engines.stop()
        meter.stop()
    reading = host.read(time.monotonic() - began_s)
    return {
        "node": _node(settings, host, last),
        "gpus": [] if last is None else _gpus(last),
        "engines": _engines(seen),
        "host": asdict(reading),
        "missing": {**host.missing, **({} if last is None else last.missing), **seen.missing},
    }


def _is_complete(drain: Drain | None) -> bool:
    """Whether there are samples, or the word that there are none."""
    return drain is not None and (drain.samples is not None or drain.status is not None)


def _node(settings: AgentSettings, host: Host, drain: Drain | None) -> dict[str, Any]:
    return {
        "id": node_id(settings.node_id),
        "boot_id": host.boot_id(),
        "agent_version": settings.agent_version,
        "driver_version": None if drain is None else drain.driver_version,
        "labels": settings.labels,
        "status": "the GPU meter gave nothing in time" if drain is None else drain.status,
    }


def _gpus(drain: Drain) -> list[dict[str, Any]]:
    gpus = [gpu.model_dump(mode="json") for gpu in drain.gpus]
    for position, gpu in enumerate(gpus):
        gpu["sample"] = next(iter(_rows(drain.samples, "gpu", position)[-1:]), None)
        gpu["processes"] = _rows(drain.processes, "gpu", position)
    return gpus


def _engines(drain: EngineDrain) -> list[dict[str, Any]]:
    engines = [engine.model_dump(mode="json") for engine in drain.engines]
    for position, engine in enumerate(engines):
        engine["sample"] = next(iter(_rows(drain.samples, "engine", position)[-1:]), None)
    return engines


def _rows(table: GpuSamples | Processes | EngineSamples | None, owner: str, position: int) -> list[dict[str, Any]]:
    """The rows of `table` that belong to the GPU or engine at that position."""
    if table is None:
        return []
    columns = table.model_dump(mode="json", exclude={owner})
    return [
        {name: column[row] for name, column in columns.items()}
        for row, at in enumerate(getattr(table, owner))
        if at == position
    ]
