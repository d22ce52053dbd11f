"""Dated facts in the store, with the prices of markets beside them: read all, add some. Rows are never changed.

Memberships are added to `fact` under the node's name, and carried into `node_fleet`, which the readers of rollups use,
once the node has been seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

import duckdb
import polars as pl

from app.facts.book import FactBook
from app.facts.fact import Fact
from app.facts.fields import FIRST_MOMENT
from app.facts.kinds import FactValue, Kind, Membership, parse_value
from app.facts.market_prices import MarketPrice
from app.store.database import Store
from app.store.market_prices import read_market_prices

_SCHEMA: dict[str, Any] = {
    "kind": pl.String, "subject": pl.String, "valid_from": pl.Datetime("us", "UTC"),
    "known_at": pl.Datetime("us", "UTC"), "value": pl.String, "source": pl.String,
}  # fmt: skip
_PLACED_SCHEMA: dict[str, Any] = {
    "node_id": pl.Int32, "fleet": pl.String, "valid_from": pl.Datetime("us", "UTC"),
    "known_at": pl.Datetime("us", "UTC"), "source": pl.String,
}  # fmt: skip

# one row per fact
_FACTS = "SELECT kind, subject, valid_from, known_at, source, value FROM fact"

# one row per membership of a node that was seen
_MEMBERSHIPS = "SELECT name, valid_from, known_at, source, fleet FROM node_fleet JOIN node USING (node_id)"

# one row per membership of a node that was seen since, and that node_fleet does not have yet
_UNPLACED = """
    SELECT node.node_id, value, valid_from, known_at, source
    FROM fact JOIN node ON node.name = fact.subject
    WHERE kind = 'membership' AND NOT EXISTS (
        SELECT 1 FROM node_fleet
        WHERE node_fleet.node_id = node.node_id AND node_fleet.valid_from = fact.valid_from
          AND node_fleet.known_at = fact.known_at AND node_fleet.source = fact.source
    )
"""


@dataclass(frozen=True)
class _Known:
    revision: int
    facts: list[Fact]
    prices: list[MarketPrice]
    book: FactBook
    last_known_at: datetime


_read: WeakKeyDictionary[Store, _Known] = WeakKeyDictionary()


def read_facts(store: Store) -> list[Fact]:
    """All facts, whatever is known when; memberships of wattmix.toml among them."""
    return _all(store).facts


def fact_book(store: Store, known_at: datetime | None = None) -> FactBook:
    """What is in force when, by the knowledge of `known_at` (None: all there is)."""
    known = _all(store)
    if known_at is None or known.last_known_at <= known_at:
        return known.book
    return FactBook(known.facts, known_at, known.prices)


def append_facts(store: Store, facts: Sequence[Fact], *, only_news: bool = True) -> int:
    """Add facts, all or none; how many were added.

    only_news: those that say otherwise than is known of their very moment.
    """
    with store.transaction() as connection:
        news = _news(_rows(store), facts) if only_news else facts
        if news:
            rows = [(one.kind, one.subject, one.valid_from, one.known_at, one.value_json, one.source) for one in news]
            _insert(connection, "fact", pl.DataFrame(rows, schema=_SCHEMA, orient="row"))
            _place(connection)
    if news:
        store.facts_revision += 1
    return len(news)


def place_memberships(store: Store) -> int:
    """Carry memberships that were told before their node was seen into node_fleet; how many there were."""
    if store.query(_UNPLACED).is_empty():
        return 0
    with store.transaction() as connection:
        placed = _place(connection)
    store.facts_revision += 1
    return placed


def _all(store: Store) -> _Known:
    """Read once per revision of the facts: years of hourly prices are many rows."""
    revision = store.facts_revision
    known = _read.get(store)
    if known is None or known.revision != revision:
        facts = list({fact.identity: fact for fact in _rows(store)}.values())
        prices = read_market_prices(store)
        known_ats = [fact.known_at for fact in facts] + [price.known_at for price in prices]
        book = FactBook(facts, market_prices=prices)
        known = _read[store] = _Known(revision, facts, prices, book, max(known_ats, default=FIRST_MOMENT))
    return known


def _rows(store: Store) -> Iterator[Fact]:
    with store.snapshot() as query:
        facts, memberships = query(_FACTS, []), query(_MEMBERSHIPS, [])
    for kind, subject, valid_from, known_at, source, value in facts.iter_rows():
        yield Fact(kind, subject, _utc(valid_from), _utc(known_at), source, _value(kind, value))
    for name, valid_from, known_at, source, fleet in memberships.iter_rows():
        value = None if fleet is None else Membership(fleet=fleet)
        yield Fact("membership", name, _utc(valid_from), _utc(known_at), source, value)


def _value(kind: Kind, text: str | None) -> FactValue | None:
    return None if text is None else parse_value(kind, json.loads(text))


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _news(known: Iterable[Fact], facts: Sequence[Fact]) -> list[Fact]:
    last: dict[tuple[Kind, str, datetime], Fact] = {}
    for fact in sorted(known, key=lambda one: one.order):
        last[fact.kind, fact.subject, fact.valid_from] = fact
    news = []
    for fact in facts:
        key = (fact.kind, fact.subject, fact.valid_from)
        said = last.get(key)
        if said is None or said.value != fact.value:
            news.append(fact)
            last[key] = fact
    return news


def _place(connection: duckdb.DuckDBPyConnection) -> int:
    rows = [
        (node_id, json.loads(value)["fleet"] if value else None, valid_from, known_at, source)
        for node_id, value, valid_from, known_at, source in connection.sql(_UNPLACED).pl().iter_rows()
    ]
    if rows:
        _insert(connection, "node_fleet", pl.DataFrame(rows, schema=_PLACED_SCHEMA, orient="row"))
    return len(rows)


def _insert(connection: duckdb.DuckDBPyConnection, table: str, frame: pl.DataFrame) -> None:
    connection.register(f"incoming_{table}", frame)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming_{table}")
    connection.unregister(f"incoming_{table}")
