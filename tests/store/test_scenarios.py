"""Scenarios in the store: kept in full, replaced by name, and gone when they are deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.store import schema
from app.store.database import Store
from app.store.migrations import MIGRATIONS
from app.store.scenarios import Scenario, delete_scenario, find_scenario, save_scenario, scenarios

MORNING, NOON = datetime(2026, 2, 3, 8, 30, 1, 123456, tzinfo=UTC), datetime(2026, 2, 3, 12, tzinfo=UTC)
DEMAND = {"class": [{"name": "chat", "requests_per_s": 0.1 + 0.2}], "fleet": [], "solve": {"gap": 1e-3}}


def a_scenario(name: str, demand: dict[str, object] = DEMAND, saved_at: datetime = MORNING) -> Scenario:
    return Scenario(name, demand, saved_at)


def test_a_scenario_comes_back_to_the_last_digit_after_a_restart(store: Store) -> None:
    save_scenario(store, a_scenario("Black Friday"))
    store.close()
    again = Store.open(store.path)
    assert find_scenario(again, "Black Friday") == a_scenario("Black Friday")
    assert find_scenario(again, "black friday") is None
    again.close()


def test_one_of_the_same_name_is_replaced_and_they_are_listed_by_name(store: Store) -> None:
    for name in ("b", "A", "c"):
        save_scenario(store, a_scenario(name))
    save_scenario(store, a_scenario("b", {"class": []}, NOON))
    assert scenarios(store) == [a_scenario("A"), a_scenario("b", {"class": []}, NOON), a_scenario("c")]


def test_a_deleted_one_is_gone_and_the_others_stay(store: Store) -> None:
    save_scenario(store, a_scenario("a"))
    save_scenario(store, a_scenario("b"))
    delete_scenario(store, "a")
    delete_scenario(store, "no such")
    assert [one.name for one in scenarios(store)] == ["b"]


def test_a_store_of_before_gets_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(MIGRATIONS) - 1
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", MIGRATIONS[:before])
        patched.setattr(schema, "SCHEMA_VERSION", before)
        Store.open(tmp_path / "old.duckdb").close()
    store = Store.open(tmp_path / "old.duckdb")
    save_scenario(store, a_scenario("kept"))
    assert [one.name for one in scenarios(store)] == ["kept"]
    store.close()
