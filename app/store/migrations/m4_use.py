"""Migration 4: dated facts, and what GPUs were used for."""

from __future__ import annotations

# grain: one row per GPU, engine (NULL: none resident) and bucket of time; parts of a GPU's bucket sum to its own rollup
_GPU_USE = """
    CREATE TABLE {table} (
        gpu_id             INTEGER NOT NULL,
        engine_id          INTEGER,
        {bucket}_us          BIGINT NOT NULL,
        provisioned_s      DOUBLE NOT NULL,       -- this engine's part of the seconds the GPU was there
        used_s             DOUBLE NOT NULL,       -- of them, seconds in which an engine on it worked
        known_j            DOUBLE NOT NULL,       -- measured by counter or integral
        interpolated_j     DOUBLE NOT NULL,
        estimated_j        DOUBLE NOT NULL,       -- filled in at the GPU's mean power of the same state
        unknown_s          DOUBLE NOT NULL,       -- seconds whose energy is not known and could not be filled in
        idle_j             DOUBLE NOT NULL,       -- of all three, while no engine worked
        covered_s          DOUBLE NOT NULL,
        bridged_s          DOUBLE NOT NULL,
        throttled_s        DOUBLE NOT NULL,
        replica_gpus       USMALLINT,             -- GPUs that the engine ran on, this one included
        sharers            USMALLINT NOT NULL,    -- engines resident on the GPU then
        split_by           UTINYINT NOT NULL      -- 0 alone, 1 used time split by tokens, 2 split equally
    )
"""

USE: tuple[str, ...] = (
    # one row per fact: append-only, see app/facts
    """
    CREATE TABLE fact (
        kind              VARCHAR NOT NULL,
        subject           VARCHAR NOT NULL,
        valid_from        TIMESTAMPTZ NOT NULL,
        known_at          TIMESTAMPTZ NOT NULL,
        value             VARCHAR,               -- JSON; NULL: ended from then on
        source            VARCHAR NOT NULL
    )
    """,
    # one bit per second of the minute in which the engine worked: the union over engines is an OR
    "ALTER TABLE engine_minute ADD COLUMN busy_mask BIGINT",
    *(_GPU_USE.format(table=f"gpu_use_{bucket}", bucket=bucket) for bucket in ("minute", "hour")),
    # one row per GPU and hour: what its minutes' missing energies are filled in with, see use_rollup
    """
    CREATE TABLE gpu_power_hour (
        gpu_id             INTEGER NOT NULL,
        hour_us            BIGINT NOT NULL,
        used_j             DOUBLE NOT NULL,       -- measured in minutes in which an engine worked
        used_s             DOUBLE NOT NULL,       -- and the seconds that it was measured in
        idle_j             DOUBLE NOT NULL,       -- the same of minutes in which none did
        idle_s             DOUBLE NOT NULL,
        day_used_w         DOUBLE,                -- means of the 24 hours that end with this one
        day_idle_w         DOUBLE,
        used_by_day        BOOLEAN NOT NULL,      -- whether this hour's figures rest on day_used_w
        idle_by_day        BOOLEAN NOT NULL
    )
    """,
    # one row per GPU and minute whose use is out of date
    "CREATE TABLE dirty_use_minute (gpu_id INTEGER NOT NULL, minute_us BIGINT NOT NULL)",
    # one row per GPU and hour whose use was built before it was over: to be built once more when it is
    "CREATE TABLE open_use_hour (gpu_id INTEGER NOT NULL, hour_us BIGINT NOT NULL)",
    # A store that has minutes already: their use is built from them, and masks where raw samples are left.
    "INSERT INTO dirty_use_minute SELECT DISTINCT gpu_id, minute_us // 3600000000 * 3600000000 FROM gpu_minute",
    """
    INSERT INTO dirty_engine_minute
    SELECT engine_id, minute_us FROM engine_minute
    WHERE minute_us >= (SELECT deleted_up_to_us FROM raw_horizon)
    """,
)
