"""Stretches of time in which GPUs were there without a break: what a billing increment rounds up."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from app.store.gpu_rollup import HOUR_US
from app.store.ingest import MINUTE_US
from app.store.reader import Reader
from app.store.spans import FLEET_SPANS

# A stretch that began before the time that is asked for is followed back so far.
LOOK_BACK = timedelta(days=31)
# What the arithmetic of an hour leaves over is not a break.
_WHOLE_HOUR_S = 3600 - 1e-3

# grain: one row per GPU and stretch. Whole hours are taken as they are, of the others the minutes.
# $1: the fleet, $from, $first, $last: looked back to, asked from and up to
_STRETCHES = f"""
    WITH {FLEET_SPANS},
    place AS (
        SELECT gpu_id, from_us, to_us FROM gpu JOIN fleet_span USING (node_id)
        WHERE fleet = $fleet AND from_us < $last AND to_us > $from
    ),
    hour AS (
        SELECT gpu_id, hour_us, provisioned_s, provisioned_s >= {_WHOLE_HOUR_S} AND is_inside AS is_whole
        FROM (
            SELECT *, hour_us >= greatest(from_us, $from) AND hour_us <= least(to_us, $last) - {HOUR_US} AS is_inside
            FROM gpu_hour JOIN place USING (gpu_id)
            WHERE hour_us > $from - {HOUR_US} AND hour_us < $last
              AND hour_us > from_us - {HOUR_US} AND hour_us < to_us
        )
    ),
    piece AS (
        SELECT gpu_id, hour_us AS start_us, hour_us + {HOUR_US} AS end_us, provisioned_s FROM hour WHERE is_whole
        UNION ALL
        SELECT gpu_id, minute_us, minute_us + {MINUTE_US}, minute.provisioned_s
        FROM (
            SELECT DISTINCT gpu_id, unnest(range(hour_us, hour_us + {HOUR_US}, {MINUTE_US})) AS minute_us
            FROM hour WHERE NOT is_whole
        )
        JOIN gpu_minute AS minute USING (gpu_id, minute_us)
        JOIN place USING (gpu_id)
        WHERE minute_us >= greatest(from_us, $from) AND minute_us < least(to_us, $last)
          AND minute.provisioned_s > 0
    ),
    numbered AS (
        SELECT *, sum(is_first::INTEGER) OVER (PARTITION BY gpu_id ORDER BY start_us) AS nth
        FROM (
            SELECT *, start_us > coalesce(lag(end_us) OVER (PARTITION BY gpu_id ORDER BY start_us), 0) AS is_first
            FROM piece
        )
    )
    SELECT
        gpu.uuid AS gpu,
        gpu.name AS gpu_name,
        node.name AS node,
        min(start_us) AS start_us,
        max(end_us) AS end_us,
        sum(provisioned_s) AS provisioned_s,
        max(end_us) < $last AS has_ended
    FROM numbered JOIN gpu USING (gpu_id) JOIN node USING (node_id)
    GROUP BY gpu_id, gpu.uuid, gpu.name, node.name, nth
    HAVING max(end_us) > $first
    ORDER BY gpu.uuid, start_us
"""


def provisioned_stretches(
    store: Reader, fleet: str, start: datetime, end: datetime, *, known_at: datetime
) -> list[dict[str, Any]]:
    """The stretches of a fleet's GPUs that reach into [start, end): a row per GPU and stretch, by its GPU and start.

    start_us may lie before `start`, up to LOOK_BACK; a stretch ends where its GPU was not there for a minute, or left
    the fleet. has_ended: before `end`; one that has not may go on.
    """
    first, last = (int(moment.timestamp() * 1e6) for moment in (start, end))
    before = first - int(LOOK_BACK.total_seconds() * 1e6)
    given = {"fleet": fleet, "known_at": known_at, "first": first, "last": last, "from": before}
    return list(store.query(_STRETCHES, given).iter_rows(named=True))
