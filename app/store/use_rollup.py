"""Minutes and hours of what engines made of GPUs, from the rollups of both.

A GPU-minute is used in the seconds in which any engine on it worked: the union of their busy seconds. An engine is on
its GPUs in each hour in which it was scraped. Used time and its energy are split among a GPU's engines by their tokens
of the minute, idle time and its energy equally; every part of a GPU's minute sums to its own rollup.

What a minute lacks of its energy is filled in with the GPU's mean power in the same state (an engine worked, or none
did) in that hour, else in the 24 hours that end with it. So an hour is built whole once it is over: then nothing that
comes later changes it, but late data. Before that, its minutes are built as they come, by what is known of it so far.
"""

from __future__ import annotations

import duckdb

from app.store.database import Store
from app.store.gpu_rollup import HOUR_US
from app.store.ingest import MINUTE_US
from app.store.spans import FOREVER_US, GPU_SPANS

# At most this many GPU-hours in a transaction: ingest never waits long behind a rebuild.
MAX_GPU_HOURS = 2_000
DAY_US = 24 * HOUR_US
# Intervals are whole microseconds: less than half of one is what arithmetic leaves over, not a gap.
_LEAST_S = 5e-7

# grain: one row per GPU and hour to build, the oldest first. Hours whose samples still wait for a rollup come later.
# $1: minutes from here on have not settled, $2: the same of hours
_TAKE_DUE = f"""
    WITH marked AS (
        SELECT gpu_id, minute_us // {HOUR_US} * {HOUR_US} AS hour_us FROM dirty_use_minute WHERE minute_us < $1
        UNION
        SELECT gpu_id, hour_us FROM open_use_hour WHERE hour_us < $2
    ),
    waiting AS (
        SELECT min(minute_us) // {HOUR_US} * {HOUR_US} AS hour_us
        FROM (SELECT minute_us FROM dirty_minute UNION ALL SELECT minute_us FROM dirty_engine_minute)
        WHERE minute_us < $1
    )
    SELECT gpu_id, hour_us FROM marked
    WHERE hour_us < coalesce((SELECT hour_us FROM waiting), {FOREVER_US})
      AND hour_us < (SELECT min(hour_us) FROM marked) + {DAY_US}
    ORDER BY hour_us, gpu_id LIMIT {MAX_GPU_HOURS}
"""

# grain: one row per GPU and hour that can be built: while all its minutes exist. $1 as $2 above, $2: the oldest hour
_HOURS = """
    CREATE OR REPLACE TEMP TABLE use_hour AS
    SELECT gpu_id, hour_us, hour_us < $1 AS is_over FROM due WHERE hour_us >= $2
"""

# grain: one row per GPU, minute and resident engine. $1, $2: from the first hour to the last one's end
_RESIDENTS = f"""
    CREATE OR REPLACE TEMP TABLE use_resident AS
    WITH {GPU_SPANS},
    stay AS (
        SELECT gpu_id, hour_us, engine_id, replica_gpus, from_us, to_us
        FROM use_hour
        JOIN gpu_span USING (gpu_id)
        JOIN engine_hour USING (engine_id, hour_us)
        WHERE from_us < hour_us + {HOUR_US} AND to_us > hour_us AND hour_us >= $1 AND hour_us < $2
    )
    SELECT
        gpu_id,
        minute_us,
        engine_id,
        replica_gpus,
        coalesce(busy_s, 0) AS busy_s,
        busy_mask,
        coalesce(prompt_tokens, 0) + coalesce(generated_tokens, 0) AS tokens
    FROM (
        SELECT gpu_id, minute_us, engine_id, replica_gpus
        FROM gpu_minute AS minute
        JOIN stay USING (gpu_id)
        WHERE minute_us >= $1 AND minute_us < $2
          AND minute_us // {HOUR_US} * {HOUR_US} = stay.hour_us AND minute_us >= from_us AND minute_us < to_us
    )
    LEFT JOIN (FROM engine_minute WHERE minute_us >= $1 AND minute_us < $2) USING (engine_id, minute_us)
"""

# grain: one row per GPU and minute. The mask knows whole seconds, the engines' own sums know better: the union is at
# least the longest of them and at most their sum, so that of one engine is its own.
_STATES = f"""
    CREATE OR REPLACE TEMP TABLE use_state AS
    WITH together AS (
        SELECT
            gpu_id,
            minute_us,
            count(*) AS sharers,
            greatest(max(busy_s), least(sum(busy_s), coalesce(bit_count(bit_or(busy_mask)), 0))) AS busy_s,
            sum(tokens) AS tokens
        FROM use_resident GROUP BY gpu_id, minute_us
    )
    SELECT
        gpu_id,
        hour_us,
        minute_us,
        is_over,
        provisioned_s,
        least(coalesce(together.busy_s, 0), provisioned_s) AS used_s,
        provisioned_s - used_s AS idle_s,
        counter_j + integral_j AS known_j,
        interpolated_j,
        covered_s,
        bridged_s,
        provisioned_s - covered_s - bridged_s AS lacking_s,
        CASE WHEN lacking_s > {_LEAST_S} THEN lacking_s ELSE 0 END AS missing_s,
        throttled_s,
        coalesce(sharers, 0) AS sharers,
        coalesce(tokens, 0) AS tokens
    FROM (
        SELECT *, minute_us // {HOUR_US} * {HOUR_US} AS hour_us FROM gpu_minute
        WHERE minute_us >= $1 AND minute_us < $2
    )
    JOIN use_hour USING (gpu_id, hour_us)
    LEFT JOIN together USING (gpu_id, minute_us)
"""

_NO_USED = "used_s > 0 AND missing_s > 0"
_NO_IDLE = "used_s = 0 AND missing_s > 0 OR used_s > 0 AND idle_s > 0"

# grain: one row per GPU and hour. $1: 23 hours before the first hour, $2: the last one's end
_POWERS = f"""
    CREATE OR REPLACE TEMP TABLE use_power AS
    WITH own AS (
        SELECT
            gpu_id,
            hour_us,
            coalesce(sum(known_j + interpolated_j) FILTER (used_s > 0), 0) AS used_j,
            coalesce(sum(covered_s + bridged_s) FILTER (used_s > 0), 0) AS used_s,
            coalesce(sum(known_j + interpolated_j) FILTER (used_s = 0), 0) AS idle_j,
            coalesce(sum(covered_s + bridged_s) FILTER (used_s = 0), 0) AS idle_s,
            coalesce(bool_or({_NO_USED}), false) AS lacks_used,
            coalesce(bool_or({_NO_IDLE}), false) AS lacks_idle
        FROM use_state GROUP BY gpu_id, hour_us
    ),
    known AS (
        SELECT gpu_id, hour_us, used_j, used_s, idle_j, idle_s FROM own
        UNION ALL BY NAME
        SELECT gpu_id, hour_us, used_j, used_s, idle_j, idle_s FROM gpu_power_hour
        ANTI JOIN use_hour USING (gpu_id, hour_us)
        WHERE hour_us >= $1 AND hour_us < $2
    ),
    day AS (
        SELECT
            own.gpu_id,
            own.hour_us,
            sum(known.used_j) / nullif(sum(known.used_s), 0) AS day_used_w,
            sum(known.idle_j) / nullif(sum(known.idle_s), 0) AS day_idle_w
        FROM own
        JOIN known ON known.gpu_id = own.gpu_id
         AND known.hour_us > own.hour_us - {DAY_US} AND known.hour_us <= own.hour_us
        GROUP BY ALL
    )
    SELECT
        own.* EXCLUDE (lacks_used, lacks_idle),
        day_used_w,
        day_idle_w,
        lacks_used AND own.used_s = 0 AS used_by_day,
        lacks_idle AND own.idle_s = 0 AS idle_by_day
    FROM own JOIN day USING (gpu_id, hour_us)
"""

# grain: one row per GPU and minute to write: all of an hour that is over, else what has come. $1: not settled from here
_MINUTES = """
    CREATE OR REPLACE TEMP TABLE use_minute AS
    SELECT use_state.* FROM use_state
    WHERE is_over OR EXISTS (
        FROM dirty_use_minute AS dirty
        WHERE dirty.gpu_id = use_state.gpu_id AND dirty.minute_us = use_state.minute_us AND dirty.minute_us < $1
    )
"""

# grain: one row per GPU, minute and resident engine, or none
_BUILD_MINUTES = """
    INSERT INTO gpu_use_minute BY NAME
    WITH filled AS (
        SELECT
            minute.*,
            coalesce(power.used_j / nullif(power.used_s, 0), day_used_w) AS used_w,
            coalesce(power.idle_j / nullif(power.idle_s, 0), day_idle_w) AS idle_w,
            CASE WHEN minute.used_s > 0 THEN used_w ELSE idle_w END AS fill_w,
            coalesce(missing_s * fill_w, 0) AS estimated_j,
            CASE WHEN fill_w IS NULL THEN missing_s ELSE 0 END AS unknown_s,
            known_j + interpolated_j + estimated_j AS total_j,
            CASE
                WHEN minute.used_s = 0 THEN total_j
                ELSE least(total_j, coalesce(minute.idle_s * idle_w, total_j * minute.idle_s / provisioned_s))
            END AS unused_j
        FROM use_minute AS minute JOIN use_power AS power USING (gpu_id, hour_us)
    ),
    shared AS (
        SELECT
            filled.*,
            engine_id,
            replica_gpus,
            CASE
                WHEN filled.sharers <= 1 THEN 1
                WHEN filled.tokens > 0 THEN resident.tokens / filled.tokens
                ELSE 1 / filled.sharers
            END AS used_part,
            1 / greatest(filled.sharers, 1) AS idle_part,
            CASE
                WHEN filled.sharers <= 1 THEN 1
                ELSE (used_s * used_part + idle_s * idle_part) / provisioned_s
            END AS time_part,
            CASE
                WHEN filled.sharers <= 1 THEN 1
                WHEN total_j > 0 THEN ((total_j - unused_j) * used_part + unused_j * idle_part) / total_j
                ELSE time_part
            END AS energy_part
        FROM filled LEFT JOIN use_resident AS resident USING (gpu_id, minute_us)
    )
    SELECT
        gpu_id,
        engine_id,
        minute_us,
        provisioned_s * time_part AS provisioned_s,
        used_s * used_part AS used_s,
        known_j * energy_part AS known_j,
        interpolated_j * energy_part AS interpolated_j,
        estimated_j * energy_part AS estimated_j,
        unknown_s * time_part AS unknown_s,
        unused_j * idle_part AS idle_j,
        covered_s * time_part AS covered_s,
        bridged_s * time_part AS bridged_s,
        throttled_s * time_part AS throttled_s,
        replica_gpus,
        sharers,
        CASE WHEN sharers <= 1 THEN 0 WHEN used_s > 0 AND tokens = 0 THEN 2 ELSE 1 END AS split_by
    FROM shared
    ORDER BY minute_us, gpu_id
"""

# grain: one row per GPU, hour and engine, from its minutes
_BUILD_HOURS = f"""
    INSERT INTO gpu_use_hour BY NAME
    SELECT
        gpu_id,
        engine_id,
        minute_us // {HOUR_US} * {HOUR_US} AS hour_us,
        sum(provisioned_s) AS provisioned_s,
        sum(used_s) AS used_s,
        sum(known_j) AS known_j,
        sum(interpolated_j) AS interpolated_j,
        sum(estimated_j) AS estimated_j,
        sum(unknown_s) AS unknown_s,
        sum(idle_j) AS idle_j,
        sum(covered_s) AS covered_s,
        sum(bridged_s) AS bridged_s,
        sum(throttled_s) AS throttled_s,
        max(replica_gpus) AS replica_gpus,
        max(sharers) AS sharers,
        max(split_by) AS split_by
    FROM (
        SELECT minute.* FROM gpu_use_minute AS minute
        SEMI JOIN use_hour
          ON use_hour.gpu_id = minute.gpu_id AND use_hour.hour_us = minute_us // {HOUR_US} * {HOUR_US}
        WHERE minute_us >= $1 AND minute_us < $2
    )
    GROUP BY ALL
    ORDER BY hour_us, gpu_id
"""

_DELETE_MINUTES = """
    DELETE FROM gpu_use_minute USING use_minute
    WHERE gpu_use_minute.gpu_id = use_minute.gpu_id AND gpu_use_minute.minute_us = use_minute.minute_us
      AND gpu_use_minute.minute_us >= $1 AND gpu_use_minute.minute_us < $2
"""
_DELETE_HOURS = """
    DELETE FROM {table} USING use_hour
    WHERE {table}.gpu_id = use_hour.gpu_id AND {table}.hour_us = use_hour.hour_us
      AND {table}.hour_us >= $1 AND {table}.hour_us < $2
"""

# grain: one row per GPU and later hour whose figures rest on a mean that these hours have changed: it is built again.
# $1: the first hour, $2: hours from here on are not over. Sums of other orders differ in their last bits.
_MARK_LATER = f"""
    INSERT INTO dirty_use_minute
    SELECT later.gpu_id, later.hour_us
    FROM (FROM gpu_power_hour WHERE (used_by_day OR idle_by_day) AND hour_us > $1 AND hour_us < $2) AS later
    SEMI JOIN use_hour AS built
      ON built.gpu_id = later.gpu_id AND built.hour_us < later.hour_us AND built.hour_us > later.hour_us - {DAY_US}
    JOIN (FROM gpu_power_hour WHERE hour_us > $1 - {DAY_US}) AS known
      ON known.gpu_id = later.gpu_id
     AND known.hour_us > later.hour_us - {DAY_US} AND known.hour_us <= later.hour_us
    GROUP BY ALL
    HAVING (any_value(later.used_by_day) AND {{used}}) OR (any_value(later.idle_by_day) AND {{idle}})
"""


def _differs(state: str) -> str:
    stored = f"any_value(later.day_{state}_w)"
    found = f"sum(known.{state}_j) / nullif(sum(known.{state}_s), 0)"
    return f"coalesce(abs({found} - {stored}) > 1e-12 * {stored}, ({found} IS NULL) <> ({stored} IS NULL))"


_MARK_LATER = _MARK_LATER.format(used=_differs("used"), idle=_differs("idle"))

_CLEAR_DIRTY = f"""
    DELETE FROM dirty_use_minute USING due
    WHERE dirty_use_minute.gpu_id = due.gpu_id
      AND dirty_use_minute.minute_us // {HOUR_US} * {HOUR_US} = due.hour_us AND dirty_use_minute.minute_us < $1
"""
_CLEAR_OPEN = """
    DELETE FROM open_use_hour USING due
    WHERE open_use_hour.gpu_id = due.gpu_id AND open_use_hour.hour_us = due.hour_us
"""
_KEEP_OPEN = "INSERT INTO open_use_hour SELECT gpu_id, hour_us FROM use_hour WHERE NOT is_over"


def roll_up_use(store: Store, settled_us: int, oldest_minute_us: int) -> int:
    """Build the use of GPUs that is out of date, up to MAX_GPU_HOURS; how many GPU-hours that were.

    settled_us: minutes from here on may still get samples in time. oldest_minute_us: minutes before it may be gone; an
    hour is built only while it has all of them. Safe to repeat.
    """
    over_us = settled_us - (HOUR_US - MINUTE_US)
    due = store.query(_TAKE_DUE, [settled_us, over_us])
    if due.is_empty():
        return 0
    first, end = int(due["hour_us"][0]), int(due["hour_us"][-1]) + HOUR_US
    with store.transaction(beside_ingest=True, rebuilds=(first, end)) as connection:
        connection.register("due", due)
        connection.execute(_HOURS, [over_us, oldest_minute_us])
        _rebuild(connection, first, end, settled_us)
        connection.execute(_CLEAR_DIRTY, [settled_us])
        connection.execute(_CLEAR_OPEN)
        connection.execute(_KEEP_OPEN)
        connection.execute(_MARK_LATER, [first, over_us])
        connection.unregister("due")
    return due.height


def _rebuild(connection: duckdb.DuckDBPyConnection, first: int, end: int, settled_us: int) -> None:
    span = [first, end]
    connection.execute(_RESIDENTS, span)
    connection.execute(_STATES, span)
    connection.execute(_POWERS, [first - DAY_US + HOUR_US, end])
    connection.execute(_MINUTES, [settled_us])
    connection.execute(_DELETE_MINUTES, span)
    connection.execute(_BUILD_MINUTES)
    connection.execute(_DELETE_HOURS.format(table="gpu_power_hour"), span)
    connection.execute("INSERT INTO gpu_power_hour BY NAME FROM use_power")
    connection.execute(_DELETE_HOURS.format(table="gpu_use_hour"), span)
    connection.execute(_BUILD_HOURS, span)
