"""The routes beside the split's own: what the backend answers, of the configured demand or of the body's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from app.backend.local import LocalBackend
from app.backend.over_http import HubBackend
from app.config import Config
from app.hub.parts import HubParts
from app.split.scenario import what_if
from app.store.benchmarks import add_runs
from app.store.database import Store
from collectors.benchmark.run import BenchmarkRun
from tests.hub.asgi import ask
from tests.hub_process import running


@pytest.fixture
def hub(backend: LocalBackend) -> Iterator[Starlette]:
    parts = HubParts(backend.store, backend.config)
    yield Starlette(routes=parts.api.routes())
    parts.close()


def answer_of(backend: LocalBackend, name: str, **asked: Any) -> Any:
    answer = getattr(backend, f"split_{name}")(**asked)
    return json.loads(json.dumps(answer))


@pytest.mark.parametrize(
    ("name", "query", "asked"),
    [
        ("front", {}, {}),
        ("front", {"against": "slo.chat"}, {"against": "slo.chat"}),
        ("shadow", {}, {}),
        ("robustness", {"inputs": "usd.h100,util"}, {"inputs": ["usd.h100", "util"]}),
        ("robustness", {"inputs": ""}, {"inputs": []}),
    ],
)
def test_get_and_post_answer_what_the_backend_does(
    hub: Starlette, backend: LocalBackend, name: str, query: dict[str, str], asked: dict[str, Any]
) -> None:
    path = f"/api/v1/split/{name}"
    expected = answer_of(backend, name, **asked)
    assert ask(hub, "GET", path, query=query).json() == expected
    body = json.dumps(backend.default_demand().model_dump(by_alias=True, mode="json")).encode()
    assert ask(hub, "POST", path, query=query, body=body, content_type="application/json").json() == expected


@pytest.mark.parametrize("name", ["front", "shadow"])
def test_knobs_turn_what_is_asked(hub: Starlette, backend: LocalBackend, name: str) -> None:
    knobs = {"rps.chat": "20", "usd.h100": "3"}
    turned = what_if(backend.default_demand(), knobs)
    answer = ask(hub, "GET", f"/api/v1/split/{name}", query=knobs).json()
    assert answer == answer_of(backend, name, demand=turned)
    assert answer != ask(hub, "GET", f"/api/v1/split/{name}").json()


@pytest.mark.parametrize(
    ("path", "query", "status", "words"),
    [
        ("front", {"against": "slo.batch"}, 422, "`against`: given 'slo.batch'; accepted: carbon, slo.chat"),
        ("front", {"agianst": "carbon"}, 422, "query: `agianst`: no such knob"),
        ("shadow", {"against": "carbon"}, 422, "query: `against`: no such knob"),
        ("robustness", {"inputs": "usd.a100"}, 422, "`inputs`: given 'usd.a100'; accepted: rps.chat"),
    ],
)
def test_a_wrong_parameter_is_told(hub: Starlette, path: str, query: dict[str, str], status: int, words: str) -> None:
    reply = ask(hub, "GET", f"/api/v1/split/{path}", query=query)
    assert reply.status == status
    assert words in reply.json()["error"]


@pytest.mark.parametrize("name", ["front", "shadow", "robustness"])
def test_a_wrong_body_is_told(hub: Starlette, name: str) -> None:
    path = f"/api/v1/split/{name}"
    assert ask(hub, "POST", path, body=b"{}", content_type="text/plain").status == 415
    reply = ask(hub, "POST", path, body=b"{}", content_type="application/json")
    assert reply.status == 422 and reply.json()["error"].startswith("body: ")
    reply = ask(hub, "POST", path, query={"rps.chat": "5"}, body=b"{}", content_type="application/json")
    assert reply.status == 400 and "no such parameter" in reply.json()["error"]


def test_a_hub_backend_answers_as_the_store_does(tmp_path: Path, study_runs: list[BenchmarkRun]) -> None:
    """Design law 7."""
    store = Store.open(tmp_path / "s.duckdb")
    add_runs(store, study_runs)
    local = LocalBackend(store, Config())
    demand = what_if(local.default_demand(), {"rps.chat": "12"})
    asked: list[tuple[str, dict[str, Any]]] = [
        ("front", {}),
        ("front", {"demand": demand, "against": "slo.chat"}),
        ("shadow", {"demand": demand}),
        ("robustness", {"demand": demand, "inputs": ["util"]}),
        ("robustness", {"inputs": []}),
    ]
    expected = [answer_of(local, name, **words) for name, words in asked]
    store.close()
    with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
        backend = HubBackend(hub.address)
        for (name, words), answer in zip(asked, expected, strict=True):
            assert getattr(backend, f"split_{name}")(**words) == answer, name
