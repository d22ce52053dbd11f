"""Migration 6: what markets asked for GPUs, and how asking them goes."""

from __future__ import annotations

PRICES: tuple[str, ...] = (
    # one row per price that a market told, when it told otherwise than before or had not for days: append-only
    """
    CREATE TABLE market_price (
        gpu_name          VARCHAR NOT NULL,      -- as the reference tables spell the card, where they know it
        provider          VARCHAR NOT NULL,
        market            VARCHAR NOT NULL,      -- secure, community, spot or on_demand
        usd_per_gpu_hour  DOUBLE,                -- NULL: the market is not asked any more; what it said has ended
        count             INTEGER NOT NULL,      -- offers that the price rests on
        as_of             TIMESTAMPTZ NOT NULL,  -- when the provider said so: from then on it counts
        known_at          TIMESTAMPTZ NOT NULL   -- when it was written down
    )
    """,
    # one row per provider and market: how asking went the last time
    """
    CREATE TABLE price_state (
        provider          VARCHAR NOT NULL,
        market            VARCHAR NOT NULL,
        asked_at          TIMESTAMPTZ,           -- NULL: never
        answered_at       TIMESTAMPTZ,           -- the last answer with something usable in it; NULL: none yet
        problem           VARCHAR,               -- what went wrong the last time; NULL: nothing
        problem_kind      VARCHAR,               -- SourceProblem.kind
        advice            VARCHAR,
        retry_at          TIMESTAMPTZ,           -- when it is asked again after the problem
        refused           VARCHAR NOT NULL,      -- JSON list of [card, why]: prices just told that are not used
        PRIMARY KEY (provider, market)
    )
    """,
)
