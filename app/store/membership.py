"""Which fleet a node belongs to, dated: a change is a new row, and the past keeps its own."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from app.config import Config
from app.store.database import Store

# one row per node: the fleet it belongs to by the latest knowledge
_CURRENT = """
    SELECT node.node_id, node.name, node.first_seen, last.fleet, last.node_id IS NOT NULL AS known
    FROM node LEFT JOIN (
        SELECT node_id, arg_max_null(fleet, (valid_from, known_at)) AS fleet FROM node_fleet GROUP BY node_id
    ) AS last USING (node_id)
"""


def assign_fleets(store: Store, config: Config, now: datetime) -> int:
    """Note for each node the fleet that wattmix.toml gives it, where that is news; how many were.

    A node's first fleet is valid from its first sight, a later change from now on.
    """
    news = []
    for node_id, name, first_seen, fleet, known in store.query(_CURRENT).iter_rows():
        found = config.fleet_of_node(name)
        wanted = found.name if found else None
        if wanted != fleet and (known or wanted is not None):
            news.append((node_id, wanted, now if known else first_seen, now, "wattmix.toml"))
    if news:
        frame = pl.DataFrame(
            news,
            schema={
                "node_id": pl.Int32,
                "fleet": pl.String,
                "valid_from": pl.Datetime("us", "UTC"),
                "known_at": pl.Datetime("us", "UTC"),
                "source": pl.String,
            },
            orient="row",
        )
        with store.transaction() as connection:
            connection.register("incoming_fleets", frame)
            connection.execute("INSERT INTO node_fleet SELECT * FROM incoming_fleets")
            connection.unregister("incoming_fleets")
    return len(news)
