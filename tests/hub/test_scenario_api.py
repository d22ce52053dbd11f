"""Scenarios over HTTP: kept, listed, split by name, deleted; written only on the hub's own machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette

from app.backend.local import LocalBackend
from app.config import Config
from app.hub.parts import HubParts
from app.split.scenario import what_if
from app.store.benchmarks import add_runs
from app.store.database import Store
from app.store.facts import append_facts
from collectors.benchmark.run import BenchmarkRun
from tests.facts.builders import fact, rented
from tests.hub.asgi import Reply, ask

PATH = "/api/v1/split/scenarios"
ELSEWHERE = "192.0.2.7"


@pytest.fixture
def hub(store: Store, study_runs: list[BenchmarkRun]) -> Iterator[Starlette]:
    add_runs(store, study_runs)
    parts = HubParts(store, Config())
    yield Starlette(routes=parts.api.routes())
    parts.close()


def post(hub: Starlette, content: Any, client: str = "127.0.0.1") -> Reply:
    return ask(hub, "POST", PATH, body=json.dumps(content).encode(), content_type="application/json", client=client)


def names(hub: Starlette) -> list[str]:
    return [one["name"] for one in ask(hub, "GET", PATH).json()["scenarios"]]


def test_knobs_are_kept_as_the_demand_they_make(hub: Starlette, backend: LocalBackend) -> None:
    """To the last digit: 0.1 + 0.2 stays what it is."""
    knobs = {"rps.chat": 0.1 + 0.2, "usd.h100": 2.5}
    reply = post(hub, {"name": "  cheap H100s ", "knobs": knobs})
    assert reply.status == 200
    assert (reply.json()["name"], reply.json()["replaced"]) == ("cheap H100s", False)
    demand = what_if(backend.default_demand(), knobs)
    [kept] = ask(hub, "GET", PATH).json()["scenarios"]
    assert kept["demand"] == json.loads(json.dumps(demand.model_dump(mode="json", by_alias=True)))
    assert kept["demand"]["class"][0]["requests_per_s"] == 0.30000000000000004
    assert post(hub, {"name": "cheap H100s", "demand": kept["demand"]}).json()["replaced"] is True
    assert names(hub) == ["cheap H100s"]


def test_a_split_by_the_scenario_s_name_has_its_figures_whatever_prices_become(
    hub: Starlette, backend: LocalBackend, store: Store
) -> None:
    post(hub, {"name": "now", "knobs": {"rps.chat": 7.25}})
    before = ask(hub, "GET", "/api/v1/split", query={"scenario": "now"}).json()
    assert before == ask(hub, "GET", "/api/v1/split", query={"rps.chat": "7.25"}).json()
    append_facts(store, [fact("price", "h100", rented(3.0), source="contract")])
    after = ask(hub, "GET", "/api/v1/split", query={"scenario": "now"}).json()
    assert after["usd_per_hour"] == before["usd_per_hour"]
    turned = ask(hub, "GET", "/api/v1/split", query={"scenario": "now", "rps.chat": "5"}).json()
    assert turned["tokens_per_s"] == pytest.approx((5 + 40) * 417)


def test_it_is_deleted_by_name(hub: Starlette) -> None:
    post(hub, {"name": "a b", "knobs": {}})
    assert ask(hub, "DELETE", f"{PATH}/a b").json() == {"deleted": "a b"}
    assert names(hub) == []
    gone = ask(hub, "DELETE", f"{PATH}/a b")
    assert (gone.status, gone.json()["error"]) == (404, "no scenario 'a b'; accepted: none is saved")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "body: `name` is text"),
        ({"name": 7}, "body: `name` is text"),
        ({"name": "a", "more": 1}, "body: `name` is text"),
        ({"name": "a", "knobs": [1]}, "body: `name` is text"),
        ({"name": "a", "knobs": {"carbon": 1}, "demand": {}}, "body: `name` is text"),
        ({"name": " "}, "scenario: its name is 1 to 100 printable characters without a slash"),
        ({"name": "a/b"}, "scenario: its name is 1 to 100 printable characters without a slash"),
        ({"name": "a\nb"}, "scenario: its name is 1 to 100 printable characters without a slash"),
        ({"name": "x" * 101}, "scenario: its name is 1 to 100 printable characters without a slash"),
        ({"name": "a", "knobs": {"no": 1}}, "body: `no`: no such knob"),
        ({"name": "a", "knobs": {"util": 2}}, "body: `util`: given 2; accepted: a number <= 1"),
        ({"name": "a", "demand": {"class": []}}, "body: `class`"),
        ({"name": "a", "demand": 7}, "body: "),
        ([], "body: a JSON object"),
    ],
    ids=str,
)
def test_what_cannot_be_kept_is_told_and_nothing_is(hub: Starlette, content: Any, told: str) -> None:
    reply = post(hub, content)
    assert reply.status in (400, 422)
    assert reply.json()["error"].startswith(told), reply.json()
    assert names(hub) == []


def test_no_other_machine_writes_even_with_a_token(hub: Starlette) -> None:
    body = json.dumps({"name": "reader", "scope": "read", "node": None}).encode()
    token = ask(hub, "POST", "/api/v1/tokens", body=body, content_type="application/json").json()["token"]
    post(hub, {"name": "mine", "knobs": {}})
    read = ask(hub, "GET", PATH, client=ELSEWHERE, token=token)
    assert [one["name"] for one in read.json()["scenarios"]] == ["mine"]
    assert post(hub, {"name": "theirs", "knobs": {}}, client=ELSEWHERE).status == 403
    deleted = ask(hub, "DELETE", f"{PATH}/mine", client=ELSEWHERE, token=token)
    assert (deleted.status, names(hub)) == (403, ["mine"])
    assert ask(hub, "POST", PATH, body=b"{}", content_type="text/plain").status == 415
