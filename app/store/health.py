"""What the store knows of nodes and GPUs: the rows behind the Health page and `wattmix status`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.store.database import Store
from app.store.live import REPLACED

# grain: one row per node
_NODES = """
    SELECT
        node.name AS node, node.first_seen, coalesce(node.simulated, false) AS simulated, state.* EXCLUDE (node_id),
        fleet.fleet
    FROM node
    LEFT JOIN node_state AS state USING (node_id)
    LEFT JOIN (
        SELECT node_id, arg_max_null(fleet, (valid_from, known_at)) AS fleet
        FROM node_fleet WHERE valid_from <= $1 GROUP BY node_id
    ) AS fleet USING (node_id)
    ORDER BY node.name
"""

# grain: one row per GPU; the last day and the last hour from its minutes
_GPUS = """
    WITH day AS (
        SELECT
            gpu_id,
            sum(covered_s) AS covered_s,
            sum(bridged_s) AS bridged_s,
            sum(provisioned_s) AS provisioned_s,
            sum(counter_j + integral_j + interpolated_j) AS energy_j,
            sum(check_counter_j) FILTER (minute_us >= $2) AS check_counter_j,
            sum(check_integral_j) FILTER (minute_us >= $2) AS check_integral_j,
            arg_max(mean_power_w, minute_us) AS power_w,
            max(minute_us) AS last_minute_us
        FROM gpu_minute WHERE minute_us >= $1 GROUP BY gpu_id
    )
    SELECT
        node.name AS node, coalesce(node.simulated, false) AS simulated, gpu.* EXCLUDE (node_id, gpu_id),
        day.* EXCLUDE (gpu_id)
    FROM gpu
    JOIN node USING (node_id)
    LEFT JOIN day USING (gpu_id)
    ORDER BY node.name, gpu.gpu_index
"""

# grain: one row per engine heard of since $1, without those that another model has replaced at the same URL
_ENGINES = f"""
    WITH placed AS (
        SELECT
            engine_id,
            arg_max_null(uuids, (valid_from, known_at)) AS uuids,
            arg_max_null(source, (valid_from, known_at)) AS gpus_source
        FROM engine_gpus GROUP BY engine_id
    )
    SELECT
        node.name AS node, coalesce(node.simulated, false) AS simulated, state.last_seen AS node_seen,
        engine.* EXCLUDE (engine_id, node_id, labels), uuids, gpus_source
    FROM engine
    JOIN node USING (node_id)
    LEFT JOIN node_state AS state USING (node_id)
    LEFT JOIN placed USING (engine_id)
    WHERE engine.last_seen > $1 AND NOT EXISTS (FROM engine AS other WHERE {REPLACED})
    ORDER BY node.name, url, label, model
"""


def node_rows(store: Store, now: datetime) -> list[dict[str, Any]]:
    """One row per node: its last state and its fleet."""
    return list(store.query(_NODES, [now]).iter_rows(named=True))


def gpu_rows(store: Store, *, day_us: int, hour_us: int) -> list[dict[str, Any]]:
    """One row per GPU with sums over the minutes since `day_us`, its cross-check since `hour_us`."""
    return list(store.query(_GPUS, [day_us, hour_us]).iter_rows(named=True))


def engine_rows(store: Store, since: datetime) -> list[dict[str, Any]]:
    """One row per engine heard of since then, with the GPUs that it runs on by the latest knowledge."""
    return list(store.query(_ENGINES, [since]).iter_rows(named=True))
