"""For how long owned GPUs belonged to their fleets, there or not: they are paid all the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.store.accounts import Row
from app.store.buckets import Segment
from app.store.gpu_rollup import HOUR_US
from app.store.ingest import MINUTE_US
from app.store.reader import Reader
from app.store.spans import FLEET_SPANS, FOREVER_US

LABEL = "label:"
# An agent keeps samples for less than that while it does not reach its hub.
_BEFORE_SEEN_US = 8 * 24 * HOUR_US

# grain: one row per position, fleet, card and key of `by`. A GPU belongs to its fleet from its membership on, but not
# before its first sample, unless its fleet's plan says since when it serves ($dated): it was there to the end of its
# first minute, or of its first hour once minutes may be gone. As everywhere a change of fleet counts from the first
# whole minute on. GPUs alike are counted first.
_MEMBERS = f"""
    WITH {FLEET_SPANS},
    first_hour AS (
        SELECT gpu_id, min(hour_us) AS hour_us, arg_min(provisioned_s, hour_us) AS provisioned_s
        FROM gpu_hour JOIN (SELECT gpu_id, epoch_us(first_seen) AS seen_us FROM gpu) USING (gpu_id)
        WHERE seen_us > $first AND hour_us > seen_us - {_BEFORE_SEEN_US} AND hour_us < seen_us
          AND hour_us > $first - {_BEFORE_SEEN_US}
        GROUP BY gpu_id
    ),
    first_minute AS (
        SELECT gpu_id, min(minute_us) AS minute_us, arg_min(provisioned_s, minute_us) AS provisioned_s
        FROM gpu_minute JOIN (SELECT gpu_id, hour_us FROM first_hour) USING (gpu_id)
        WHERE hour_us >= $oldest_minute AND minute_us >= hour_us AND minute_us < hour_us + {HOUR_US}
          AND provisioned_s > 0
        GROUP BY gpu_id
    ),
    span AS (
        SELECT
            node_id,
            fleet,
            (from_us + {MINUTE_US - 1}) // {MINUTE_US} * {MINUTE_US} AS from_us,
            CASE WHEN to_us = {FOREVER_US} THEN to_us
                 ELSE (to_us + {MINUTE_US - 1}) // {MINUTE_US} * {MINUTE_US} END AS to_us
        FROM fleet_span WHERE list_contains($owned::VARCHAR[], fleet)
    ),
    owned AS (
        SELECT
            fleet,
            gpu.name AS gpu_name,
            {{key}}
            to_us,
            greatest(from_us, $first, CASE
                WHEN list_contains($dated::VARCHAR[], fleet) THEN 0
                WHEN minute_us IS NOT NULL THEN minute_us + {MINUTE_US} - (first_minute.provisioned_s * 1e6)::BIGINT
                WHEN hour_us IS NOT NULL THEN hour_us + {HOUR_US} - (first_hour.provisioned_s * 1e6)::BIGINT
                ELSE epoch_us(gpu.first_seen)
            END) AS since_us,
            count(*) AS gpus
        FROM gpu
        JOIN span USING (node_id)
        JOIN node USING (node_id)
        LEFT JOIN (SELECT node_id, labels FROM node_state) AS state USING (node_id)
        LEFT JOIN first_hour USING (gpu_id)
        LEFT JOIN first_minute USING (gpu_id)
        GROUP BY ALL
    ),
    segment AS (
        SELECT unnest($positions::INTEGER[]) AS position, unnest($starts::BIGINT[]) AS start_us,
               unnest($ends::BIGINT[]) AS end_us
    )
    SELECT
        * EXCLUDE (start_us, end_us, since_us, to_us, gpus),
        sum(gpus * (least(end_us, to_us) - greatest(start_us, since_us))) / 1e6 AS member_s
    FROM segment JOIN owned ON since_us < least(end_us, to_us) AND to_us > start_us
    GROUP BY ALL
    ORDER BY ALL NULLS LAST
"""
_KEYS = {"node": "node.name AS node,", "gpu": "uuid AS gpu, node.name AS node,"}
_NODE_LABEL = "node.name AS node, CAST(state.labels::JSON AS MAP(VARCHAR, VARCHAR))[$label] AS label,"


def member_rows(
    store: Reader,
    segments: Sequence[Segment],
    by: str,
    known_at: datetime,
    *,
    owned: Sequence[str],
    dated: Sequence[str],
    oldest_minute_us: int = 0,
) -> list[Row]:
    """Seconds for which GPUs belonged to the `owned` fleets: a row per position, fleet, gpu_name and key of `by`.

    dated: of these fleets, those whose plan says since when its GPUs serve. by: node and gpu add that key to the rows,
    label:<name> the node with its label; any other adds none. oldest_minute_us: minutes before it may be gone.
    """
    if not owned or not segments:
        return []
    positions, starts, ends = (list(column) for column in zip(*segments, strict=True))
    given: dict[str, Any] = {
        "positions": positions, "starts": starts, "ends": ends, "first": min(starts), "owned": list(owned),
        "dated": list(dated), "known_at": known_at, "oldest_minute": oldest_minute_us,
    }  # fmt: skip
    is_label = by.startswith(LABEL)
    if is_label:
        given["label"] = by.removeprefix(LABEL)
    sql = _MEMBERS.format(key=_NODE_LABEL if is_label else _KEYS.get(by, ""))
    return list(store.query(sql, given).iter_rows(named=True))
