"""Migration 3: engines, their samples, rollups and latencies, and scheduled reports."""

from __future__ import annotations

# What an engine did, by interval, minute or hour; NULL where the engine does not tell it.
_ENGINE_COUNTS = """
        prompt_tokens      BIGINT,                -- cached ones included
        cached_tokens      BIGINT,                -- of them from a cache, as the engine counts
        transferred_tokens BIGINT,                -- of those from another engine
        prefix_query_tokens BIGINT,               -- what older engines tell instead: tokens looked up,
        prefix_hit_tokens  BIGINT,                -- and found; a waiting request may be looked up again and again
        generated_tokens   BIGINT,
        finished_stop      BIGINT,
        finished_length    BIGINT,
        finished_aborted   BIGINT,
        finished_failed    BIGINT,
        rejected           BIGINT,
        preemptions        BIGINT,
        prefill_us         BIGINT,                -- sums over the requests that finished
        decode_us          BIGINT,
        queue_us           BIGINT,
        inference_us       BIGINT,
        ttft_us            BIGINT,                -- sums behind the buckets
        itl_us             BIGINT,
        e2e_us             BIGINT,
"""

# grain: one row per engine and bucket of time
_ENGINE_ROLLUP = f"""
    CREATE TABLE {{table}} (
        engine_id          INTEGER NOT NULL,
        {{bucket}}_us          BIGINT NOT NULL,       -- start, UTC microseconds since 1970
        {_ENGINE_COUNTS}
        seen_s             DOUBLE NOT NULL,       -- seconds that scrapes cover
        gap_s              DOUBLE NOT NULL,       -- of them, in intervals longer than a minute: spread evenly
        busy_s             DOUBLE NOT NULL,       -- seconds of intervals with a running request or a token
        gauged_s           DOUBLE NOT NULL,       -- seconds behind the two means
        mean_running       DOUBLE,
        mean_waiting       DOUBLE,
        max_waiting        BIGINT,
        max_kv_usage_ppm   INTEGER,
        scrapes            BIGINT NOT NULL
    )
"""

# grain: one row per engine, bucket of time, metric and latency bucket that holds a request
_ENGINE_LATENCY = """
    CREATE TABLE {table} (
        engine_id          INTEGER NOT NULL,
        {bucket}_us          BIGINT NOT NULL,
        metric             UTINYINT NOT NULL,     -- position in samples.LATENCY_METRICS
        lower_us           BIGINT NOT NULL,       -- the latency bucket is (lower, upper]
        upper_us           BIGINT,                -- NULL: unbounded
        n                  BIGINT NOT NULL
    )
"""

ENGINES: tuple[str, ...] = (
    "ALTER TABLE node ADD COLUMN simulated BOOLEAN DEFAULT false",
    # one row per serving engine that was ever seen: (node, url, label, model) is its identity
    """
    CREATE TABLE engine (
        engine_id         INTEGER PRIMARY KEY,
        node_id           INTEGER NOT NULL,
        url               VARCHAR NOT NULL,
        label             VARCHAR NOT NULL,      -- '' where the URL has but one engine
        model             VARCHAR,               -- NULL: not known
        kind              VARCHAR NOT NULL,
        version           VARCHAR,
        started_us        BIGINT,
        status            VARCHAR NOT NULL,
        labels            VARCHAR NOT NULL,      -- JSON
        first_seen        TIMESTAMPTZ NOT NULL,
        last_seen         TIMESTAMPTZ NOT NULL   -- the hub's clock, at most a few seconds old
    )
    """,
    # one row per change of the GPUs that an engine runs on: dated, the past keeps its own
    """
    CREATE TABLE engine_gpus (
        engine_id         INTEGER NOT NULL,
        uuids             VARCHAR[],             -- NULL: not known from then on
        source            VARCHAR,               -- config, processes, environment
        valid_from        TIMESTAMPTZ NOT NULL,
        known_at          TIMESTAMPTZ NOT NULL
    )
    """,
    # one row per engine and scrape; covers (t - dt, t]
    f"""
    CREATE TABLE engine_sample (
        engine_id          INTEGER NOT NULL,
        t_us               BIGINT NOT NULL,
        dt_us              BIGINT NOT NULL,
        {_ENGINE_COUNTS}
        running            INTEGER,
        waiting            INTEGER,
        kv_usage_ppm       INTEGER
    )
    """,
    # one row per set of bounds that latency buckets ever had
    """
    CREATE TABLE latency_layout (
        layout_id          INTEGER PRIMARY KEY,
        bounds_us          BIGINT[] NOT NULL     -- ascending; the last bucket has none
    )
    """,
    # one row per engine, scrape and metric in which a request fell: from the first occupied bucket to the last
    """
    CREATE TABLE engine_latency_sample (
        engine_id          INTEGER NOT NULL,
        t_us               BIGINT NOT NULL,
        dt_us              BIGINT NOT NULL,
        metric             UTINYINT NOT NULL,
        layout_id          INTEGER NOT NULL,
        first_bucket       UTINYINT NOT NULL,
        n                  INTEGER[] NOT NULL
    )
    """,
    # one row per engine, scrape, metric and latency bucket that holds a request: the same, spread out
    """
    CREATE VIEW engine_latency_scrape AS
    SELECT
        engine_id, t_us, dt_us, metric,
        CASE bucket WHEN 0 THEN 0 ELSE bounds_us[bucket] END AS lower_us,
        bounds_us[bucket + 1] AS upper_us,       -- NULL past the last bound
        n
    FROM (
        SELECT
            engine_id, t_us, dt_us, metric, layout_id,
            first_bucket + unnest(range(len(n))) AS bucket, unnest(n) AS n
        FROM engine_latency_sample
    )
    JOIN latency_layout USING (layout_id)
    WHERE n > 0
    """,
    # one row per engine and minute whose rollup is out of date
    """
    CREATE TABLE dirty_engine_minute (
        engine_id          INTEGER NOT NULL,
        minute_us          BIGINT NOT NULL
    )
    """,
    *(
        statement.format(table=table, bucket=bucket)
        for bucket in ("minute", "hour")
        for table, statement in (
            (f"engine_{bucket}", _ENGINE_ROLLUP),
            (f"engine_latency_{bucket}", _ENGINE_LATENCY),
        )
    ),
    # one row per schedule: from when on its due times count
    """
    CREATE TABLE report_schedule (
        name              VARCHAR PRIMARY KEY,
        created_at        TIMESTAMPTZ NOT NULL
    )
    """,
    # one row per due time of a schedule that was dealt with, and per run by hand (due_at NULL)
    """
    CREATE TABLE report_run (
        schedule          VARCHAR NOT NULL,
        due_at            TIMESTAMPTZ,           -- NULL: run by hand
        status            VARCHAR NOT NULL,      -- waiting, written, retrying, failed, skipped
        attempts          INTEGER NOT NULL,
        ran_at            TIMESTAMPTZ,           -- the last attempt; NULL: none yet
        known_at          TIMESTAMPTZ,           -- knowledge that the report used; NULL: there is no file
        window_from       TIMESTAMPTZ NOT NULL,
        window_to         TIMESTAMPTZ NOT NULL,
        folder            VARCHAR,
        file              VARCHAR,               -- name within that folder
        sha256            VARCHAR,
        rows              BIGINT,
        coverage          DOUBLE,                -- mean of the rows', weighted by GPU-hours
        error             VARCHAR                -- why there is no file
    )
    """,
)
