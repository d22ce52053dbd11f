"""Minutes and hours of engines from their scrapes.

A count that belongs to several minutes is split in whole numbers: each part is the difference of the rounded-down
counts at its two edges, so that the parts of a row sum to the row, whatever the edges are.

busy_mask has one bit per second of the minute: an interval in which the engine worked sets those that it covers at
least half of. So the seconds in which any of a GPU's engines worked are the bits of their OR.
"""

from __future__ import annotations

from app.store.engine_ingest import ENGINE_COUNTS
from app.store.gpu_rollup import HOUR_US
from app.store.ingest import LONGEST_INTERVAL_US, MINUTE_US

_START = "(t_us - dt_us)"


def _parts(table: str) -> str:
    """CTEs that cut the rows of `table` at minutes: `parts`, with the share of the row before and up to its end."""
    return f"""
    rows AS (
        SELECT * FROM {table}
        WHERE t_us > $1 AND {_START} < $2 AND engine_id IN (SELECT engine_id FROM touched)
    ),
    placed AS (
        SELECT *, (t_us - 1) // {MINUTE_US} * {MINUTE_US} AS minute_us FROM rows WHERE dt_us <= {LONGEST_INTERVAL_US}
        UNION ALL BY NAME
        SELECT *, {_START} // {MINUTE_US} * {MINUTE_US} AS minute_us FROM rows
        WHERE dt_us <= {LONGEST_INTERVAL_US} AND {_START} // {MINUTE_US} < (t_us - 1) // {MINUTE_US}
        UNION ALL BY NAME
        SELECT rows.*, minute_us FROM rows JOIN touched USING (engine_id)
        WHERE dt_us > {LONGEST_INTERVAL_US} AND t_us > minute_us AND {_START} < minute_us + {MINUTE_US}
    ),
    parts AS (
        SELECT
            placed.*,
            greatest(minute_us - {_START}, 0) / dt_us AS start_share,
            least(minute_us + {MINUTE_US} - {_START}, dt_us) / dt_us AS end_share,
            (least(minute_us + {MINUTE_US}, t_us) - greatest(minute_us, {_START})) / 1e6 AS part_s,
            greatest(minute_us, {_START}) - minute_us AS from_us,
            least(minute_us + {MINUTE_US}, t_us) - minute_us AS to_us
        FROM placed SEMI JOIN touched USING (engine_id, minute_us)
    )"""


def _whole_part(column: str) -> str:
    return f"sum(floor({column} * end_share)::BIGINT - floor({column} * start_share)::BIGINT)::BIGINT AS"


_BUSY = "running > 0 OR prompt_tokens > 0 OR generated_tokens > 0"
_HALF_S = "500000"
# Seconds of the minute from the first that is covered by half up to the last, as bits; none in less than half a second.
_SECONDS = f"""
    (1::BIGINT << ((to_us + {_HALF_S}) // 1000000)) - (1::BIGINT << ((from_us + {_HALF_S} - 1) // 1000000))"""
_GAUGED = f"dt_us <= {LONGEST_INTERVAL_US} AND running IS NOT NULL"

# grain: one row per engine and minute
REBUILD_MINUTES = f"""
    INSERT INTO engine_minute BY NAME
    WITH {_parts("engine_sample")}
    SELECT
        engine_id,
        minute_us,
        {", ".join(f"{_whole_part(name)} {name}" for name in ENGINE_COUNTS)},
        sum(part_s) AS seen_s,
        coalesce(sum(part_s) FILTER (dt_us > {LONGEST_INTERVAL_US}), 0) AS gap_s,
        coalesce(sum(part_s) FILTER ({_BUSY}), 0) AS busy_s,
        coalesce(bit_or({_SECONDS}) FILTER (({_BUSY}) AND to_us - from_us >= {_HALF_S}), 0) AS busy_mask,
        coalesce(sum(part_s) FILTER ({_GAUGED}), 0) AS gauged_s,
        sum(part_s * running) FILTER ({_GAUGED}) / nullif(gauged_s, 0) AS mean_running,
        sum(part_s * waiting) FILTER ({_GAUGED}) / nullif(gauged_s, 0) AS mean_waiting,
        max(waiting) AS max_waiting,
        max(kv_usage_ppm) AS max_kv_usage_ppm,
        count(*) AS scrapes
    FROM parts GROUP BY engine_id, minute_us
"""

# grain: one row per engine and hour, from its minutes
REBUILD_HOURS = f"""
    INSERT INTO engine_hour BY NAME
    SELECT
        minute.engine_id,
        minute_us // {HOUR_US} * {HOUR_US} AS hour_us,
        {", ".join(f"sum({name})::BIGINT AS {name}" for name in ENGINE_COUNTS)},
        sum(seen_s) AS seen_s,
        sum(gap_s) AS gap_s,
        sum(busy_s) AS busy_s,
        sum(gauged_s) AS gauged_s,
        sum(mean_running * gauged_s) / nullif(sum(gauged_s), 0) AS mean_running,
        sum(mean_waiting * gauged_s) / nullif(sum(gauged_s), 0) AS mean_waiting,
        max(max_waiting) AS max_waiting,
        max(max_kv_usage_ppm) AS max_kv_usage_ppm,
        sum(scrapes) AS scrapes
    FROM engine_minute AS minute
    SEMI JOIN touched_hour AS hour
      ON minute.engine_id = hour.engine_id AND minute_us // {HOUR_US} * {HOUR_US} = hour.hour_us
    WHERE minute_us >= $1 AND minute_us < $2 + {HOUR_US}
    GROUP BY ALL
"""

# grain: one row per engine, minute, metric and occupied bucket
REBUILD_LATENCY_MINUTES = f"""
    INSERT INTO engine_latency_minute BY NAME
    WITH {_parts("engine_latency_scrape")}
    SELECT engine_id, minute_us, metric, lower_us, upper_us, {_whole_part("n")} n
    FROM parts GROUP BY ALL HAVING n > 0
    ORDER BY metric, engine_id, minute_us
"""

# grain: one row per engine, hour, metric and occupied bucket
REBUILD_LATENCY_HOURS = f"""
    INSERT INTO engine_latency_hour BY NAME
    SELECT minute.engine_id, minute_us // {HOUR_US} * {HOUR_US} AS hour_us, metric, lower_us, upper_us, sum(n) AS n
    FROM engine_latency_minute AS minute
    SEMI JOIN touched_hour AS hour
      ON minute.engine_id = hour.engine_id AND minute_us // {HOUR_US} * {HOUR_US} = hour.hour_us
    WHERE minute_us >= $1 AND minute_us < $2 + {HOUR_US}
    GROUP BY ALL ORDER BY metric, minute.engine_id, hour_us
"""
