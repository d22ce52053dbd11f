"""Migration 1: what the store is for, and benchmark runs."""

from __future__ import annotations

BENCHMARKS: tuple[str, ...] = (
    # one row per store
    """
    CREATE TABLE store_purpose (
        purpose VARCHAR NOT NULL  -- 'user', or 'demo': may be recreated without asking
    )
    """,
    # one row per benchmark run: measured facts only, figures are derived when read
    """
    CREATE TABLE benchmark_run (
        run_id                 VARCHAR PRIMARY KEY,  -- digest of the facts, see BenchmarkRun.run_id
        model                  VARCHAR NOT NULL,
        backend                VARCHAR,
        gpu_name               VARCHAR NOT NULL,
        gpu_count              BIGINT NOT NULL,
        offered_requests_per_s DOUBLE,               -- NULL: all requests at once
        burstiness             DOUBLE,
        max_concurrency        BIGINT,
        num_prompts            BIGINT NOT NULL,
        completed              BIGINT NOT NULL,
        duration_s             DOUBLE NOT NULL,
        prompt_tokens          BIGINT NOT NULL,
        generated_tokens       BIGINT NOT NULL,
        recorded_at            TIMESTAMPTZ,          -- the file's date, read as UTC
        source_file            VARCHAR NOT NULL,
        source_index           BIGINT NOT NULL,      -- 0-based object in the file
        source_line            BIGINT NOT NULL       -- 1-based
    )
    """,
    # one row per run, metric and statistic
    """
    CREATE TABLE benchmark_latency (
        run_id    VARCHAR NOT NULL,
        metric    VARCHAR NOT NULL,                  -- ttft, tpot, itl, e2e
        statistic VARCHAR NOT NULL,                  -- mean, std, or pNN
        value_ms  DOUBLE NOT NULL,
        PRIMARY KEY (run_id, metric, statistic)
    )
    """,
)
