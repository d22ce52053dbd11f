"""How asking grid providers and price sources went the last time: kept, so that it is told with and without a hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

from app.store.database import Store
from app.store.reader import Reader
from collectors.http.problem import SourceProblem


@dataclass(frozen=True)
class SourceState:
    """place: of a grid provider the zone, of a price source the market. asked_at None: never asked. answered_at: the
    last usable answer. problem None: the last time went well.

    problem_kind: of a SourceProblem, or `absent`: the provider lacks what it needs. retry_at: when it is asked again.
    """

    provider: str
    place: str
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    problem: str | None = None
    problem_kind: str | None = None
    advice: str | None = None
    retry_at: datetime | None = None

    def after(self, problem: SourceProblem | None, now: datetime, retry_at: datetime | None) -> Self:
        """Once it was asked. problem: why nothing is from just now. retry_at: when it is asked again after that."""
        if problem is None:
            return replace(
                self, asked_at=now, answered_at=now, problem=None, problem_kind=None, advice=None, retry_at=None
            )
        return replace(
            self, asked_at=self.asked_at if problem.in_cool_down else now, problem=problem.what,
            problem_kind=problem.kind, advice=problem.advice, retry_at=retry_at,
        )  # fmt: skip


@dataclass(frozen=True)
class GridState(SourceState):
    """forecast_problem: why there are no forecasts, where that is not over in a while."""

    forecast_problem: str | None = None


@dataclass(frozen=True)
class PriceState(SourceState):
    """refused: (card, why) of the prices in the last answer that are not used."""

    refused: tuple[tuple[str, str], ...] = ()


# The table of each, and how it calls the place. One row per provider and place.
_TABLES: Mapping[type[SourceState], tuple[str, str]] = {
    GridState: ("grid_state", "zone"),
    PriceState: ("price_state", "market"),
}
_State = TypeVar("_State", bound=SourceState)


def write_state(store: Store, state: SourceState) -> None:
    with store.transaction(beside_ingest=True) as connection:
        connection.execute(_write(type(state)), [_stored(getattr(state, one.name)) for one in fields(state)])


def read_grid_states(reader: Reader) -> dict[tuple[str, str], GridState]:
    """By provider and zone."""
    return _read(reader, GridState)


def read_price_states(reader: Reader) -> dict[tuple[str, str], PriceState]:
    """By provider and market."""
    return _read(reader, PriceState)


def _write(kind: type[SourceState]) -> str:
    """One row: written, or written over."""
    (table, place), names = _TABLES[kind], _columns(kind)
    return f"""
        INSERT INTO {table} ({", ".join(names)}) VALUES ({", ".join("?" for _ in names)})
        ON CONFLICT (provider, {place}) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in names[2:])}
    """


def _read(reader: Reader, kind: type[_State]) -> dict[tuple[str, str], _State]:
    table, place = _TABLES[kind]
    rows = reader.query(f"SELECT {', '.join(_columns(kind))} FROM {table} ORDER BY provider, {place}").iter_rows()
    states = (kind(*map(_told, fields(kind), row)) for row in rows)
    return {(state.provider, state.place): state for state in states}


def _columns(kind: type[SourceState]) -> list[str]:
    return [_TABLES[kind][1] if one.name == "place" else one.name for one in fields(kind)]


def _stored(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, tuple) else value


def _told(column: Any, value: Any) -> Any:
    if column.name == "refused":
        return tuple((card, why) for card, why in json.loads(value))
    return value.astimezone(UTC) if isinstance(value, datetime) else value
