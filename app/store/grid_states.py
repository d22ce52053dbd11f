"""How asking each grid provider went the last time: kept in the store, so that it is told with and without a hub."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from app.store.database import Store
from app.store.reader import Reader

# one row per provider and zone
_STATES = "SELECT * FROM grid_state ORDER BY provider, zone"


@dataclass(frozen=True)
class GridState:
    """asked_at None: never asked. answered_at: the last usable answer. problem None: the last time went well.

    problem_kind: of a SourceProblem, or `absent`: the provider lacks what it needs. retry_at: when it is asked again.
    """

    provider: str
    zone: str
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    problem: str | None = None
    problem_kind: str | None = None
    advice: str | None = None
    retry_at: datetime | None = None
    forecast_problem: str | None = None


_NAMES = [field.name for field in fields(GridState)]
# one row: written, or written over
_WRITE = f"""
    INSERT INTO grid_state ({", ".join(_NAMES)}) VALUES ({", ".join("?" for _ in _NAMES)})
    ON CONFLICT (provider, zone) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _NAMES[2:])}
"""


def write_state(store: Store, state: GridState) -> None:
    with store.transaction(beside_ingest=True) as connection:
        connection.execute(_WRITE, list(astuple(state)))


def read_states(reader: Reader) -> dict[tuple[str, str], GridState]:
    """By provider and zone."""
    rows = reader.query(_STATES).iter_rows(named=True)
    states = (GridState(**{name: _utc(value) for name, value in row.items()}) for row in rows)
    return {(state.provider, state.zone): state for state in states}


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
