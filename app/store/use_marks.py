"""Notes which GPUs' use is out of date, in the transaction that changes what it rests on."""

from __future__ import annotations

from app.store.gpu_rollup import HOUR_US
from app.store.spans import GPU_SPANS

# one row per GPU-minute that was rebuilt
OF_GPUS = "INSERT INTO dirty_use_minute SELECT gpu_id, minute_us FROM touched"

# one row per engine-minute that was rebuilt and GPU that the engine ran on in any part of that hour
OF_ENGINES = f"""
    INSERT INTO dirty_use_minute
    WITH {GPU_SPANS}
    SELECT DISTINCT gpu_id, minute_us
    FROM touched JOIN gpu_span USING (engine_id)
    WHERE from_us < minute_us // {HOUR_US} * {HOUR_US} + {HOUR_US} AND to_us > minute_us // {HOUR_US} * {HOUR_US}
"""

# one row per hour from its change on in which an engine was scraped, and GPU that it ever ran on. $1: the first hour.
# Minutes that still wait count, too: a rollup that is at them now does not see the change.
OF_MOVES = f"""
    INSERT INTO dirty_use_minute
    WITH scraped AS (
        SELECT engine_id, hour_us FROM engine_hour WHERE hour_us >= $1
        UNION
        SELECT engine_id, minute_us // {HOUR_US} * {HOUR_US} FROM dirty_engine_minute WHERE minute_us >= $1
    )
    SELECT DISTINCT gpu_id, hour_us
    FROM incoming_gpus AS moved
    JOIN scraped USING (engine_id)
    JOIN (SELECT engine_id, unnest(uuids) AS uuid FROM engine_gpus) AS ever USING (engine_id)
    JOIN gpu USING (uuid)
    WHERE hour_us + {HOUR_US} > epoch_us(moved.valid_from)
"""
