"""Membership is dated: a change of wattmix.toml is a new row, and the past keeps its own (design law 1)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from app.config import Config
from app.store.database import Store
from app.store.health import node_rows
from app.store.membership import assign_fleets
from tests.batches import DAY, HOUR, T0, at, batch, put, writing


def config(*nodes: tuple[str, str]) -> Config:
    fleets = [{"name": name, "gpu": "*"} for name in ("old", "new")]
    return Config.model_validate(
        {"fleet": fleets, "node": [{"match": match, "fleet": fleet} for match, fleet in nodes]}
    )


@pytest.fixture
def nodes(store: Store) -> Store:
    with writing(store) as taking:
        for node in ("rack1-a", "rack2-a"):
            put(taking, batch(1, node=node))
    return store


def history(store: Store, node: str = "rack1-a") -> list[tuple[Any, ...]]:
    sql = "SELECT fleet, valid_from, known_at, source FROM node_fleet JOIN node USING (node_id) WHERE name = $1 "
    return store.query(sql + "ORDER BY known_at", [node]).rows()


def first_seen(store: Store, node: str = "rack1-a") -> datetime:
    seen: datetime = store.query("SELECT first_seen FROM node WHERE name = $1", [node])["first_seen"][0]
    return seen


def fleets(store: Store, us: int = T0 + 30 * DAY) -> dict[str, str | None]:
    return {row["node"]: row["fleet"] for row in node_rows(store, at(us))}


def test_a_node_s_first_fleet_is_valid_since_1970(nodes: Store) -> None:
    now = at(T0 + HOUR)
    assert assign_fleets(nodes, config(("rack1-*", "old")), now) == 1
    assert history(nodes) == [("old", at(0), now, "wattmix.toml")]
    assert history(nodes, "rack2-a") == []
    assert fleets(nodes) == {"rack1-a": "old", "rack2-a": None}


def test_what_is_known_is_not_noted_again(nodes: Store) -> None:
    for hour in range(3):
        assert assign_fleets(nodes, config(("rack1-*", "old")), at(T0 + hour * HOUR)) == (1 if hour == 0 else 0)
    assert len(history(nodes)) == 1


def test_a_change_is_a_row_from_now_on_and_the_past_keeps_its_own(nodes: Store) -> None:
    later = at(first_seen_us(nodes) + HOUR)
    assign_fleets(nodes, config(("rack1-*", "old")), at(first_seen_us(nodes)))
    before = history(nodes)
    assert assign_fleets(nodes, config(("rack1-*", "new"), ("rack2-*", "old")), later) == 2
    assert history(nodes) == [*before, ("new", later, later, "wattmix.toml")]
    assert fleets(nodes) == {"rack1-a": "new", "rack2-a": "old"}


def first_seen_us(store: Store) -> int:
    return int(first_seen(store).timestamp() * 1e6)


def test_a_node_that_leaves_its_fleet_belongs_to_none_from_then_on(nodes: Store) -> None:
    start = first_seen_us(nodes)
    assign_fleets(nodes, config(("rack1-*", "old")), at(start))
    assert assign_fleets(nodes, config(), at(start + HOUR)) == 1
    assert [row[0] for row in history(nodes)] == ["old", None]
    assert fleets(nodes) == {"rack1-a": None, "rack2-a": None}
    for hour in (2, 3):  # and it is news once
        assert assign_fleets(nodes, config(), at(start + hour * HOUR)) == 0
    assert len(history(nodes)) == 2


def test_a_node_may_come_back_to_its_fleet(nodes: Store) -> None:
    start = first_seen_us(nodes)
    for hour, given in enumerate((config(("*", "old")), config(("*", "new")), config(("*", "old")))):
        assert assign_fleets(nodes, given, at(start + hour * HOUR)) == 2
    assert [row[0] for row in history(nodes)] == ["old", "new", "old"]


def test_no_node_and_no_fleet_are_no_news(store: Store) -> None:
    assert assign_fleets(store, config(("*", "old")), at(T0)) == 0
    with writing(store) as taking:
        put(taking, batch(1))
    assert assign_fleets(store, Config(), at(T0)) == 0
