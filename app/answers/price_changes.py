"""Question: which prices, tariffs, PUEs and zones changed within a range of time?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from app.answers.query import AccountQuery
from app.facts.book import FactBook
from app.facts.kinds import Kind
from app.facts.words import in_words
from app.store.database import Store
from app.store.facts import fact_book

_KINDS: tuple[Kind, ...] = ("price", "tariff", "pue", "zone")
_JUST_BEFORE = timedelta(microseconds=1)


def price_changes(store: Store, query: AccountQuery) -> list[dict[str, Any]]:
    """{"at", "fleet", "kind", "what"} in the order of time; what a tariff does by its own clock is no change of it."""
    book = fact_book(store, query.known_at)
    fleets = [query.fleet] if query.fleet is not None else book.fleets
    found = [(moment, fleet, kind, what) for fleet in fleets for moment, kind, what in _of_fleet(book, fleet, query)]
    return [
        {"at": moment.isoformat(), "fleet": fleet, "kind": kind, "what": what}
        for moment, fleet, kind, what in sorted(found)
    ]


def _of_fleet(book: FactBook, fleet: str, query: AccountQuery) -> Iterator[tuple[datetime, str, str]]:
    for kind in _KINDS:
        for moment in book.changes(kind, fleet, query.start, query.end):
            fact = book.at(kind, fleet, moment)
            # A price of owned GPUs also changes when they come into service or retire.
            if kind == "price" or fact != book.at(kind, fleet, moment - _JUST_BEFORE):
                yield moment, kind, in_words(fact.value if fact else None)
