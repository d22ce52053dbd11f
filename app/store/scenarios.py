"""What-ifs of the split, saved by name: each with the demand in full, so that it stays what it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.store.database import Store

# grain: one row per scenario
_ALL = "SELECT name, demand, saved_at FROM scenario ORDER BY lower(name), name"
_ONE = "SELECT name, demand, saved_at FROM scenario WHERE name = $1"
_SAVE = """
    INSERT INTO scenario VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET demand = excluded.demand, saved_at = excluded.saved_at
"""
_DELETE = "DELETE FROM scenario WHERE name = $1"


@dataclass(frozen=True)
class Scenario:
    """demand: as POST /api/v1/split takes it."""

    name: str
    demand: dict[str, Any]
    saved_at: datetime


def scenarios(store: Store) -> list[Scenario]:
    """All that are kept, by name."""
    return list(_read(store, _ALL, []))


def find_scenario(store: Store, name: str) -> Scenario | None:
    return next(_read(store, _ONE, [name]), None)


def save_scenario(store: Store, scenario: Scenario) -> None:
    """Keep it; one of the same name is replaced."""
    with store.transaction() as connection:
        connection.execute(_SAVE, [scenario.name, json.dumps(scenario.demand), scenario.saved_at])


def delete_scenario(store: Store, name: str) -> None:
    with store.transaction() as connection:
        connection.execute(_DELETE, [name])


def _read(store: Store, sql: str, parameters: list[Any]) -> Iterator[Scenario]:
    for name, demand, saved_at in store.query(sql, parameters).iter_rows():
        yield Scenario(name, json.loads(demand), saved_at.astimezone(UTC))
