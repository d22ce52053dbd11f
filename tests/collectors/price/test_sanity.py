"""A live price is held against a dated list price of its own class, x0.2 to x5, and against its age."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.price.point import Market
from collectors.price.sanity import TablePrice, cautions, refusal, table_price_for
from tests.collectors.http.clocks import NOW
from tests.collectors.price.test_point import point

LISTED = TablePrice(2.0, "neocloud_community", date(2026, 11, 9))


@given(st.floats(0.001, 1000))
def test_both_ends_of_the_band_are_within_it(price: float) -> None:
    # 2.0 x 0.2 = 0.4 and 2.0 x 5 = 10
    assert (refusal(point(usd_per_gpu_hour=price), LISTED, NOW) is None) == (0.4 <= price <= 10.0)


def test_a_refusal_says_why() -> None:
    assert refusal(point(usd_per_gpu_hour=16.0), LISTED, NOW) == (
        "16 USD/GPU-h is above 0.4 to 10, which is 0.2 to 5 times the list price 2 (neocloud_community, 2026-11-09)"
    )
    assert "is below 0.4 to 10" in (refusal(point(usd_per_gpu_hour=0.25), LISTED, NOW) or "")


def test_the_price_of_a_machine_of_eight_is_refused_as_that_of_a_gpu() -> None:
    # 8 x 1.99 = 15.92 beside 1.99 for one
    listed = TablePrice(1.99, "neocloud_community", date(2026, 11, 9))
    assert refusal(point(usd_per_gpu_hour=1.99), listed, NOW) is None
    assert "above" in (refusal(point(usd_per_gpu_hour=15.92), listed, NOW) or "")


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(days=7), None),
        (timedelta(days=7, seconds=1), "stale: said 7 days ago, on 2026-11-23"),
        (timedelta(days=90), "stale: said 90 days ago"),
        (-timedelta(minutes=5), None),
        (-timedelta(hours=1), "still to come"),
    ],
)
def test_a_stale_price_is_refused_with_or_without_a_list_price(age: timedelta, words: str | None) -> None:
    for listed in (LISTED, None):
        said = refusal(point(usd_per_gpu_hour=2.0, as_of=NOW - age), listed, NOW)
        assert said is None if words is None else words in (said or "")


TABLE = [
    TablePrice(1.99, "neocloud_community", date(2026, 11, 9)),
    TablePrice(1.89, "neocloud_community", date(2026, 8, 1)),
    TablePrice(2.89, "neocloud_secure", date(2026, 11, 9)),
    TablePrice(2.79, "neocloud_secure", date(2026, 11, 9)),
    TablePrice(12.29, "hyperscaler", date(2026, 11, 30)),
    TablePrice(2.40, "marketplace", date(2026, 10, 19)),
]


@pytest.mark.parametrize(
    ("market", "expected"), [("community", 1.99), ("secure", 2.79), ("on_demand", 2.40), ("spot", 2.40)]
)
def test_community_is_held_against_community_and_secure_against_secure(market: Market, expected: float) -> None:
    chosen = table_price_for(market, TABLE)
    assert chosen is not None
    assert chosen.usd_per_gpu_hour == expected


def test_a_hyperscaler_is_no_measure_and_none_is_said() -> None:
    assert table_price_for("secure", [TABLE[4]]) is None
    assert refusal(point(), None, NOW) is None
    assert cautions(point(cautions=("thin",)), None) == ("thin", "no list price of this card to hold it against")
    assert cautions(point(), LISTED) == ()


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan")])
def test_a_list_price_is_above_0(price: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        TablePrice(price, "neocloud", date(2026, 11, 9))
