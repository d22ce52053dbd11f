"""What is in force when: by valid time and known time, whatever the order in which facts came."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.facts.book import FactBook
from app.facts.fact import Fact
from app.facts.kinds import HOUR, Pue, RentedPrice, value_content
from tests.facts.builders import EVER, by_clock, fact, flat, owned, rented, t

DAYS = st.integers(0, 60).map(lambda day: t(1) + timedelta(days=day))
PRICES = st.builds(
    lambda price, valid_from, known_at: fact("price", "h100", price, valid_from, known_at),
    st.one_of(st.none(), st.integers(1, 3).map(float).map(rented)),
    DAYS,
    DAYS,
)


def price_at(book: FactBook, moment: datetime, fleet: str = "h100") -> float | None:
    value = book.value("price", fleet, moment)
    return value.per_gpu_hour if isinstance(value, RentedPrice) else None


def test_a_fact_holds_from_its_moment_until_the_next() -> None:
    book = FactBook([fact("price", "h100", rented(2.0), t(1)), fact("price", "h100", rented(2.5), t(3))])
    assert price_at(book, t(1) - timedelta(microseconds=1)) is None
    assert price_at(book, t(1)) == 2.0
    assert price_at(book, t(3) - timedelta(microseconds=1)) == 2.0
    assert price_at(book, t(3)) == 2.5
    assert price_at(book, t(3), "other") is None


def test_a_fact_without_value_ends_what_held_before() -> None:
    book = FactBook([fact("price", "h100", rented(2.0), t(1)), fact("price", "h100", None, t(3))])
    assert [price_at(book, moment) for moment in (t(2), t(3), t(4))] == [2.0, None, None]
    assert book.at("price", "h100", t(4)) is None


def test_of_the_same_moment_the_last_known_counts_and_earlier_validity_does_not_reach_later() -> None:
    book = FactBook([
        fact("price", "h100", rented(2.0), t(1), known_at=t(1)),
        fact("price", "h100", rented(3.0), t(3), known_at=t(3)),
        fact("price", "h100", rented(2.2), t(1), known_at=t(5)),  # January corrected in May: March keeps its own
    ])  # fmt: skip
    assert [price_at(book, moment) for moment in (t(1), t(2), t(3), t(6))] == [2.2, 2.2, 3.0, 3.0]


def test_what_became_known_later_is_not_seen() -> None:
    facts = [fact("price", "h100", rented(2.0), t(1), t(1)), fact("price", "h100", rented(2.2), t(1), t(5))]
    assert price_at(FactBook(facts, known_at=t(4)), t(6)) == 2.0
    assert price_at(FactBook(facts, known_at=t(5)), t(6)) == 2.2
    assert price_at(FactBook(facts, known_at=EVER), t(6)) is None


@given(st.lists(PRICES, max_size=8), PRICES)
def test_a_fact_valid_from_a_moment_changes_nothing_before_it(facts: list[Fact], new: Fact) -> None:
    before, after = FactBook(facts), FactBook([*facts, new])
    for moment in (t(1) + timedelta(days=day) for day in range(62)):
        if moment < new.valid_from:
            assert price_at(after, moment) == price_at(before, moment)


@given(st.lists(PRICES, max_size=8), PRICES, DAYS)
def test_knowledge_of_later_is_invisible_earlier(facts: list[Fact], new: Fact, known_at: datetime) -> None:
    if new.known_at > known_at:
        before, after = FactBook(facts, known_at), FactBook([*facts, new], known_at)
        assert list(after.facts) == list(before.facts)
        assert price_at(after, t(12)) == price_at(before, t(12))


@given(st.lists(PRICES, max_size=8), st.randoms(use_true_random=False))
def test_the_order_in_which_facts_come_does_not_matter(facts: list[Fact], chance: random.Random) -> None:
    shuffled = chance.sample(facts, len(facts))
    for moment in (t(1) + timedelta(days=day) for day in range(62)):
        assert price_at(FactBook(shuffled), moment) == price_at(FactBook(facts), moment)


@given(st.lists(PRICES, max_size=8), DAYS, DAYS)
def test_between_two_changes_the_price_is_one_and_at_each_it_differs(
    facts: list[Fact], start: datetime, end: datetime
) -> None:
    book = FactBook(facts)
    edges = book.changes("price", "h100", start, end)
    assert edges == sorted(set(edges))
    assert all(start < edge < end for edge in edges)
    for moment in (start + number * timedelta(hours=12) for number in range(max((end - start).days * 2, 0))):
        since = max([edge for edge in edges if edge <= moment], default=start)
        assert price_at(book, moment) == price_at(book, since)
    for edge in edges:
        assert price_at(book, edge) != price_at(book, edge - timedelta(microseconds=1))


def test_the_same_said_again_is_no_change() -> None:
    book = FactBook([fact("price", "h100", rented(2.0), t(1)), fact("price", "h100", rented(2.0), t(2), source="x")])
    assert book.changes("price", "h100", EVER, t(12)) == [t(1)]


def test_changes_are_strictly_between_the_two() -> None:
    book = FactBook([fact("price", "h100", rented(2.0), t(1)), fact("price", "h100", rented(3.0), t(3))])
    assert book.changes("price", "h100", t(1), t(3)) == []
    assert book.changes("price", "h100", t(2), t(3) + timedelta(microseconds=1)) == [t(3)]


def test_a_fleet_without_a_pue_of_its_own_has_that_of_all() -> None:
    book = FactBook([
        fact("pue", "*", {"pue": 1.4}, t(1)), fact("pue", "h100", {"pue": 1.1}, t(2)), fact("pue", "h100", None, t(4)),
        fact("pue", "*", {"pue": 1.5}, t(3)),
    ])  # fmt: skip
    assert [book.value("pue", "h100", t(month)) for month in (1, 2, 3, 4)] == [
        Pue(pue=1.4), Pue(pue=1.1), Pue(pue=1.1), Pue(pue=1.5),
    ]  # fmt: skip
    assert book.value("pue", None, t(3)) == Pue(pue=1.5)
    assert book.own("pue", "h100", t(4)) is None
    assert book.changes("pue", "h100", EVER, t(12)) == [t(1), t(2), t(4)]
    assert book.changes("pue", None, EVER, t(12)) == [t(1), t(3)]


def test_a_price_is_a_fleet_s_own() -> None:
    book = FactBook([fact("price", "h100", rented(2.0))])
    assert book.value("price", None, t(1)) is None
    assert book.changes("price", None, EVER, t(12)) == []


def test_an_hour_s_own_price_holds_in_that_hour_only_and_may_be_negative() -> None:
    book = FactBook([
        fact("tariff", "home", flat(0.2)),
        fact("tariff_hour", "home", {"per_kwh": -0.01}, t(1, 1, 13)),
        fact("tariff_hour", "home", {"per_kwh": 0.3}, t(1, 1, 14)),
        fact("tariff_hour", "home", {"per_kwh": 0.3}, t(1, 1, 15)),
    ])  # fmt: skip

    def price(hour: int, minute: int = 0) -> float:
        found = book.electricity("home", t(1, 1, hour, minute))
        assert found is not None
        return found.per_kwh

    assert [price(12, 59), price(13), price(13, 59), price(14), price(15, 59), price(16)] == [
        0.2, -0.01, -0.01, 0.3, 0.3, 0.2,
    ]  # fmt: skip
    assert book.changes("tariff", "home", t(1), t(2)) == [t(1, 1, 13), t(1, 1, 14), t(1, 1, 16)]
    assert book.at("tariff_hour", "home", t(1, 1, 16)) is None
    assert book.changes("tariff_hour", "home", t(1), t(2)) == [t(1, 1, 13), t(1, 1, 14), t(1, 1, 16)]
    # a segment that begins within the hour sees its end
    assert book.changes("tariff", "home", t(1, 1, 15, 30), t(1, 1, 17)) == [t(1, 1, 16)]


def test_an_hour_s_price_can_be_taken_back() -> None:
    book = FactBook([
        fact("tariff", "home", flat(0.2)),
        fact("tariff_hour", "home", {"per_kwh": -0.01}, t(1, 1, 13), known_at=t(1)),
        fact("tariff_hour", "home", None, t(1, 1, 13), known_at=t(2)),
    ])  # fmt: skip
    found = book.electricity("home", t(1, 1, 13))
    assert found is not None and found.per_kwh == 0.2
    assert book.changes("tariff", "home", t(1), t(2)) == []


def test_without_a_tariff_there_is_no_price_of_electricity() -> None:
    assert FactBook([]).electricity("home", t(1)) is None
    assert FactBook([fact("tariff", "home", None)]).electricity("home", t(1)) is None


def test_a_change_of_tariff_starts_the_clock_of_the_new_one() -> None:
    # Madrid is UTC+1 in winter: 22:00 and 06:00 are 21:00 and 05:00 UTC; from 2 January 12:00 UTC on the price is flat
    night = by_clock(0.2, ("all", "22:00", "06:00", 0.1))
    book = FactBook([
        fact("tariff", "home", night, t(1)), fact("tariff", "home", flat(0.15, currency="EUR"), t(1, 2, 12)),
    ])  # fmt: skip
    assert book.changes("tariff", "home", t(1), t(1, 4)) == [t(1, 1, 5), t(1, 1, 21), t(1, 2, 5), t(1, 2, 12)]
    found = book.electricity("home", t(1, 3))
    assert found is not None
    assert (found.per_kwh, found.currency, found.fact.valid_from) == (0.15, "EUR", t(1, 2, 12))


def test_an_owned_price_changes_where_its_gpus_come_into_service_and_retire() -> None:
    value = owned(in_service="2026-02-01", retired="2026-05-01T12:00Z")
    book = FactBook([fact("price", "home", value)])
    assert book.changes("price", "home", EVER, t(12)) == [t(2), t(5, 1, 12)]
    assert book.changes("price", "home", t(2), t(5)) == []


def test_a_dollar_is_a_dollar_and_other_currencies_need_a_rate() -> None:
    book = FactBook([fact("exchange_rate", "EUR", {"usd_per_unit": 1.1}, t(2))])
    assert [book.usd_per_unit("USD", EVER), book.usd_per_unit("EUR", t(1)), book.usd_per_unit("EUR", t(2))] == [
        1.0, None, 1.1,
    ]  # fmt: skip


def test_fleets_are_those_that_a_fact_names() -> None:
    book = FactBook([
        fact("price", "b", rented(1.0)), fact("pue", "*", {"pue": 1.0}), fact("membership", "node-7", {"fleet": "a"}),
        fact("zone", "c", None), fact("slo", "org/model", {"max_ms": 100.0}), fact("membership", "node-8", None),
    ])  # fmt: skip
    assert book.fleets == ["a", "b", "c"]
    assert book.subjects("membership") == ["node-7", "node-8"]


def test_ten_thousand_hours_are_searched_by_bisection() -> None:
    """The number of facts that are looked at grows with the window, not with what the book holds."""
    facts = [
        fact("tariff_hour", "home", {"per_kwh": number % 7 / 10}, t(1) + number * HOUR) for number in range(10_000)
    ]
    book = FactBook(facts)
    assert len(book.changes("tariff", "home", t(1), t(1, 2))) == 23
    series = book._series_of("tariff_hour", "home")
    asked: list[datetime] = []

    class Counting(list[datetime]):
        def __getitem__(self, key: object) -> object:  # type: ignore[override]
            asked.append(t(1))
            return super().__getitem__(key)  # type: ignore[index]

    object.__setattr__(series, "times", Counting(series.times))
    assert book.electricity("home", t(1) + 9_999 * HOUR) is not None
    assert 0 < len(asked) <= 20  # log2(10,000) is 13.3


def test_a_value_comes_back_from_its_json() -> None:
    made = fact(
        "tariff", "home", by_clock(0.2, ("MON - fri", "22:00", "06:00", 0.1), ("sun,sat", "00:00", "24:00", 0.15))
    )
    assert made.value is not None
    content = value_content(made.value)
    assert [rule["days"] for rule in content["rules"]] == ["mon-fri", "sat,sun"]
    assert fact("tariff", "home", content) == made
