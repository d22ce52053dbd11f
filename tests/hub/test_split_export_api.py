"""The split as settings of a router, and its schema, over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from starlette.applications import Starlette

from app.backend.local import LocalBackend
from app.config import Config
from app.hub.parts import HubParts
from app.reference.tables import split_schema_file
from app.split.router_files import FORMATS
from app.split.scenario import what_if
from app.store.benchmarks import add_runs
from app.store.database import Store
from collectors.benchmark.run import BenchmarkRun
from tests.hub.asgi import ask

ELSEWHERE = "192.0.2.7"


@pytest.fixture
def hub(store: Store, study_runs: list[BenchmarkRun]) -> Iterator[Starlette]:
    add_runs(store, study_runs)
    parts = HubParts(store, Config())
    yield Starlette(routes=parts.api.routes())
    parts.close()


def dateless(text: str) -> str:
    return re.sub(r" at \S+\n", "\n", text, count=1)


@pytest.mark.parametrize("form", FORMATS)
def test_it_is_the_backend_s_file_for_the_same_knobs(hub: Starlette, backend: LocalBackend, form: Any) -> None:
    reply = ask(hub, "GET", "/api/v1/split/export", query={"format": form, "rps.chat": "12.5"})
    assert (reply.status, reply.headers["content-type"]) == (200, "application/yaml; charset=utf-8")
    assert reply.headers["content-disposition"] == f'attachment; filename="wattmix-{form}.yaml"'
    demand = what_if(backend.default_demand(), {"rps.chat": 12.5})
    assert dateless(reply.text) == dateless(backend.export_split(demand, form))
    body = json.dumps(demand.model_dump(mode="json", by_alias=True)).encode()
    posted = ask(
        hub, "POST", "/api/v1/split/export", query={"format": form}, body=body, content_type="application/json"
    )
    assert dateless(posted.text) == dateless(reply.text)


def test_weights_are_the_shares_of_the_split(hub: Starlette) -> None:
    """Chat goes to one H100 pool; batch to 4090s for the most part. See the shares of GET /api/v1/split."""
    shares = ask(hub, "GET", "/api/v1/split").json()["shares"]
    [document] = yaml.safe_load_all(ask(hub, "GET", "/api/v1/split/export").text)
    weights = {
        (one["model_name"].rsplit(":", 1)[1], one["model_info"]["fleet"]): one["litellm_params"]["weight"]
        for one in document["model_list"]
    }
    assert {key[0] for key in weights} == {"chat", "batch"}
    for share in shares:
        assert weights[share["class"], share["fleet"]] == pytest.approx(1000 * share["share"], abs=1)


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ({"format": "nginx"}, 400, "query `format`: given 'nginx'; accepted: litellm, production-stack, gateway-api"),
        ({"no": "1"}, 422, "query: `no`: no such knob"),
        ({"slo.chat": "1"}, 422, "no mix carries this demand, so there are no weights"),
        ({"scenario": "no such"}, 404, "no scenario 'no such'; accepted: none is saved"),
    ],
)
def test_what_cannot_be_exported_is_told(hub: Starlette, query: dict[str, str], status: int, told: str) -> None:
    reply = ask(hub, "GET", "/api/v1/split/export", query=query)
    assert reply.status == status
    assert reply.json()["error"].startswith(told)


def test_the_schema_is_served_as_it_is_written(hub: Starlette) -> None:
    reply = ask(hub, "GET", "/api/v1/split/schema")
    assert reply.headers["content-type"] == "application/schema+json"
    assert reply.body == split_schema_file().read_bytes()


@pytest.mark.parametrize("path", ["/api/v1/split/export", "/api/v1/split/schema", "/api/v1/split/scenarios"])
def test_another_machine_needs_a_read_token(hub: Starlette, path: str) -> None:
    assert ask(hub, "GET", path, client=ELSEWHERE).status == 401
