"""The best rate that replicas of a type have sustained: what slack is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from app import units
from app.store.gpu_rollup import HOUR_US
from app.store.kept import Block
from app.store.names import stamp
from app.store.reader import Reader
from app.store.spans import REPLICA_SPANS

# An hour says something about a rate when its engine worked for so long.
LEAST_BUSY_S = 600
DAY_US = 24 * HOUR_US

# grain: one row per hour and replica type: hours in which an engine moved are left out. $1, $2: hours from and up to
_BEST = f"""
    WITH {REPLICA_SPANS}
    SELECT
        hour_us,
        gpu_name,
        replica_gpus,
        model,
        node.simulated,
        max((prompt_tokens + generated_tokens) / busy_s) AS tokens_per_s,
        count(*) AS hours
    FROM engine_hour AS hour
    JOIN replica_span AS span
      ON span.engine_id = hour.engine_id AND hour_us >= from_us AND hour_us <= to_us - {HOUR_US}
    JOIN engine ON engine.engine_id = hour.engine_id
    JOIN node USING (node_id)
    WHERE hour_us >= $1 AND hour_us < $2 AND busy_s >= {LEAST_BUSY_S}
      AND gpu_name IS NOT NULL AND prompt_tokens IS NOT NULL AND generated_tokens IS NOT NULL
    GROUP BY ALL
"""
_TYPE = ("gpu_name", "replica_gpus", "model", "simulated")


def best_rates(store: Reader, until: datetime, days: int) -> list[dict[str, Any]]:
    """Best tokens (prompt + generated) per busy second of an hour: a row per gpu_name, replica_gpus, model, simulated.

    Of the `days` up to `until`; hours with less than LEAST_BUSY_S busy seconds do not count. hours: how many did.
    """
    end_us = units.us_of_moment(until)
    start_us = end_us - days * DAY_US
    rows = _hours(store, start_us, end_us).filter(pl.col("hour_us") >= start_us, pl.col("hour_us") < end_us)
    best = rows.group_by(_TYPE).agg(pl.max("tokens_per_s"), pl.sum("hours")).sort(_TYPE, nulls_last=True)
    return list(best.iter_rows(named=True))


def _hours(store: Reader, start_us: int, end_us: int) -> pl.DataFrame:
    """Those of the span at least, by what is kept of whole days."""

    def read(days: Sequence[Block]) -> pl.DataFrame:
        return store.query(_BEST, [days[0][0], days[-1][1]])

    days = [(day_us, day_us + DAY_US) for day_us in range(start_us // DAY_US * DAY_US, end_us, DAY_US)]
    return store.blocks(("best rates", stamp(store)), days, "hour_us", read)
