"""The schema, one migration after another. A released migration is never edited; a change is the next one."""

from __future__ import annotations

# grain: one row per GPU and bucket
_GPU_ROLLUP = """
    CREATE TABLE {table} (
        gpu_id                INTEGER NOT NULL,
        {bucket}_us           BIGINT NOT NULL,       -- start of the bucket, UTC microseconds since 1970
        counter_j             DOUBLE NOT NULL,       -- energy by the cumulative counter
        integral_j            DOUBLE NOT NULL,       -- energy by a power integral, where the counter was not sound
        interpolated_j        DOUBLE NOT NULL,       -- counter differences across gaps, spread evenly
        covered_s             DOUBLE NOT NULL,       -- seconds with an energy from samples
        bridged_s             DOUBLE NOT NULL,       -- seconds of gaps with an energy
        provisioned_s         DOUBLE NOT NULL,       -- seconds the GPU was there: samples and bridged gaps
        throttled_s           DOUBLE NOT NULL,
        busy_s                DOUBLE NOT NULL,       -- seconds with utilisation above 0
        powered_s             DOUBLE NOT NULL,       -- seconds behind mean_power_w
        mean_power_w          DOUBLE,
        max_power_w           DOUBLE,
        mean_temperature_c    DOUBLE,
        max_temperature_c     DOUBLE,
        check_counter_j       DOUBLE NOT NULL,       -- counter energy of the intervals that also have an integral
        check_integral_j      DOUBLE NOT NULL,       -- and that integral
        samples               BIGINT NOT NULL
    )
"""

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

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
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
    ),
    (
        # one row per machine that ever sent a batch
        """
        CREATE TABLE node (
            node_id           INTEGER PRIMARY KEY,
            name              VARCHAR NOT NULL UNIQUE,
            first_seen        TIMESTAMPTZ NOT NULL
        )
        """,
        # one row per node: what its last batch said of it
        """
        CREATE TABLE node_state (
            node_id           INTEGER PRIMARY KEY,
            last_seen         TIMESTAMPTZ NOT NULL,  -- the hub's clock
            last_sample_us    BIGINT,                -- the node's clock
            skew_s            DOUBLE,                -- the node's clock less the hub's, when the batch arrived
            agent_version     VARCHAR,
            driver_version    VARCHAR,
            boot_id           VARCHAR,
            epoch             VARCHAR,
            sequence          BIGINT,
            status            VARCHAR,               -- why there are no GPU samples, NULL when all is well
            twin_seen         TIMESTAMPTZ,           -- when two machines last sent under this one name
            late_rows         BIGINT NOT NULL,       -- rows refused for their time, since the node is known
            skipped_batches   BIGINT NOT NULL,       -- sequence numbers that never came
            labels            VARCHAR NOT NULL,      -- JSON
            missing           VARCHAR NOT NULL,      -- JSON: field -> reason
            agent             VARCHAR NOT NULL       -- JSON: the last row of agent_samples
        )
        """,
        # one row per physical GPU, with what the last batch said of it
        """
        CREATE TABLE gpu (
            gpu_id            INTEGER PRIMARY KEY,
            uuid              VARCHAR NOT NULL UNIQUE,
            node_id           INTEGER NOT NULL,
            first_seen        TIMESTAMPTZ NOT NULL,
            name              VARCHAR NOT NULL,
            gpu_index         INTEGER NOT NULL,      -- a display value, never an identity
            pci_bus_id        VARCHAR,
            power_limit_mw    INTEGER,
            memory_total_bytes BIGINT,
            energy_method     VARCHAR,
            energy_scope      VARCHAR NOT NULL,
            mig_enabled       BOOLEAN,
            persistence_mode  BOOLEAN,
            status            VARCHAR NOT NULL
        )
        """,
        # one row per change of a node's fleet: dated membership
        """
        CREATE TABLE node_fleet (
            node_id           INTEGER NOT NULL,
            fleet             VARCHAR,               -- NULL: belongs to none from then on
            valid_from        TIMESTAMPTZ NOT NULL,
            known_at          TIMESTAMPTZ NOT NULL,
            source            VARCHAR NOT NULL
        )
        """,
        # one row per agent and epoch: the highest sequence that is in the store
        """
        CREATE TABLE ledger (
            agent             VARCHAR NOT NULL,
            epoch             VARCHAR NOT NULL,
            sequence          BIGINT NOT NULL,
            PRIMARY KEY (agent, epoch)
        )
        """,
        # one row per GPU and second; covers (t - dt, t]
        """
        CREATE TABLE gpu_sample (
            gpu_id            INTEGER NOT NULL,
            t_us              BIGINT NOT NULL,       -- UTC microseconds since 1970
            dt_us             INTEGER NOT NULL,
            energy_mj         INTEGER,
            energy_method     UTINYINT,              -- position in samples.ENERGY_METHODS
            integral_mj       INTEGER,
            power_instant_mw  INTEGER,
            power_average_mw  INTEGER,
            utilisation_pct   UTINYINT,
            memory_utilisation_pct UTINYINT,
            memory_used_kib   INTEGER,               -- whole pages: no byte is lost
            temperature_c     SMALLINT,
            sm_clock_mhz      INTEGER,
            memory_clock_mhz  INTEGER,
            power_cap         BOOLEAN,
            thermal_slowdown  BOOLEAN,
            hardware_slowdown BOOLEAN
        )
        """,
        # one row per gap in a GPU's samples during which it was there
        """
        CREATE TABLE gpu_bridge (
            gpu_id            INTEGER NOT NULL,
            t_us              BIGINT NOT NULL,       -- end of the gap
            dt_us             BIGINT NOT NULL,
            energy_mj         BIGINT                 -- the counter's difference across it; NULL when unknown
        )
        """,
        # one row per node and second
        """
        CREATE TABLE host_sample (
            node_id           INTEGER NOT NULL,
            t_us              BIGINT NOT NULL,
            dt_us             BIGINT NOT NULL,
            cpu_energy_mj     INTEGER,
            dram_energy_mj    INTEGER,
            memory_used_bytes BIGINT,
            memory_total_bytes BIGINT,
            load_1m_milli     INTEGER
        )
        """,
        # one row per process seen on a GPU, every ten seconds
        """
        CREATE TABLE process_sample (
            gpu_id            INTEGER NOT NULL,
            t_us              BIGINT NOT NULL,
            pid               INTEGER,
            memory_used_bytes BIGINT
        )
        """,
        # one row: raw samples up to this time may have been deleted, so nothing up to it is rebuilt
        "CREATE TABLE raw_horizon (deleted_up_to_us BIGINT NOT NULL)",
        "INSERT INTO raw_horizon VALUES (0)",
        # one row per GPU and minute whose rollup is out of date
        """
        CREATE TABLE dirty_minute (
            gpu_id            INTEGER NOT NULL,
            minute_us         BIGINT NOT NULL
        )
        """,
        *(
            _GPU_ROLLUP.format(table=table, bucket=bucket)
            for table, bucket in (("gpu_minute", "minute"), ("gpu_hour", "hour"))
        ),
        # one row per token; the token itself is not kept
        """
        CREATE TABLE token (
            token_id          VARCHAR PRIMARY KEY,
            name              VARCHAR NOT NULL,
            scope             VARCHAR NOT NULL,      -- node: may only write; read: may only read
            node              VARCHAR,               -- the only node it may write for; NULL: any
            sha256            VARCHAR NOT NULL,
            created_at        TIMESTAMPTZ NOT NULL,
            revoked_at        TIMESTAMPTZ
        )
        """,
    ),
    (
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
    ),
    (
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
    ),
    (
        # one row per value that a provider of grid intensity told, when it told otherwise than before: append-only
        """
        CREATE TABLE grid_point (
            zone              VARCHAR NOT NULL,
            provider          VARCHAR NOT NULL,
            kind              VARCHAR NOT NULL,      -- average, or marginal: of the next kWh, never in a total
            basis             VARCHAR NOT NULL,      -- lifecycle, direct, or provider: it does not say
            start_us          BIGINT NOT NULL,       -- [start, end), UTC microseconds since 1970
            end_us            BIGINT NOT NULL,
            g_per_kwh         DOUBLE,                -- NULL: the provider has no usable value
            reason            VARCHAR,               -- why it is NULL
            estimated         BOOLEAN NOT NULL,
            estimation_method VARCHAR,
            is_forecast       BOOLEAN NOT NULL,
            issued_at         TIMESTAMPTZ,           -- of a forecast, where the provider tells it
            known_at          TIMESTAMPTZ NOT NULL,  -- when it was asked for
            revised_at        TIMESTAMPTZ            -- when the provider says it changed it
        )
        """,
        # one row per provider and zone: how asking went the last time
        """
        CREATE TABLE grid_state (
            provider          VARCHAR NOT NULL,
            zone              VARCHAR NOT NULL,
            asked_at          TIMESTAMPTZ,           -- NULL: never
            answered_at       TIMESTAMPTZ,           -- the last answer with something usable in it; NULL: none yet
            problem           VARCHAR,               -- what went wrong the last time; NULL: nothing
            problem_kind      VARCHAR,               -- SourceProblem.kind, or absent: it lacks what it needs
            advice            VARCHAR,
            retry_at          TIMESTAMPTZ,           -- when it is asked again after the problem
            forecast_problem  VARCHAR,               -- the same of its forecasts
            PRIMARY KEY (provider, zone)
        )
        """,
    ),
)
