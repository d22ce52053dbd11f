"""Migration 5: grid intensity as providers told it, and how asking them goes."""

from __future__ import annotations

GRID: tuple[str, ...] = (
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
)
