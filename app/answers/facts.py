"""Questions about dated facts: what is in force, what was known when; and how facts come in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from app.config import Config
from app.errors import ImportFileError, UnknownName
from app.facts import settings, table
from app.facts.book import FactBook
from app.facts.cells import read_fact
from app.facts.fact import Fact, in_order
from app.facts.fields import LAST_MOMENT
from app.facts.kinds import ANY_FLEET, FORMS, HOUR, KINDS, USD, Membership, parse_value, value_content
from app.facts.kinds import FLEET_KINDS as FLEET_KINDS
from app.facts.words import in_words
from app.store.database import Store
from app.store.facts import append_facts, fact_book, place_memberships, read_facts
from app.store.membership import assign_fleets
from app.store.nodes import node_names

IN_FORCE, PAST, LATER, SUPERSEDED = "in force", "past", "later", "superseded"


@dataclass(frozen=True)
class Imported:
    """How many facts were news, how many were known already; notes: what to know about them."""

    new: int
    known: int
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        return {"new": self.new, "known": self.known, "notes": self.notes}


def take_over(store: Store, config: Config, now: datetime) -> int:
    """Make what wattmix.toml says known facts, where it says otherwise than it did last; how many were news."""
    news = settings.changes(read_facts(store), config.facts(), now)
    place_nodes(store, config, now)
    return append_facts(store, news, only_news=False) if news else 0


def place_nodes(store: Store, config: Config, now: datetime) -> None:
    """Give nodes that were seen since the last call the fleets that wattmix.toml and imported facts say."""
    if config.facts():
        assign_fleets(store, config, now)
    place_memberships(store)


def import_facts(store: Store, config: Config, text: str, file: str, now: datetime) -> Imported:
    """Add the facts of a CSV text, all or none. Raises ImportFileError with every finding; `file` names the source."""
    read = table.read(text, now, _zone_problem(config))
    if read.findings:
        raise ImportFileError(read.told(file))
    return _added(store, config, read.facts)


def add_fact(store: Store, config: Config, cells: Mapping[str, str], now: datetime) -> Imported:
    """Add the one fact of a form's cells. Raises ImportFileError with every finding."""
    found = read_fact({name: cell.strip() for name, cell in cells.items()}, now, _zone_problem(config))
    if isinstance(found, Fact):
        return _added(store, config, [found])
    raise ImportFileError(
        "\n".join(f"`{one.column}`: given {one.given[:60]!r}; accepted: {one.accepted}" for one in found)
    )


def facts_as_json(
    store: Store,
    now: datetime,
    *,
    kind: str | None = None,
    subject: str | None = None,
    at: datetime | None = None,
    known_at: datetime | None = None,
) -> dict[str, Any]:
    """The facts by the knowledge of `known_at` (None: now), each with its standing at this moment.

    at: only those in force then. Raises UnknownName for a kind that does not exist.
    """
    if kind is not None and kind not in KINDS:
        raise UnknownName(f"no facts of kind {kind!r}; there are: {', '.join(KINDS)}")
    book = fact_book(store, known_at or now)
    chosen = [fact for fact in book.facts if kind in (None, fact.kind) and subject in (None, fact.subject)]
    standings = _standings(chosen, at or now)
    rows = [
        fact_as_json(fact) | {"standing": standing}
        for fact, standing in standings
        if at is None or standing == IN_FORCE
    ]
    return {"known_at": (known_at or now).isoformat(), "facts": rows}


def facts_as_csv(answer: Mapping[str, Any]) -> str:
    """The facts of `facts_as_json` in the form of an import; of one moment only what is known last of it."""
    return table.write(fact_from_json(row) for row in answer["facts"] if row["standing"] != SUPERSEDED)


def fact_as_json(fact: Fact) -> dict[str, Any]:
    return {
        "kind": fact.kind,
        "subject": fact.subject,
        "valid_from": fact.valid_from.isoformat(),
        "known_at": fact.known_at.isoformat(),
        "source": fact.source,
        "value": None if fact.value is None else value_content(fact.value),
        "in_words": in_words(fact.value),
    }


def fact_from_json(row: Mapping[str, Any]) -> Fact:
    valid_from, known_at = (datetime.fromisoformat(row[name]) for name in ("valid_from", "known_at"))
    value = None if row["value"] is None else parse_value(row["kind"], row["value"])
    return Fact(row["kind"], row["subject"], valid_from, known_at, row["source"], value)


def fleets_in_force(store: Store, config: Config, now: datetime) -> list[dict[str, Any]]:
    """Each fleet, and * for GPUs of none, with the facts in force, the price of a kWh now and its nodes."""
    book = fact_book(store, now)
    members = _members(book, now)
    names = sorted({*book.fleets, *(fleet.name for fleet in config.fleet)})
    return [_fleet(book, name, members.get(name, []), now) for name in (*names, ANY_FLEET)]


def _fleet(book: FactBook, name: str, members: list[str], now: datetime) -> dict[str, Any]:
    found = {kind: book.at(kind, name, now) for kind in FLEET_KINDS}
    electricity = book.electricity(name, now)
    return {
        "fleet": name,
        "facts": {kind: fact and fact_as_json(fact) for kind, fact in found.items()},
        "electricity": electricity
        and {
            "per_kwh": electricity.per_kwh,
            "currency": electricity.currency,
            "of_the_hour": electricity.fact.kind == "tariff_hour",
        },
        "nodes": members,
    }


def _members(book: FactBook, now: datetime) -> dict[str, list[str]]:
    """The nodes of each fleet."""
    found: dict[str, list[str]] = {}
    for node in book.subjects("membership"):
        value = book.value("membership", node, now)
        if isinstance(value, Membership):
            found.setdefault(value.fleet, []).append(node)
    return found


def _standings(facts: Iterable[Fact], at: datetime) -> Iterator[tuple[Fact, str]]:
    """Each fact in order, with: in force, past (another came after it), later, or superseded by later knowledge."""
    ordered = in_order(facts)
    for fact, after in zip_longest(ordered, ordered[1:]):
        same = after is not None and (after.kind, after.subject) == (fact.kind, fact.subject)
        if after is not None and same and after.valid_from == fact.valid_from:
            yield fact, SUPERSEDED
        elif fact.valid_from > at:
            yield fact, LATER
        elif (after is not None and same and after.valid_from <= at) or _hour_is_over(fact, at):
            yield fact, PAST
        else:
            yield fact, IN_FORCE


def _hour_is_over(fact: Fact, at: datetime) -> bool:
    return fact.kind == "tariff_hour" and at >= fact.valid_from + HOUR


def _zone_problem(config: Config) -> Callable[[str], str | None]:
    """What is accepted in place of a zone that nobody knows."""

    def problem(zone: str) -> str | None:
        try:
            config.grid_factor(zone)
        except UnknownName as unknown:
            return f"a grid zone: {unknown}"
        return None

    return problem


def _added(store: Store, config: Config, facts: Sequence[Fact]) -> Imported:
    new = append_facts(store, facts)
    return Imported(new, len(facts) - new, list(_notes(store, config, facts)))


def _notes(store: Store, config: Config, facts: Sequence[Fact]) -> Iterator[str]:
    """What is odd about facts that are right in form: names that nothing else knows, a currency without a rate."""
    book = fact_book(store)
    unseen = {fact.subject for fact in facts if fact.kind == "membership"} - node_names(store)
    for node in sorted(unseen):
        yield f"node {node!r} was not seen yet: its fleet counts once it is"
    values = [book.value("membership", node, LAST_MOMENT) for node in book.subjects("membership")]
    known = {value.fleet for value in values if isinstance(value, Membership)} | {one.name for one in config.fleet}
    named = {fact.subject for fact in facts if FORMS[fact.kind].about_fleets} - {ANY_FLEET}
    for fleet in sorted(named - known):
        yield f"fleet {fleet!r}: no node belongs to it, and wattmix.toml does not name it"
    rated = {USD, *book.subjects("exchange_rate")}
    for currency in sorted({getattr(fact.value, "currency", USD) for fact in facts} - rated):
        yield f"no exchange rate for {currency}: what is in it is not known in USD (a fact of kind exchange_rate)"
