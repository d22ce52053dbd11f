"""Forecasts of grid intensity that no account can use any more are deleted; values of what has been never are."""

from __future__ import annotations

from datetime import datetime

from app import units
from app.store.database import Store
from app.store.gpu_rollup import HOUR_US
from app.store.grid import IDENTITY, ORDER

# grain: one row per forecast of a stretch of time that is older than $before_us. It goes if by the time that it was
# known, or that both the hour in which its stretch begins and $before_us were reached, a word that counts more was
# known: then no knowledge of a time that has begun, and none from $before_us on, ends at it.
_SUPERSEDED = f"""
    DELETE FROM grid_point WHERE rowid IN (
        SELECT row_id
        FROM (
            SELECT
                rowid AS row_id,
                {ORDER} AS place,
                max({ORDER}) OVER (PARTITION BY {IDENTITY} ORDER BY known_at) AS by_then,
                max({ORDER}) FILTER (
                    epoch_us(known_at) <= least(start_us // {HOUR_US} * {HOUR_US}, $before_us)
                ) OVER (PARTITION BY {IDENTITY}) AS by_its_hour
            FROM grid_point
            WHERE is_forecast AND epoch_us(known_at) <= $before_us
        )
        WHERE place < by_then OR place < by_its_hour
    )
"""


def delete_superseded_forecasts(store: Store, before: datetime) -> int:
    """Delete forecasts known by `before` that were superseded; how many. Ingest goes on meanwhile.

    What stays the same: whatever is known of any time by a knowledge from `before` on, the latest included, and what
    any earlier knowledge says of the hours that had begun by then. What goes: what forecasts older than `before`, and
    superseded by it, said of hours that were still to come.
    """
    with store.transaction(beside_ingest=True) as connection:
        connection.execute(_SUPERSEDED, {"before_us": units.us_of_moment(before)})
        deleted = connection.fetchone()
    return int(deleted[0]) if deleted else 0
