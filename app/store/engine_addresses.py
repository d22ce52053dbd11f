"""Where the engines of fleets are: the addresses at which they were seen, and the GPUs that each of them runs on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.store.database import Store

SEEN_WITHIN = timedelta(hours=1)

# grain: one row per address, model and number of GPUs, of engines that were seen since $2 on nodes of a fleet at $1
_ADDRESSES = """
    WITH fleets AS (
        SELECT node_id, arg_max_null(fleet, (valid_from, known_at)) AS fleet
        FROM node_fleet WHERE valid_from <= $1 GROUP BY node_id
    ),
    placed AS (
        SELECT engine_id, arg_max_null(uuids, (valid_from, known_at)) AS uuids FROM engine_gpus GROUP BY engine_id
    )
    SELECT DISTINCT fleet, model, len(uuids)::INTEGER AS gpus, url
    FROM engine JOIN node USING (node_id) JOIN fleets USING (node_id) JOIN placed USING (engine_id)
    WHERE engine.status = 'ok' AND engine.last_seen > $2 AND NOT node.simulated
      AND fleet IS NOT NULL AND model IS NOT NULL AND len(uuids) > 0
    ORDER BY ALL
"""


@dataclass(frozen=True)
class EngineAddress:
    """url: of its metrics."""

    fleet: str
    model: str
    gpus: int
    url: str


def engine_addresses(store: Store, now: datetime) -> Iterator[EngineAddress]:
    """Of engines that were there in the last hour, simulated ones left out."""
    for row in store.query(_ADDRESSES, [now, now - SEEN_WITHIN]).iter_rows(named=True):
        yield EngineAddress(**row)
