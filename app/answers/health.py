"""Question: which nodes and GPUs are seen, how well, which providers answer, and what is to be done about it?"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from app.answers.engine_findings import engine_findings, engine_level
from app.answers.findings import agent_findings, gpu_findings, node_findings, node_level
from app.answers.grid_sources import grid_sources
from app.answers.price_sources import price_sources
from app.answers.replicas import engine_names
from app.config import Config
from app.store.database import Store
from app.store.health import engine_rows, gpu_rows, node_rows
from app.units import kwh

DAY_S, HOUR_S = 86_400, 3_600
# An engine that was not heard of for so long is not shown any more.
ENGINE_DAYS = 7
_NO_SETTINGS = Config()


def health(store: Store, now: datetime, config: Config = _NO_SETTINGS) -> dict[str, Any]:
    """Nodes, GPUs, engines, grid providers and price sources, each with its findings: `level` (problem, warning, note),
    `what`, the `remedy`.
    """
    now_s = now.timestamp()
    rows = gpu_rows(store, day_us=int((now_s - DAY_S) * 1e6), hour_us=int((now_s - HOUR_S) * 1e6))
    gpus = [_gpu(row) for row in rows]
    counts = Counter(gpu["node"] for gpu in gpus)
    nodes = [_node(row, counts[row["node"]], now) for row in node_rows(store, now)]
    uuids = {gpu["uuid"] for gpu in gpus}
    known = engine_rows(store, now - timedelta(days=ENGINE_DAYS))
    named = zip(known, engine_names(known), strict=True)
    engines = [_engine(row, name, uuids, now) for row, name in named]
    grid = grid_sources(store, config, now)
    prices = price_sources(store, config, now)
    return {
        "generated_at": now.isoformat(), "nodes": nodes, "gpus": gpus, "engines": engines, "grid": grid,
        "prices": prices,
    }  # fmt: skip


def _node(row: dict[str, Any], gpu_count: int, now: datetime) -> dict[str, Any]:
    agent = json.loads(row["agent"] or "{}")
    seen: datetime | None = row["last_seen"]
    age_s = None if seen is None else (now - seen).total_seconds()
    # By the node's own clock: how old its newest sample was when the batch arrived.
    lag_s = None
    if seen is not None and row["last_sample_us"] is not None:
        lag_s = seen.timestamp() + row["skew_s"] - row["last_sample_us"] / 1e6
    node = {
        "node": row["node"],
        "simulated": row["simulated"],
        "fleet": row["fleet"],
        "last_seen": seen.isoformat() if seen else None,
        "age_s": age_s,
        "lag_s": lag_s,
        "skew_s": row["skew_s"],
        "agent_version": row["agent_version"],
        "driver_version": row["driver_version"],
        "boot_id": row["boot_id"],
        "status": row["status"],
        "gpus": gpu_count,
        "late_rows": row["late_rows"] or 0,
        "skipped_batches": row["skipped_batches"] or 0,
        "labels": json.loads(row["labels"] or "{}"),
        "missing": json.loads(row["missing"] or "{}"),
        "twin_seen": row["twin_seen"].isoformat() if row["twin_seen"] else None,
        "agent": agent,
    }
    found = [*node_findings(node, now), *agent_findings(agent)]
    return node | {"state": node_level(node, found), "findings": found}


def _gpu(row: dict[str, Any]) -> dict[str, Any]:
    provisioned_s = row["provisioned_s"]
    coverage = row["covered_s"] / provisioned_s if provisioned_s else None
    # Without a second of known energy the sum is not 0 J, it is unknown.
    known_s = (row["covered_s"] or 0.0) + (row["bridged_s"] or 0.0)
    integral_j = row["check_integral_j"]
    divergence = row["check_counter_j"] / integral_j - 1 if integral_j else None
    gpu = {
        "node": row["node"],
        "simulated": row["simulated"],
        "gpu": row["gpu_index"],
        "uuid": row["uuid"],
        "name": row["name"],
        "status": row["status"],
        "energy_method": row["energy_method"],
        "energy_scope": row["energy_scope"],
        "mig_enabled": row["mig_enabled"],
        "power_w": row["power_w"],
        "power_limit_w": None if row["power_limit_mw"] is None else row["power_limit_mw"] / 1e3,
        "energy_day_kwh": kwh(row["energy_j"]) if known_s else None,
        "coverage_day": coverage,
        "gap_day_s": None if provisioned_s is None else provisioned_s - row["covered_s"],
        "divergence_hour": divergence,
    }
    return gpu | {"findings": gpu_findings(gpu)}


def _engine(row: dict[str, Any], name: str, measured: set[str], now: datetime) -> dict[str, Any]:
    gpus: list[str] | None = row["uuids"]
    node_seen: datetime | None = row["node_seen"]
    engine = {
        "node": row["node"],
        "simulated": row["simulated"],
        "engine": name,
        "url": row["url"],
        "label": row["label"],
        "model": row["model"],
        "kind": row["kind"],
        "version": row["version"],
        "status": row["status"],
        "gpus": gpus,
        "gpus_source": row["gpus_source"],
        "gpus_not_measured": None if gpus is None else [uuid for uuid in gpus if uuid not in measured],
        "last_seen": row["last_seen"].isoformat(),
        "age_s": (now - row["last_seen"]).total_seconds(),
        "node_age_s": None if node_seen is None else (now - node_seen).total_seconds(),
    }
    return engine | {"state": engine_level(engine), "findings": engine_findings(engine)}
