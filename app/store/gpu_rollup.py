"""Minutes and hours of GPUs from their samples and bridged gaps."""

from __future__ import annotations

from app.store.ingest import LONGEST_INTERVAL_US, MINUTE_US

HOUR_US = 60 * MINUTE_US

# grain: one row per GPU and minute. A row of seconds lies in one minute or in two; `part` is its share there.
REBUILD_MINUTES = f"""
    INSERT INTO gpu_minute BY NAME
    WITH ends AS (
        SELECT *, (t_us - 1) // {MINUTE_US} * {MINUTE_US} AS end_minute,
               (t_us - dt_us) // {MINUTE_US} * {MINUTE_US} AS start_minute
        FROM gpu_sample
        WHERE t_us > $1 AND t_us <= $2 + {LONGEST_INTERVAL_US} AND gpu_id IN (SELECT gpu_id FROM touched)
    ),
    parts AS (
        SELECT *, end_minute AS minute_us, least(dt_us, t_us - end_minute) / dt_us AS part FROM ends
        UNION ALL BY NAME
        SELECT *, start_minute AS minute_us, (end_minute - (t_us - dt_us)) / dt_us AS part
        FROM ends WHERE start_minute < end_minute
    ),
    sampled AS (
        SELECT
            gpu_id,
            minute_us,
            sum(part * energy_mj) FILTER (energy_method = 0) / 1e3 AS counter_j,
            sum(part * energy_mj) FILTER (energy_method IN (1, 2)) / 1e3 AS integral_j,
            sum(part * dt_us) FILTER (energy_mj IS NOT NULL AND energy_method IS NOT NULL) / 1e6 AS covered_s,
            sum(part * dt_us) / 1e6 AS seen_s,
            sum(part * dt_us) FILTER (power_cap OR thermal_slowdown OR hardware_slowdown) / 1e6 AS throttled_s,
            sum(part * dt_us) FILTER (utilisation_pct > 0) / 1e6 AS busy_s,
            sum(part * dt_us) FILTER (coalesce(power_instant_mw, power_average_mw) IS NOT NULL) / 1e6 AS powered_s,
            sum(part * dt_us * coalesce(power_instant_mw, power_average_mw)) / 1e9 AS power_ws,
            max(coalesce(power_instant_mw, power_average_mw)) / 1e3 AS max_power_w,
            avg(temperature_c) AS mean_temperature_c,
            max(temperature_c) AS max_temperature_c,
            sum(part * energy_mj) FILTER (energy_method = 0 AND integral_mj IS NOT NULL) / 1e3 AS check_counter_j,
            sum(part * integral_mj) FILTER (energy_method = 0) / 1e3 AS check_integral_j,
            count(*) AS samples
        FROM parts GROUP BY gpu_id, minute_us
    ),
    gaps AS (
        SELECT gpu_id, t_us, dt_us, energy_mj, minute_us
        FROM gpu_bridge JOIN touched USING (gpu_id)
        WHERE t_us > $1 AND t_us - dt_us <= $2 AND t_us > minute_us AND t_us - dt_us < minute_us + {MINUTE_US}
    ),
    gap_parts AS (
        SELECT *, least(t_us, minute_us + {MINUTE_US}) - greatest(t_us - dt_us, minute_us) AS overlap_us FROM gaps
    ),
    bridged AS (
        SELECT
            gpu_id,
            minute_us,
            sum(energy_mj / 1e3 * overlap_us / dt_us) AS interpolated_j,
            sum(overlap_us) FILTER (energy_mj IS NOT NULL) / 1e6 AS bridged_s,
            sum(overlap_us) / 1e6 AS gap_s
        FROM gap_parts GROUP BY gpu_id, minute_us
    )
    SELECT
        gpu_id,
        minute_us,
        coalesce(counter_j, 0) AS counter_j,
        coalesce(integral_j, 0) AS integral_j,
        coalesce(interpolated_j, 0) AS interpolated_j,
        coalesce(covered_s, 0) AS covered_s,
        coalesce(bridged_s, 0) AS bridged_s,
        coalesce(seen_s, 0) + coalesce(gap_s, 0) AS provisioned_s,
        coalesce(throttled_s, 0) AS throttled_s,
        coalesce(busy_s, 0) AS busy_s,
        coalesce(powered_s, 0) AS powered_s,
        power_ws / nullif(powered_s, 0) AS mean_power_w,
        max_power_w,
        mean_temperature_c,
        max_temperature_c,
        coalesce(check_counter_j, 0) AS check_counter_j,
        coalesce(check_integral_j, 0) AS check_integral_j,
        coalesce(samples, 0) AS samples
    FROM touched
    LEFT JOIN sampled USING (gpu_id, minute_us)
    LEFT JOIN bridged USING (gpu_id, minute_us)
    WHERE samples IS NOT NULL OR gap_s IS NOT NULL
"""

# grain: one row per GPU and hour, from its minutes
REBUILD_HOURS = f"""
    INSERT INTO gpu_hour BY NAME
    SELECT
        minute.gpu_id,
        minute.minute_us // {HOUR_US} * {HOUR_US} AS hour_us,
        sum(counter_j) AS counter_j,
        sum(integral_j) AS integral_j,
        sum(interpolated_j) AS interpolated_j,
        sum(covered_s) AS covered_s,
        sum(bridged_s) AS bridged_s,
        sum(provisioned_s) AS provisioned_s,
        sum(throttled_s) AS throttled_s,
        sum(busy_s) AS busy_s,
        sum(powered_s) AS powered_s,
        sum(mean_power_w * powered_s) / nullif(sum(powered_s), 0) AS mean_power_w,
        max(max_power_w) AS max_power_w,
        sum(mean_temperature_c * samples) / nullif(sum(samples) FILTER (mean_temperature_c IS NOT NULL), 0)
            AS mean_temperature_c,
        max(max_temperature_c) AS max_temperature_c,
        sum(check_counter_j) AS check_counter_j,
        sum(check_integral_j) AS check_integral_j,
        sum(samples) AS samples
    FROM gpu_minute AS minute
    JOIN touched_hour AS hour
      ON minute.gpu_id = hour.gpu_id
     AND minute.minute_us >= hour.hour_us AND minute.minute_us < hour.hour_us + {HOUR_US}
    WHERE minute.minute_us >= $1 AND minute.minute_us < $2 + {HOUR_US}
    GROUP BY ALL
"""
