"""CTEs of spans of time: the fleet that a node was in, and the GPUs that an engine ran on."""

from __future__ import annotations

from app.store.ingest import MINUTE_US

# later than any time in the store
FOREVER_US = 2**63 - 1

# grain: one row per node and span of time in one fleet or none, by the knowledge up to $known_at; they cover all time
FLEET_SPANS = f"""
    fleet_span AS (
        SELECT node_id, fleet, from_us, coalesce(lead(from_us) OVER later, {FOREVER_US}) AS to_us
        FROM (
            SELECT node_id, NULL AS fleet, -1 AS from_us FROM node
            UNION ALL
            SELECT node_id, fleet, epoch_us(valid_from) FROM (
                SELECT DISTINCT ON (node_id, valid_from) node_id, fleet, valid_from
                FROM node_fleet WHERE known_at <= $known_at ORDER BY node_id, valid_from, known_at DESC
            )
        )
        WINDOW later AS (PARTITION BY node_id ORDER BY from_us)
    )"""

# grain: one row per engine and span of time on the same GPUs, by the latest knowledge; uuids NULL: not known. Edges are
# whole minutes: the minute of a change belongs to what it changes to, so an engine has one set of GPUs in each.
ENGINE_SPANS = f"""
    engine_span AS (
        SELECT * FROM (
            SELECT
                engine_id,
                uuids,
                epoch_us(valid_from) // {MINUTE_US} * {MINUTE_US} AS from_us,
                coalesce(lead(epoch_us(valid_from) // {MINUTE_US} * {MINUTE_US}) OVER later, {FOREVER_US}) AS to_us
            FROM (
                SELECT DISTINCT ON (engine_id, valid_from)
                    engine_id, CASE WHEN len(uuids) > 0 THEN list_distinct(uuids) END AS uuids, valid_from
                FROM engine_gpus ORDER BY engine_id, valid_from, known_at DESC
            )
            WINDOW later AS (PARTITION BY engine_id ORDER BY valid_from)
        )
        WHERE from_us < to_us
    )"""

# grain: one row per engine, GPU and span of time
GPU_SPANS = f"""
    {ENGINE_SPANS},
    gpu_span AS (
        SELECT engine_id, gpu_id, replica_gpus, from_us, to_us
        FROM (SELECT *, unnest(uuids) AS uuid, len(uuids) AS replica_gpus FROM engine_span)
        JOIN gpu USING (uuid)
    )"""

# grain: one row per engine and span of time: of what kind its replica was. uuids, gpu_name NULL: not known
REPLICA_SPANS = f"""
    {ENGINE_SPANS},
    replica_span AS (
        SELECT
            engine_id,
            from_us,
            to_us,
            any_value(uuids) AS uuids,
            any_value(len(uuids)) AS replica_gpus,
            string_agg(DISTINCT gpu.name, ' + ' ORDER BY gpu.name) AS gpu_name
        FROM (SELECT *, unnest(coalesce(uuids, [NULL])) AS uuid FROM engine_span)
        LEFT JOIN gpu USING (uuid)
        GROUP BY engine_id, from_us, to_us
    )"""
