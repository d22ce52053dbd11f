"""What is deleted when: raw samples after days or past a size, minutes after months, hours never."""

from __future__ import annotations

from app.store.database import Store
from app.store.ingest import MINUTE_US

DAY_US = 86_400_000_000

_RAW_TABLES = ("gpu_sample", "gpu_bridge", "host_sample", "process_sample", "engine_sample", "engine_latency_sample")
_MINUTE_TABLES = {
    "gpu_minute": "minute_us",
    "engine_minute": "minute_us",
    "engine_latency_minute": "minute_us",
    "gpu_use_minute": "minute_us",
    "gpu_power_hour": "hour_us",  # serves to build minutes of use
}

# bytes of the file that hold data, and the days that its raw samples span
_SIZE = """
    SELECT
        used_blocks * block_size AS bytes,
        (SELECT (max(t_us) - min(t_us)) / 86400e6
         FROM (SELECT t_us FROM gpu_sample UNION ALL SELECT t_us FROM engine_sample)) AS days
    FROM pragma_database_size()
"""
# Never past the newest sample that is left or was there: a clock that is ahead once must not shut out what comes after.
_MOVE_HORIZON = """
    UPDATE raw_horizon SET deleted_up_to_us = greatest(
        deleted_up_to_us,
        least($1, greatest((SELECT coalesce(max(minute_us), 0) FROM gpu_minute),
                           (SELECT coalesce(max(minute_us), 0) FROM engine_minute)) + 60000000)
    )
"""
_OLDEST_DIRTY = """
    SELECT min(minute_us) AS minute_us
    FROM (SELECT minute_us FROM dirty_minute UNION ALL SELECT minute_us FROM dirty_engine_minute)
"""


def delete_expired(store: Store, now_us: int, *, raw_days: float, minute_days: float) -> int:
    """Delete raw samples and minutes past their age. Returns the time from which raw samples are complete.

    Minutes that still wait for their rollup keep their raw samples until it is done.
    """
    oldest_raw_us = now_us - int(raw_days * DAY_US)
    waiting = store.query(_OLDEST_DIRTY)["minute_us"][0]
    oldest_raw_us = min(oldest_raw_us // MINUTE_US * MINUTE_US, oldest_raw_us if waiting is None else int(waiting))
    oldest_minute_us = now_us - int(minute_days * DAY_US)
    with store.transaction() as connection:
        for table in _RAW_TABLES:
            connection.execute(f"DELETE FROM {table} WHERE t_us <= $1", [oldest_raw_us])
        for table, start in _MINUTE_TABLES.items():
            connection.execute(f"DELETE FROM {table} WHERE {start} < $1", [oldest_minute_us])
        connection.execute(_MOVE_HORIZON, [oldest_raw_us])
    return oldest_raw_us


def raw_horizon_us(store: Store) -> int:
    """The time up to which raw samples may have been deleted; 0 when none ever were."""
    return int(store.query("SELECT deleted_up_to_us AS us FROM raw_horizon")["us"][0])


def raw_days_within(store: Store, *, raw_days: float, max_gb: float | None) -> float:
    """Days of raw samples to keep so that the file stays below `max_gb`: fewer than `raw_days` when it is above."""
    if max_gb is None:
        return raw_days
    size, days = (None if value is None else float(value) for value in store.query(_SIZE).row(0))
    if size is None or days is None or size <= max_gb * 1e9:
        return raw_days
    return max(min(raw_days, days) * max_gb * 1e9 / size, 1 / 24)
