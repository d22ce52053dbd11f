"""Migration 7: what-ifs of the split that somebody saved by name."""

from __future__ import annotations

SCENARIOS: tuple[str, ...] = (
    # one row per scenario that is kept
    """
    CREATE TABLE scenario (
        name              VARCHAR PRIMARY KEY,
        demand            VARCHAR NOT NULL,      -- JSON, as POST /api/v1/split takes it
        saved_at          TIMESTAMPTZ NOT NULL
    )
    """,
)
