"""Facts in the store: added all or none, never changed, read by what was known when; memberships reach node_fleet."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.config import Config
from app.facts.fact import Fact
from app.facts.kinds import Membership
from app.store import facts as facts_module
from app.store.database import Store
from app.store.facts import append_facts, fact_book, place_memberships, read_facts
from app.store.membership import assign_fleets
from tests.batches import batch, put, writing
from tests.facts.builders import EVER, by_clock, fact, flat, owned, rented, t

FRESH = itertools.count()
ALL = [
    fact("membership", "node-7", {"fleet": "h100"}, t(1), t(6), "list"),
    fact("price", "h100", rented(2.0, billing_increment_s=60.0), t(1), t(6), "contract"),
    fact("price", "home", owned(currency="EUR", retired="2026-05-01T12:00Z"), t(1), t(6), "bill"),
    fact("tariff", "home", by_clock(0.1 + 0.2, ("mon,wed", "22:00", "06:00", -1e-7)), t(1), t(6), "bill"),
    fact("tariff", "rack", flat(1 / 3), t(1), t(6), "bill"),
    fact("tariff_hour", "home", {"per_kwh": -0.004, "currency": "EUR"}, t(1, 1, 13), t(6), "market"),
    fact("pue", "*", {"pue": 1.2}, t(1), t(6), "report"),
    fact("zone", "h100", None, t(1, 2, 3, 4), t(6), "address"),
    fact("exchange_rate", "EUR", {"usd_per_unit": 1.08}, t(1), t(6), "ECB"),
    fact("hosted_price", "a/b", {"input_usd_per_mtok": 0.1, "output_usd_per_mtok": 0.2}, t(1), t(6), "list"),
    fact("slo", "org/model", {"metric": "itl", "percentile": 95.0, "max_ms": 50.0}, t(1), t(6), "team"),
]  # fmt: skip


def pue(value: float, valid_from: datetime, known_at: datetime, source: str = "x") -> Fact:
    return fact("pue", "h100", {"pue": value}, valid_from, known_at, source)


def in_order(facts: list[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda one: (one.kind, one.subject, *one.order))


def fleet_rows(store: Store) -> list[tuple[Any, ...]]:
    sql = "SELECT name, fleet, valid_from, known_at, source FROM node_fleet JOIN node USING (node_id) ORDER BY ALL"
    return store.query(sql).rows()


def see(store: Store, *nodes: str) -> None:
    with writing(store) as taking:
        for node in nodes:
            put(taking, batch(1, node=node))


def test_facts_come_back_as_they_were_told_after_the_store_is_opened_again(store: Store) -> None:
    assert append_facts(store, ALL) == len(ALL)
    assert in_order(read_facts(store)) == in_order(ALL)
    store.close()
    again = Store.open(store.path)
    assert in_order(read_facts(again)) == in_order(ALL)
    again.close()


def test_a_new_store_has_no_fact(store: Store) -> None:
    assert read_facts(store) == []
    assert append_facts(store, []) == 0
    assert fact_book(store).fleets == []


def test_what_says_the_same_of_the_same_moment_is_no_news(store: Store) -> None:
    assert append_facts(store, [pue(1.2, t(1), t(6))]) == 1
    assert append_facts(store, [pue(1.2, t(1), t(7), "y")]) == 0
    assert append_facts(store, [pue(1.2, t(2), t(7)), pue(1.3, t(1), t(7))]) == 2
    assert append_facts(store, [pue(1.2, t(1), t(8))]) == 1  # back to what it was: that is news again
    assert append_facts(store, [pue(1.4, t(3), t(9)), pue(1.4, t(3), t(9))]) == 1


def test_a_word_may_be_noted_though_another_said_the_same(store: Store) -> None:
    append_facts(store, [pue(1.2, t(1), t(6))])
    assert append_facts(store, [pue(1.2, t(1), t(7), "y")], only_news=False) == 1
    assert [one.source for one in in_order(read_facts(store))] == ["x", "y"]


def test_no_row_is_ever_changed(store: Store) -> None:
    append_facts(store, ALL)
    before = store.query("SELECT * FROM fact ORDER BY ALL").rows()
    append_facts(store, [fact(one.kind, one.subject, None, one.valid_from, t(7)) for one in ALL])
    after = store.query("SELECT * FROM fact ORDER BY ALL").rows()
    assert set(before) < set(after)


def test_a_book_is_by_the_knowledge_asked_for(store: Store) -> None:
    append_facts(store, [pue(1.2, t(1), t(6))])
    append_facts(store, [pue(1.3, t(1), t(8))])

    def known(known_at: datetime | None) -> float | None:
        value = fact_book(store, known_at).value("pue", "h100", t(2))
        return getattr(value, "pue", None)

    assert [known(moment) for moment in (t(5), t(6), t(7), t(8), None)] == [None, 1.2, 1.2, 1.3, 1.3]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(1, 3)), max_size=6), st.randoms())
def test_the_order_in_which_facts_are_added_does_not_matter(
    store: Store, given_facts: list[tuple[int, int, int]], chance: Any
) -> None:
    facts = [pue(1.0 + value, t(month), t(6) + timedelta(days=day)) for value, day, month in given_facts]
    books = []
    for order in (facts, chance.sample(facts, len(facts))):
        subject = f"fleet-{next(FRESH)}"  # the store is the same for all examples
        told = [Fact(one.kind, subject, one.valid_from, one.known_at, one.source, one.value) for one in order]
        append_facts(store, told, only_news=False)
        book = fact_book(store)
        books.append([book.value("pue", subject, t(month, 15)) for month in range(1, 5)])
    assert books[0] == books[1]


def test_a_failure_adds_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(connection: object) -> int:
        raise duckdb.IOException("No space left on device")

    monkeypatch.setattr(facts_module, "_place", fails)
    with pytest.raises(duckdb.IOException):
        append_facts(store, ALL)
    assert read_facts(store) == []
    assert store.query("SELECT * FROM fact").is_empty()


# Memberships


def test_a_membership_of_a_node_that_was_seen_counts_at_once(store: Store) -> None:
    see(store, "node-7")
    told = fact("membership", "node-7", {"fleet": "h100"}, t(1), t(6), "list")
    append_facts(store, [told])
    assert fleet_rows(store) == [("node-7", "h100", t(1), t(6), "list")]
    assert read_facts(store) == [told]


def test_a_membership_of_a_node_that_is_yet_to_come_waits_for_it(store: Store) -> None:
    told = [fact("membership", "node-7", {"fleet": "h100"}, t(1), t(6), "list"),
            fact("membership", "node-7", None, t(3), t(6), "list")]  # fmt: skip
    append_facts(store, told)
    assert fleet_rows(store) == []
    assert place_memberships(store) == 0
    see(store, "node-7", "node-8")
    assert place_memberships(store) == 2
    assert place_memberships(store) == 0
    assert fleet_rows(store) == [("node-7", "h100", t(1), t(6), "list"), ("node-7", None, t(3), t(6), "list")]
    assert in_order(read_facts(store)) == in_order(told)


def globs(*nodes: tuple[str, str]) -> Config:
    fleets = [{"name": name, "gpu": "*"} for name in ("old", "new")]
    return Config.model_validate({"fleet": fleets, "node": [{"match": one, "fleet": fleet} for one, fleet in nodes]})


def fleet_at(store: Store, moment: datetime) -> str | None:
    value = fact_book(store).value("membership", "node-7", moment)
    return value.fleet if isinstance(value, Membership) else None


def test_an_imported_membership_is_not_fought_by_a_pattern_at_every_start(store: Store) -> None:
    see(store, "node-7")
    assert assign_fleets(store, globs(("*", "old")), t(3)) == 1
    append_facts(store, [fact("membership", "node-7", {"fleet": "new"}, t(4), t(5), "list")])
    for month in (5, 6):
        assert assign_fleets(store, globs(("*", "old")), t(month, 2)) == 0
    assert [fleet_at(store, t(month)) for month in (1, 3, 4, 7)] == ["old", "old", "new", "new"]
    # wattmix.toml's own assignment changes: from then on it counts
    assert assign_fleets(store, globs(("rack", "old"), ("*", "new")), t(7)) == 1
    assert assign_fleets(store, globs(("*", "old")), t(8)) == 1
    assert [fleet_at(store, t(month)) for month in (6, 7, 8)] == ["new", "new", "old"]


def test_an_imported_membership_from_before_the_node_was_seen_wins_over_the_pattern(store: Store) -> None:
    append_facts(store, [fact("membership", "node-7", {"fleet": "new"}, t(1), t(1), "list")])
    see(store, "node-7")
    assert assign_fleets(store, globs(("*", "old")), t(3)) == 1
    assert place_memberships(store) == 1
    assert [fleet_at(store, moment) for moment in (EVER, t(1), t(5))] == ["old", "new", "new"]


def test_a_pattern_that_goes_does_not_end_an_imported_membership(store: Store) -> None:
    see(store, "node-7")
    assign_fleets(store, globs(("*", "old")), t(3))
    append_facts(store, [fact("membership", "node-7", {"fleet": "new"}, t(4), t(5), "list")])
    assert assign_fleets(store, globs(), t(6)) == 0
    assert fleet_at(store, t(7)) == "new"
