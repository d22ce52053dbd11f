"""Where the engines of fleets are: seen in the last hour, with the GPUs they run on, by fleet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.config import Config
from app.facts.fields import FIRST_MOMENT
from app.store.database import Store
from app.store.engine_addresses import EngineAddress, engine_addresses
from app.store.membership import assign_fleets
from tests.batches import MODEL, SECOND, T0, Clock, at, batch, engine, put, uuid_of, writing

CONFIG = Config.model_validate(
    {"fleet": [{"name": "h100", "gpu": "*"}], "node": [{"match": "node-*", "fleet": "h100"}]}
)
NODE, PAIR = "http://10.0.0.7:8000/metrics", "http://10.0.0.7:8001/metrics"
TWO_GPUS = [uuid_of("node-7"), uuid_of("node-7", 1)]


def fill(store: Store, *engines: dict[str, Any], **said: Any) -> None:
    """Engines that were seen at T0 + 5 s."""
    rows = [{"t_us": T0 + 5 * SECOND, "generated_tokens": 3, "engine": place} for place in range(len(engines))]
    with writing(store, Clock(T0 + 5 * SECOND)) as taking:
        put(taking, batch(1, engines=[engine(**one) for one in engines], engine_rows=rows, **said))
    assign_fleets(store, CONFIG, FIRST_MOMENT)


def test_addresses_by_fleet_model_and_gpus(store: Store) -> None:
    fill(store, {"url": NODE}, {"url": NODE, "label": "dp1"}, {"url": PAIR, "gpus": TWO_GPUS})
    assert list(engine_addresses(store, at(T0 + 60 * SECOND))) == [
        EngineAddress("h100", MODEL, 1, NODE),
        EngineAddress("h100", MODEL, 2, PAIR),
    ]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ({"url": NODE, "model": None}, {}),
        ({"url": NODE, "gpus": None, "gpus_source": None}, {}),
        ({"url": NODE, "status": "down"}, {}),
        ({"url": NODE}, {"simulated": True}),
    ],
    ids=["no model", "GPUs unknown", "down", "simulated"],
)
def test_an_engine_that_cannot_be_a_target_has_none(store: Store, one: dict[str, Any], said: dict[str, Any]) -> None:
    fill(store, one, **said)
    assert list(engine_addresses(store, at(T0 + 60 * SECOND))) == []


def test_an_engine_that_was_not_seen_for_an_hour_has_none(store: Store) -> None:
    fill(store, {"url": NODE})
    last = at(T0 + 5 * SECOND)
    assert len(list(engine_addresses(store, last + timedelta(minutes=59)))) == 1
    assert list(engine_addresses(store, last + timedelta(minutes=61))) == []


def test_an_engine_of_a_node_without_a_fleet_has_none(store: Store) -> None:
    fill(store, {"url": NODE, "gpus": [uuid_of("other")]}, node="other")
    assert list(engine_addresses(store, at(T0 + 60 * SECOND))) == []
