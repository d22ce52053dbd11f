"""Statements that fill the tables of a store with rows of made-up GPUs and engines.

They read the tables bench_gpu and bench_engine, and bench_span: from when and up to when.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.big_fleet import FIRST_US, HOUR_US, MINUTE_US, NOW_US


@dataclass(frozen=True)
class _Latency:
    """Bounds of buckets in ms, the first of them that holds a request, and how many of a request's observations each
    bucket from there on has."""

    bounds_ms: tuple[int, ...]
    first_bucket: int
    shares: tuple[float, ...]


# In the order of samples.LATENCY_METRICS; vLLM's buckets about the middle.
_METRICS = (
    _Latency((20, 40, 60, 80, 100, 250, 500, 750, 1000), 1, (0.34, 0.36, 0.15, 0.07, 0.05, 0.02, 0.006, 0.004)),
    _Latency((10, 25, 50, 75, 100, 150, 200), 0, (60, 120, 20, 5, 2, 1, 0.2)),
    _Latency((300, 500, 800, 1000, 1500, 2000, 2500, 5000, 10000, 15000), 1,
             (0.03, 0.06, 0.08, 0.2, 0.2, 0.15, 0.2, 0.06, 0.02)),
)  # fmt: skip


_SINCE = f"make_timestamptz({FIRST_US}::BIGINT)"
# what is registered is read once, so that joins are planned well
TEMPORARY = (
    "CREATE OR REPLACE TEMP TABLE bench_engine AS SELECT * FROM made_engines",
    """
    CREATE OR REPLACE TEMP TABLE bench_gpu AS
    SELECT made.*, engine_id, coalesce(replica_gpus, 0) AS replica_gpus FROM made_gpus AS made
    LEFT JOIN (SELECT engine_id, unnest(gpu_ids) AS gpu_id, len(gpu_ids) AS replica_gpus FROM made_engines)
    USING (gpu_id)
    """,
)
REGISTER = (
    *(
        f"INSERT INTO latency_layout SELECT {metric + 1}, {[1000 * bound for bound in one.bounds_ms]} "
        "ON CONFLICT DO NOTHING"
        for metric, one in enumerate(_METRICS)
    ),
    f"INSERT INTO node SELECT node_id, name, {_SINCE}, false FROM made_nodes ON CONFLICT DO NOTHING",
    f"""
    INSERT INTO node_state BY NAME
    SELECT node_id, make_timestamptz({NOW_US}::BIGINT) AS last_seen, {NOW_US} AS last_sample_us, 0 AS skew_s,
           0 AS late_rows, 0 AS skipped_batches,
           '{{}}' AS labels, '{{}}' AS missing, '{{}}' AS agent FROM made_nodes
    ON CONFLICT DO NOTHING
    """,
    f"""
    INSERT INTO gpu BY NAME
    SELECT gpu_id, uuid, node_id, {_SINCE} AS first_seen, name, gpu_index, 'gpu' AS energy_scope, 'ok' AS status
    FROM made_gpus ON CONFLICT DO NOTHING
    """,
    f"""
    INSERT INTO engine BY NAME
    SELECT engine_id, node_id, url, '' AS label, model, 'vllm' AS kind, 'ok' AS status, labels,
           {_SINCE} AS first_seen, make_timestamptz({NOW_US}::BIGINT) AS last_seen
    FROM made_engines ON CONFLICT DO NOTHING
    """,
    f"""
    INSERT INTO engine_gpus
    SELECT engine_id, uuids, 'config', {_SINCE}, {_SINCE} FROM made_engines ANTI JOIN engine_gpus USING (engine_id)
    """,
)


def _random(salt: str, *columns: str) -> str:
    """0 to 1, the same each time for the same row."""
    return f"(hash({', '.join(columns)}, '{salt}') / {2**64 - 1}.0)"


def _noise(spread: float, salt: str, *columns: str) -> str:
    """About 1."""
    return f"(1 + {spread} * ({_random(salt, *columns)} - 0.5))"


def _load(moment: str) -> str:
    """A day's wave, 0.1 to 1."""
    return f"(0.55 + 0.45 * cos(2 * pi() * ({moment} / {HOUR_US}.0 - 14) / 24))"


def _bucket(bucket: str, step_us: int) -> str:
    """One row per moment of the span."""
    return f"(SELECT unnest(range(start_us, end_us, {step_us})) AS {bucket}_us FROM bench_span)"


def _use(bucket: str, step_us: int) -> tuple[str, ...]:
    """One row per GPU and bucket, as gpu_<bucket> and gpu_use_<bucket>: in one of 300 a part of it is a gap."""
    step_s, row = step_us / 1e6, ("gpu_id", f"{bucket}_us")
    rows = f"""
        CREATE OR REPLACE TEMP TABLE bench_use AS
        SELECT
            gpu_id, engine_id, replica_gpus, {bucket}_us, idle_w, loaded_w,
            {step_s} * CASE WHEN {_random("gap", *row)} < 1 / 300 THEN {_random("there", *row)} ELSE 1 END
                AS provisioned_s,
            {_load(f"{bucket}_us")} * {_noise(0.2, "load", *row)} AS load,
            CASE WHEN engine_id IS NULL THEN 0 ELSE least(1, 0.25 + load) END AS busy,
            provisioned_s * busy AS used_s,
            (idle_w + (loaded_w - idle_w) * busy) * {_noise(0.05, "power", *row)} AS power_w,
            CASE WHEN {_random("measured", *row)} < 1 / 50 THEN 0.95 ELSE 1 END AS measured
        FROM bench_gpu CROSS JOIN {_bucket(bucket, step_us)}
    """
    return (
        rows,
        f"""
        INSERT INTO gpu_{bucket} BY NAME
        SELECT
            gpu_id, {bucket}_us, power_w * provisioned_s * measured AS counter_j, 0 AS integral_j, 0 AS interpolated_j,
            provisioned_s * measured AS covered_s, 0 AS bridged_s, provisioned_s, 0 AS throttled_s, used_s AS busy_s,
            covered_s AS powered_s, power_w AS mean_power_w, power_w * 1.2 AS max_power_w,
            60 AS mean_temperature_c, 70 AS max_temperature_c, counter_j AS check_counter_j,
            counter_j * {_noise(0.01, "check", *row)} AS check_integral_j, round(provisioned_s)::BIGINT AS samples
        FROM bench_use ORDER BY {bucket}_us, gpu_id
        """,
        f"""
        INSERT INTO gpu_use_{bucket} BY NAME
        SELECT
            gpu_id, engine_id, {bucket}_us, provisioned_s, used_s,
            power_w * provisioned_s * measured AS known_j, 0 AS interpolated_j,
            power_w * provisioned_s * (1 - measured) AS estimated_j, 0 AS unknown_s,
            least((provisioned_s - used_s) * idle_w, known_j + estimated_j) AS idle_j,
            provisioned_s * measured AS covered_s, 0 AS bridged_s, 0 AS throttled_s,
            nullif(replica_gpus, 0) AS replica_gpus, (engine_id IS NOT NULL)::INTEGER AS sharers, 0 AS split_by
        FROM bench_use ORDER BY {bucket}_us, gpu_id
        """,
    )


def _engines(bucket: str, step_us: int) -> tuple[str, ...]:
    """One row per engine and bucket, and one per occupied latency bucket."""
    step_s, row = step_us / 1e6, ("engine_id", f"{bucket}_us")
    rows = f"""
        CREATE OR REPLACE TEMP TABLE bench_work AS
        SELECT engine_id, {bucket}_us,
               round({step_s} * rate * {_load(f"{bucket}_us")} * {_noise(0.3, "asked", *row)})::BIGINT AS requests
        FROM bench_engine CROSS JOIN {_bucket(bucket, step_us)}
    """
    counts = f"""
        SELECT
            engine_id, {bucket}_us, round(requests * 208 * {_noise(0.1, "prompt", *row)})::BIGINT AS prompt_tokens,
            prompt_tokens // 8 AS cached_tokens, 0 AS transferred_tokens,
            round(requests * 209 * {_noise(0.1, "generated", *row)})::BIGINT AS generated_tokens,
            requests * 85 // 100 AS finished_stop, requests - finished_stop AS finished_length,
            requests // 250 AS finished_aborted, 0 AS finished_failed, 0 AS rejected, 0 AS preemptions,
            requests * 30000 AS prefill_us, generated_tokens * 14000 AS decode_us,
            requests * 5000 AS queue_us, prefill_us + decode_us AS inference_us, prefill_us + queue_us AS ttft_us,
            decode_us AS itl_us, ttft_us + itl_us AS e2e_us
        FROM bench_work
    """
    mask = f"{2**60 - 1} AS busy_mask," if bucket == "minute" else ""
    return (
        rows,
        f"""
        INSERT INTO engine_{bucket} BY NAME
        SELECT *, {mask} {step_s} AS seen_s, 0 AS gap_s, {step_s} AS busy_s, {step_s} AS gauged_s,
               12 * {_noise(0.5, "running", *row)} AS mean_running,
               {_random("waiting", *row)} AS mean_waiting, 5 AS max_waiting, 400000 AS max_kv_usage_ppm,
               {step_s} / 5 AS scrapes
        FROM ({counts}) ORDER BY {bucket}_us, engine_id
        """,
        f"""
        INSERT INTO engine_latency_{bucket} BY NAME
        SELECT * FROM ({_latencies(bucket)}) WHERE n > 0 ORDER BY {bucket}_us // {HOUR_US}, metric, engine_id
        """,
    )


def _observed(moment: str, share: str) -> str:
    row = ("engine_id", f"{moment}_us", "metric", share)
    return f"floor(requests * {share} * {_noise(0.4, 'bucket', *row)} + {_random('last', *row)})"


def _latencies(moment: str) -> str:
    """One row per engine, moment, metric and bucket."""
    spread = ", ".join(
        f"({metric}, {([0, *one.bounds_ms])[one.first_bucket + place]}, {one.bounds_ms[one.first_bucket + place]}, "
        f"{share})"
        for metric, one in enumerate(_METRICS)
        for place, share in enumerate(one.shares)
    )
    return f"""
        SELECT engine_id, {moment}_us, metric, lower_ms * 1000 AS lower_us, upper_ms * 1000 AS upper_us,
               {_observed(moment, "share")}::BIGINT AS n
        FROM bench_work CROSS JOIN (VALUES {spread}) AS spread(metric, lower_ms, upper_ms, share)
    """


def _latency_samples() -> str:
    """One row per engine, scrape and metric in which a request fell."""
    of_metrics = " UNION ALL ".join(
        f"SELECT {metric} AS metric, {metric + 1} AS layout_id, {one.first_bucket} AS first_bucket, "
        f"{list(one.shares)} AS shares"
        for metric, one in enumerate(_METRICS)
    )
    return f"""
        SELECT engine_id, t_us, 5000000 AS dt_us, metric, layout_id, first_bucket,
               list_transform(shares, lambda share: {_observed("t", "share")}::INTEGER) AS n
        FROM bench_work CROSS JOIN ({of_metrics}) WHERE requests > 0
    """


HOURS = (*_use("hour", HOUR_US), *_engines("hour", HOUR_US))
MINUTES = (*_use("minute", MINUTE_US), *_engines("minute", MINUTE_US))
SAMPLES = (
    f"""
    INSERT INTO gpu_sample BY NAME
    SELECT
        gpu_id, t_us + 1000000 AS t_us, 1000000 AS dt_us,
        round((idle_w + (loaded_w - idle_w) * {_load("t_us")}) * 1000 * {_noise(0.1, "energy", "gpu_id", "t_us")})
            ::INTEGER AS energy_mj,
        0 AS energy_method, energy_mj + ({_random("integral", "gpu_id", "t_us")} * 2000)::INTEGER AS integral_mj,
        energy_mj AS power_instant_mw,
        energy_mj AS power_average_mw, (100 * {_random("busy", "gpu_id", "t_us")})::INTEGER AS utilisation_pct,
        utilisation_pct // 2 AS memory_utilisation_pct, 62914560 AS memory_used_kib,
        60 + utilisation_pct // 12 AS temperature_c, 1980 AS sm_clock_mhz, 2619 AS memory_clock_mhz,
        false AS power_cap, false AS thermal_slowdown, false AS hardware_slowdown
    FROM bench_gpu CROSS JOIN {_bucket("t", 1_000_000)} ORDER BY t_us // {MINUTE_US}, gpu_id, t_us
    """,
    f"""
    CREATE OR REPLACE TEMP TABLE bench_work AS
    SELECT engine_id, t_us,
           round(5 * rate * {_load("t_us")} * {_noise(0.6, "asked", "engine_id", "t_us")})::BIGINT AS requests
    FROM bench_engine CROSS JOIN (SELECT t_us + 5000000 AS t_us FROM {_bucket("t", 5_000_000)})
    """,
    f"""
    INSERT INTO engine_sample BY NAME
    SELECT
        engine_id, t_us, 5000000 AS dt_us, requests * 208 AS prompt_tokens, requests * 25 AS cached_tokens,
        0 AS transferred_tokens, requests * 209 AS generated_tokens, requests AS finished_stop, 0 AS finished_length,
        0 AS finished_aborted, 0 AS finished_failed, 0 AS rejected, 0 AS preemptions,
        requests * 30000 AS prefill_us, requests * 2900000 AS decode_us, requests * 5000 AS queue_us,
        requests * 2930000 AS inference_us, requests * 35000 AS ttft_us, requests * 2900000 AS itl_us,
        requests * 2935000 AS e2e_us, requests // 2 + 1 AS running, requests % 3 AS waiting,
        400000 AS kv_usage_ppm
    FROM bench_work ORDER BY t_us // {MINUTE_US}, engine_id, t_us
    """,
    f"""
    INSERT INTO engine_latency_sample BY NAME
    SELECT * FROM ({_latency_samples()}) ORDER BY t_us // {MINUTE_US}, metric, engine_id
    """,
)
