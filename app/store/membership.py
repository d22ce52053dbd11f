"""Which fleet a node belongs to, dated: a change is a new row, and the past keeps its own."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from app.config import Config
from app.facts.fields import FIRST_MOMENT
from app.facts.settings import SOURCE
from app.store.database import Store

# one row per node: the fleet that wattmix.toml said last, whatever others said, and whether its word is in force
_SAID = """
    SELECT node.node_id, node.name, fleet, coalesce(known, false) AS known, in_force = $1 AS in_force
    FROM node LEFT JOIN (
        SELECT
            node_id,
            arg_max_null(fleet, (known_at, valid_from)) FILTER (source = $1) AS fleet,
            bool_or(source = $1) AS known,
            arg_max(source, (valid_from, known_at)) FILTER (valid_from <= $2) AS in_force
        FROM node_fleet GROUP BY node_id
    ) AS said USING (node_id)
"""


def assign_fleets(store: Store, config: Config, now: datetime) -> int:
    """Note for each node the fleet that wattmix.toml gives it, where that differs from what it gave before; how many.

    Its first word on a node is valid since 1970, below what others say of any later time; a change is from now on. So a
    membership from elsewhere is not fought at every start, and a pattern that goes does not end it.
    """
    news = []
    for node_id, name, fleet, known, in_force in store.query(_SAID, [SOURCE, now]).iter_rows():
        found = config.fleet_of_node(name)
        wanted = found.name if found else None
        if wanted != fleet and (in_force or wanted is not None):
            news.append((node_id, wanted, now if known else FIRST_MOMENT, now, SOURCE))
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
        store.facts_revision += 1
    return len(news)
