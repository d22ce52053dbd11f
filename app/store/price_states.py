"""How asking each price source went the last time: kept in the store, so that it is told with and without a hub."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from app.store.database import Store
from app.store.reader import Reader

# one row per provider and market
_STATES = "SELECT * FROM price_state ORDER BY provider, market"


@dataclass(frozen=True)
class PriceState:
    """asked_at None: never asked. answered_at: the last usable answer. problem None: the last time went well.

    retry_at: when it is asked again. refused: (card, why) of the prices in the last answer that are not used.
    """

    provider: str
    market: str
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    problem: str | None = None
    problem_kind: str | None = None
    advice: str | None = None
    retry_at: datetime | None = None
    refused: tuple[tuple[str, str], ...] = ()


_NAMES = [field.name for field in fields(PriceState)]
# one row: written, or written over
_WRITE = f"""
    INSERT INTO price_state ({", ".join(_NAMES)}) VALUES ({", ".join("?" for _ in _NAMES)})
    ON CONFLICT (provider, market) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _NAMES[2:])}
"""


def write_price_state(store: Store, state: PriceState) -> None:
    with store.transaction(beside_ingest=True) as connection:
        connection.execute(_WRITE, list((asdict(state) | {"refused": json.dumps(state.refused)}).values()))


def read_price_states(reader: Reader) -> dict[tuple[str, str], PriceState]:
    """By provider and market."""
    states = map(_state, reader.query(_STATES).iter_rows(named=True))
    return {(state.provider, state.market): state for state in states}


def _state(row: dict[str, Any]) -> PriceState:
    moments = {name: value.astimezone(UTC) for name, value in row.items() if isinstance(value, datetime)}
    refused = tuple((card, why) for card, why in json.loads(row["refused"]))
    return PriceState(**row | moments | {"refused": refused})
