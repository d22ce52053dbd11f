"""Migration 2: nodes, GPUs, their samples and rollups, agents and their ledger, and tokens."""

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

GPUS: tuple[str, ...] = (
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
)
