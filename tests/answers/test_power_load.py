"""Power against load: measured points by replica type, from minutes, and from hours where minutes would be too many."""

from __future__ import annotations

from typing import Any

import pytest

from app.answers import power_load as module
from app.answers.power_load import power_load
from app.config import Config
from app.store.database import Store
from tests.answers.accounting import CONFIG, NOW, asked, idle, minutes_of, served, take
from tests.batches import CARD, MODEL, batch, engine, uuid_of


def filled(store: Store, **said: Any) -> None:
    """Half an hour of 300 W at 150 tokens a minute, half an hour of 100 W without any."""
    rows = [*minutes_of(300, 30), *minutes_of(100, 30, first=30)]
    take(store, batch(1, rows=rows, engine_rows=[*served(30), *idle(30, first=30)], **said))


def asked_of(store: Store, config: Config = CONFIG, **said: Any) -> dict[str, Any]:
    return power_load(store, config, asked(**said), NOW)


def test_a_type_has_a_point_per_bin_of_load(store: Store) -> None:
    """150 tokens / 60 s at 300 W: 2.5 tokens/s, 2.5 / 300 tokens/J; half an hour each."""
    filled(store)
    answer = asked_of(store)
    assert (answer["step"], answer["boundary"]) == ("minute", "gpu")
    (kind,) = answer["types"]
    assert (kind["card"], kind["gpus"], kind["model"], kind["method"]) == (CARD, 1, MODEL, "measured")
    assert kind["points"] == [
        {"tokens_per_s": 0.0, "power_w": 100.0, "tokens_per_joule": 0.0, "hours": 0.5},
        {"tokens_per_s": 2.5, "power_w": 300.0, "tokens_per_joule": pytest.approx(2.5 / 300), "hours": 0.5},
    ]
    assert "mean of all minutes" in answer["notes"][0]
    assert answer["query"]["from"] == "2026-02-03T04:00Z"


def test_hours_are_read_where_minutes_would_be_too_many_or_are_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store)
    # the hour's mean: 75 tokens/min, 200 W
    mean = [{"tokens_per_s": 1.25, "power_w": 200.0, "tokens_per_joule": 1.25 / 200, "hours": 1.0}]
    gone = asked_of(store, Config.model_validate({"store": {"minute_days": 8}}))  # NOW is 20 days later
    monkeypatch.setattr(module, "MOST_MINUTES", 59)
    for answer in (gone, asked_of(store)):
        assert (answer["step"], [kind["points"] for kind in answer["types"]]) == ("hour", [mean])
        assert "mean of all hours" in answer["notes"][0]


def test_a_simulated_replica_is_of_a_type_of_its_own(store: Store) -> None:
    """Law 10."""
    filled(store, simulated=True)
    rows = minutes_of(200, 30)
    real = batch(1, node="node-8", rows=rows, engines=[engine(gpus=[uuid_of("node-8")])], engine_rows=served(30))
    take(store, real)
    types = asked_of(store)["types"]
    assert [(kind["method"], kind["simulated"]) for kind in types] == [("measured", False), ("simulated", True)]
    assert [point["power_w"] for point in types[0]["points"]] == [200.0]


def test_filters_hold(store: Store) -> None:
    filled(store)
    assert asked_of(store, fleet="h100", model=MODEL)["types"] != []
    assert asked_of(store, fleet="home")["types"] == []
    assert asked_of(store, model="another")["types"] == []
    assert asked_of(store, first=60)["types"] == []
