"""Addresses in a router's settings: engines that were seen, at the shape of the pool, where others can reach them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from app.answers.split_export import export_split
from app.config import Config
from app.facts.fields import FIRST_MOMENT
from app.split.demand import parse_demand
from app.store.database import Store
from app.store.membership import assign_fleets
from tests.batches import MODEL, SECOND, T0, Clock, at, batch, engine, put, writing
from tests.split.builders import a_fleet, a_run, an_option

SETTINGS: dict[str, Any] = {"fleet": [{"name": "h100", "gpu": "*"}], "node": [{"match": "*", "fleet": "h100"}]}
NOW = at(T0 + 60 * SECOND)


def deployments(store: Store, *engines: dict[str, Any], fleet: str = "h100") -> list[tuple[str, int]]:
    """api_base and weight of each, for a demand of MODEL on one fleet, with these engines seen on node-7."""
    rows = [{"t_us": T0 + 5 * SECOND, "generated_tokens": 3, "engine": place} for place in range(len(engines))]
    with writing(store, Clock(T0 + 5 * SECOND)) as taking:
        put(taking, batch(1, engines=[engine(**one) for one in engines], engine_rows=rows))
    assign_fleets(store, Config.model_validate(SETTINGS), FIRST_MOMENT)
    offered = a_fleet(fleet)
    one = {"name": "c", "model": MODEL, "requests_per_s": 1, "prompt_tokens": 100, "generated_tokens": 100}
    demand = parse_demand({"class": [one], "fleet": [offered.offer.model_dump()]}, "test")
    text = export_split(store, demand, [an_option(offered, a_run(model=MODEL))], "litellm", NOW)
    params = [one["litellm_params"] for one in yaml.safe_load(text)["model_list"]]
    return [(one["api_base"], one["weight"]) for one in params]


def test_engines_of_the_pool_s_fleet_model_and_gpus_share_its_weight(store: Store) -> None:
    """Also where the engine says the model's name without its organisation; at the path below which it serves."""
    found = deployments(
        store,
        {"url": "http://10.0.0.7:8000/metrics"},
        {"url": "https://node8:8000/proxy/metrics", "model": MODEL.rsplit("/", 1)[-1]},
        {"url": "http://10.0.0.9:8000/metrics", "model": "another"},
    )
    assert found == [("http://10.0.0.7:8000/v1", 500), ("https://node8:8000/proxy/v1", 500)]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/metrics", "http://localhost:8000/metrics", "http://[::1]:8/m"])
def test_an_address_that_means_another_machine_elsewhere_is_to_be_filled_in(store: Store, url: str) -> None:
    assert deployments(store, {"url": url}) == [("http://fill-in-h100-1gpu.invalid:8000/v1", 1000)]


def test_engines_of_another_fleet_are_not_taken(store: Store) -> None:
    found = deployments(store, {"url": "http://10.0.0.7:8000/metrics"}, fleet="other")
    assert found == [("http://fill-in-other-1gpu.invalid:8000/v1", 1000)]
