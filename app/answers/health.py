"""Question: which nodes and GPUs are seen, how well, and what should be done about the others?"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any

from app.answers.findings import agent_findings, gpu_findings, node_findings, node_level
from app.store.database import Store
from app.store.health import gpu_rows, node_rows
from app.units import kwh

DAY_S, HOUR_S = 86_400, 3_600


def health(store: Store, now: datetime) -> dict[str, Any]:
    """Nodes and GPUs with what was found of each: `level` (problem, warning, note), `what`, and the `remedy`."""
    now_s = now.timestamp()
    rows = gpu_rows(store, day_us=int((now_s - DAY_S) * 1e6), hour_us=int((now_s - HOUR_S) * 1e6))
    gpus = [_gpu(row) for row in rows]
    counts = Counter(gpu["node"] for gpu in gpus)
    nodes = [_node(row, counts[row["node"]], now) for row in node_rows(store)]
    return {"generated_at": now.isoformat(), "nodes": nodes, "gpus": gpus}


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
