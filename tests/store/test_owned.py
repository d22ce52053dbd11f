"""For how long owned GPUs belong to their fleets: from their first sample, or their plan's date, on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.answers.facts import take_over
from app.facts.fact import Fact
from app.facts.kinds import Membership
from app.store.database import Store
from app.store.facts import append_facts
from app.store.owned import member_rows
from tests.answers.accounting import CONFIG, HOME_CARD, NOW, START, minutes_of
from tests.batches import HOUR, MINUTE, T0, Clock, batch, gpu, put, uuid_of, writing
from tests.store.test_rollup import roll_up_all

DAY_BEFORE = T0 - 24 * HOUR


@pytest.fixture
def home(store: Store) -> Store:
    """Two cards of desk-1, in fleet home; their first samples are of 04:20, and the hub saw them a day later."""
    cards = [gpu("desk-1", name=HOME_CARD), gpu("desk-1", index=1, name=HOME_CARD)]
    rows = [*minutes_of(400, 10, first=20), *minutes_of(400, 10, first=20, gpu=1)]
    with writing(store, Clock(T0 + 24 * HOUR), raw_days=3000) as taking:
        put(taking, batch(1, node="desk-1", gpus=cards, rows=rows, labels={"team": "research"}))
    roll_up_all(store)
    take_over(store, CONFIG, NOW - timedelta(hours=1))
    return store


def members(
    store: Store, *segments: tuple[int, int, int], by: str = "none", dated: bool = False
) -> list[dict[str, Any]]:
    return member_rows(store, segments, by, NOW, owned=["home"], dated=["home"] if dated else [])


def test_a_gpu_belongs_to_its_fleet_from_its_first_sample_on(home: Store) -> None:
    """From 04:20 to 06:00, though they were gone at 04:30."""
    [row] = members(home, (0, T0 - HOUR, T0 + 2 * HOUR))
    assert (row["fleet"], row["gpu_name"]) == ("home", HOME_CARD)
    assert row["member_s"] == pytest.approx(2 * (2400 + 3600))


def test_a_minute_that_is_left_of_the_first_hour_is_not_taken_for_its_first(home: Store) -> None:
    """Minutes before 04:25 are gone, and those before 05:00 are not asked."""
    with home.transaction() as connection:
        connection.execute("DELETE FROM gpu_minute WHERE minute_us < $1", [T0 + 25 * MINUTE])
    [row] = member_rows(
        home, [(0, T0 - HOUR, T0 + 2 * HOUR)], "none", NOW, owned=["home"], dated=[], oldest_minute_us=T0 + 25 * MINUTE
    )
    assert row["member_s"] == pytest.approx(2 * (600 + 3600))


def test_once_minutes_are_gone_the_first_hour_says_for_how_long(home: Store) -> None:
    """It has 10 minutes, taken as its last."""
    with home.transaction() as connection:
        connection.execute("DELETE FROM gpu_minute")
    [row] = members(home, (0, T0 - HOUR, T0 + 2 * HOUR))
    assert row["member_s"] == pytest.approx(2 * (600 + 3600))


def test_where_the_plan_says_since_when_the_past_counts_too(home: Store) -> None:
    [row] = members(home, (0, DAY_BEFORE, DAY_BEFORE + HOUR), dated=True)
    assert row["member_s"] == pytest.approx(2 * 3600)
    assert members(home, (0, DAY_BEFORE, DAY_BEFORE + HOUR)) == []


def test_segments_of_one_position_count_together(home: Store) -> None:
    later = T0 + 5 * HOUR
    rows = members(
        home, (0, later, later + HOUR), (1, later + HOUR, later + 90 * MINUTE), (0, later + 2 * HOUR, later + 3 * HOUR)
    )
    assert [(row["position"], row["member_s"]) for row in rows] == [
        (0, pytest.approx(2 * 7200)),
        (1, pytest.approx(3600)),
    ]


def test_a_card_that_left_the_fleet_is_paid_no_more(home: Store) -> None:
    moved = START + timedelta(hours=5, minutes=30)
    append_facts(home, [Fact("membership", "desk-1", moved, NOW, "sold", Membership(fleet="other"))])
    [row] = members(home, (0, T0 + 5 * HOUR, T0 + 7 * HOUR))
    assert row["member_s"] == pytest.approx(2 * 1800)
    before = member_rows(
        home, [(0, T0 + 5 * HOUR, T0 + 7 * HOUR)], "none", NOW - timedelta(seconds=1), owned=["home"], dated=[]
    )
    assert before[0]["member_s"] == pytest.approx(2 * 7200)  # by the knowledge of before


def test_a_move_counts_from_the_next_whole_minute_on_as_in_all_that_is_read(home: Store) -> None:
    moved = START + timedelta(hours=5, minutes=29, seconds=23)
    append_facts(home, [Fact("membership", "desk-1", moved, NOW, "sold", Membership(fleet="other"))])
    segment = (0, T0 + 5 * HOUR, T0 + 7 * HOUR)
    for fleet, minutes in (("home", 30), ("other", 90)):
        [row] = member_rows(home, [segment], "none", NOW, owned=[fleet], dated=[])
        assert row["member_s"] == pytest.approx(2 * minutes * 60)


def test_a_card_that_left_before_its_first_sample_was_never_there(home: Store) -> None:
    """Its first sample is of 04:20: it does not count from then on back to when its node left, at 04:10."""
    left = START + timedelta(minutes=10)
    append_facts(home, [Fact("membership", "desk-1", left, NOW, "sold", Membership(fleet="other"))])
    assert members(home, (0, T0 - HOUR, T0 + 2 * HOUR)) == []


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("node", [{"node": "desk-1"}]),
        ("gpu", [{"gpu": uuid_of("desk-1", index), "node": "desk-1"} for index in range(2)]),
        ("label:team", [{"node": "desk-1", "label": "research"}]),
        ("fleet_model", [{}]),
    ],
)
def test_rows_have_the_key_that_is_asked_for(home: Store, by: str, keys: list[dict[str, str]]) -> None:
    rows = members(home, (0, T0 + 5 * HOUR, T0 + 6 * HOUR), by=by)
    assert [{name: row[name] for name in ("gpu", "node", "label") if name in row} for row in rows] == keys
    assert sum(row["member_s"] for row in rows) == pytest.approx(2 * 3600)


def test_nothing_owned_or_asked_is_nothing(home: Store) -> None:
    assert members(home) == []
    assert member_rows(home, [(0, T0, T0 + HOUR)], "none", NOW, owned=[], dated=[]) == []
