"""docs/openapi.json describes the API that there is: every route, its parameters, and answers that keep its schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from starlette.applications import Starlette

from app.accounting.account import FIGURES
from app.accounting.bill import VIEWS
from app.accounting.figure import Method
from app.accounting.tokens import BASES
from app.answers import carbon
from app.answers.query import BOUNDARIES, GROUPS, NAMES, STEPS
from app.config import Config
from app.facts.kinds import LatencySlo
from app.facts.market_prices import MarketPrice
from app.hub import grid_api
from app.hub.parts import HubParts
from app.reports import request as reports
from app.store.benchmarks import add_runs
from app.store.database import Store
from app.store.grid import append_points
from app.store.market_prices import append_market_prices
from app.store.scenarios import Scenario, save_scenario
from collectors.benchmark.run import BenchmarkRun
from tests.answers.accounting import SETTINGS, know, minutes_of, served, take
from tests.batches import MODEL, batch
from tests.conftest import ROOT
from tests.grid_points import hour_of
from tests.hub.asgi import ask

FILE = ROOT / "docs" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
METHODS = {"get", "post", "put", "patch", "delete"}
OPERATIONS = [
    (path, method, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if method in METHODS
]
SCHEDULE = {"name": "daily", "kind": "fleet-day", "cron": "0 6 * * *", "tz": "Europe/Madrid"}
GRID = {"provider": "electricity_maps", "zones": {"DE": "DE"}, "key_env": "NO_SUCH_TOKEN"}
# nobody answers there
PRICES = {"provider": "runpod", "market": "secure", "base_url": "http://127.0.0.1:9"}
RANGE = {"from": "2026-02-03T04:00Z", "to": "2026-02-03T06:00Z"}


@pytest.fixture
def hub(store: Store, study_runs: list[BenchmarkRun]) -> Iterator[Starlette]:
    """A hub over a store with an hour of a GPU and an engine, the study's runs, an SLO, a schedule and grid values."""
    config = Config.model_validate(SETTINGS | {"report": [SCHEDULE], "grid": [GRID], "prices": {"source": [PRICES]}})
    add_runs(store, study_runs)
    take(store, batch(1, rows=minutes_of(300), engine_rows=served(ttft_buckets=[0, 1, 1, 1])), config=config)
    know(store, "slo", MODEL, LatencySlo(max_ms=50.0), known_at=datetime.now(UTC) - timedelta(minutes=1))
    told = MarketPrice("NVIDIA L4", "runpod", "secure", 0.4, 1, datetime.now(UTC), datetime.now(UTC))
    append_market_prices(store, [told], timedelta(days=7))
    append_points(store, [hour_of(number, number > 1) for number in range(4)])
    parts = HubParts(store, config)
    save_scenario(store, Scenario("twice", {"class": [], "fleet": []}, datetime.now(UTC)))
    yield Starlette(routes=parts.api.routes())
    parts.close()


def within(document: Any) -> Iterator[dict[str, Any]]:
    """Every object of the document."""
    if isinstance(document, dict):
        yield document
    for part in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from within(part)


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    found: Any = part
    while "$ref" in found:
        found = DOCUMENT
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
    return dict(found)


def check(schema: dict[str, Any], content: Any) -> None:
    """`content` keeps a schema of the document, whose references are taken from it."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": DOCUMENT["components"], **schema}
    problems = [
        f"{'/'.join(map(str, one.path))}: {one.message}" for one in Draft202012Validator(whole).iter_errors(content)
    ]
    assert not problems, problems[:5]


def content_of(path: str, method: str, status: str = "200") -> dict[str, Any]:
    content: dict[str, Any] = DOCUMENT["paths"][path][method]["responses"][status]["content"]
    return content


def test_the_document_is_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert {"title", "version"} <= set(DOCUMENT["info"])
    assert set(DOCUMENT) <= {"openapi", "info", "servers", "security", "tags", "paths", "components"}
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    for path, _, operation in OPERATIONS:
        assert operation["summary"]
        assert set(operation["tags"]) <= tags
        assert all(answer["description"] for answer in operation["responses"].values())
        of_path = {part.strip("{}") for part in path.split("/") if part.startswith("{")}
        parameters = [resolved(one) for one in operation.get("parameters", ())]
        assert {one["name"] for one in parameters if one["in"] == "path"} == of_path
        assert all(one["required"] for one in parameters if one["in"] == "path")
        assert all(one["description"] and one["schema"] for one in parameters)


def test_every_reference_is_there_and_every_schema_is_one() -> None:
    references = [part for part in within(DOCUMENT) if "$ref" in part]
    assert all(resolved(part) for part in references)
    used = {part["$ref"].rsplit("/", 1)[1] for part in references}
    assert used == {*DOCUMENT["components"]["schemas"], *DOCUMENT["components"]["parameters"]}
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_route_is_in_it_and_no_other(hub: Starlette) -> None:
    routes = {
        (str(getattr(route, "path", "")), method.lower())
        for route in hub.routes
        for method in getattr(route, "methods", None) or ()
        if method != "HEAD"
    }
    described = {(path, method) for path, method, _ in OPERATIONS}
    assert described == {route for route in routes if "{rest:path}" not in route[0]}
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for path in DOCUMENT["paths"]:
        assert path.split("/{")[0] in text, path


def test_parameters_are_those_that_the_code_accepts() -> None:
    for path, more in (
        ("summary", {"format"}),
        ("series", {"format"}),
        ("latency", {"metric", "max-ms"}),
        ("power-load", set()),
    ):
        parameters = {
            one["name"]: one for one in map(resolved, DOCUMENT["paths"][f"/api/v1/{path}"]["get"]["parameters"])
        }
        assert set(parameters) == {*NAMES, *more}
    schemas = {name: one["schema"] for name, one in parameters.items()}
    assert schemas["step"]["enum"] == list(STEPS)
    assert schemas["by"]["anyOf"][0]["enum"] == list(GROUPS)
    assert schemas["basis"]["enum"] == list(BASES)
    assert schemas["view"]["enum"] == list(VIEWS)
    assert schemas["boundary"]["enum"] == list(BOUNDARIES)
    assert DOCUMENT["components"]["schemas"]["FigureName"]["enum"] == list(FIGURES)
    assert set(DOCUMENT["components"]["schemas"]["Method"]["enum"]) == set(get_args(Method))
    of_grid = {one["name"] for one in map(resolved, DOCUMENT["paths"]["/api/v1/grid"]["get"]["parameters"])}
    assert of_grid == set(grid_api.NAMES)
    of_carbon = {one["name"] for one in map(resolved, DOCUMENT["paths"]["/api/v1/carbon"]["get"]["parameters"])}
    assert of_carbon == set(carbon.NAMES) == set(NAMES) - {"step", "by", "figures"}
    of_report = {one["name"] for one in map(resolved, DOCUMENT["paths"]["/api/v1/report"]["get"]["parameters"])}
    assert of_report == {*reports.NAMES, "format"}


def test_examples_keep_their_schemas() -> None:
    examples = [
        (media["schema"], media["example"])
        for _, _, operation in OPERATIONS
        for answer in operation["responses"].values()
        for media in answer["content"].values()
        if "example" in media
    ]
    assert len(examples) == 2
    for schema, example in examples:
        check(schema, example)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/healthz", {}),
        ("/api/v1/openapi.json", {}),
        ("/api/v1/health", {}),
        ("/api/v1/live", {"at": "2026-02-03T04:30:00Z"}),
        ("/api/v1/summary", RANGE | {"by": "fleet_model"}),
        ("/api/v1/summary", {"from": "1h", "figures": "cost"}),
        ("/api/v1/series", RANGE | {"by": "gpu", "step": "hour"}),
        ("/api/v1/latency", RANGE | {"by": "model", "tz": "Asia/Kathmandu", "metric": "ttft", "max-ms": "40"}),
        ("/api/v1/facts", {}),
        ("/api/v1/power-load", RANGE),
        ("/api/v1/carbon", RANGE),
        ("/api/v1/split/curves", {}),
        ("/api/v1/split/demand", {"live": "0"}),
        ("/api/v1/split/scenarios", {}),
        ("/api/v1/grid", RANGE | {"zone": "DE"}),
        ("/api/v1/grid", {"zone": "aws:eu-west-1"}),
        ("/api/v1/runs", {"gpu": "H100 PCIe"}),
        ("/api/v1/study", {}),
        ("/api/v1/split/front", {}),
        ("/api/v1/split/front", {"against": "slo.chat"}),
        ("/api/v1/split/shadow", {}),
        ("/api/v1/split/robustness", {"inputs": "usd.h100,g.h100"}),
        ("/api/v1/split/plan", {"hours": "2"}),
        ("/api/v1/report", {"kind": "hourly", "from": "2026-02-03", "to": "2026-02-04"}),
        ("/api/v1/reports", {}),
        ("/api/v1/tokens", {}),
    ],
)
def test_answers_keep_their_schemas(hub: Starlette, path: str, query: dict[str, str]) -> None:
    reply = ask(hub, "GET", path, query=query)
    assert reply.status == 200, reply.text
    check(content_of(path, "get")["application/json"]["schema"], reply.json())
    wrong = ask(hub, "GET", path, query={"no such": "parameter"})
    if path not in ("/healthz", "/api/v1/tokens"):
        assert wrong.status in (400, 422)  # 422: no such knob
        check(content_of(path, "get", "4XX")["application/json"]["schema"], wrong.json())


def test_it_is_served_as_it_is_written(hub: Starlette) -> None:
    assert ask(hub, "GET", "/api/v1/openapi.json").body == FILE.read_bytes()


@pytest.mark.parametrize("given", [{"step": "hour"}, {"by": "fleet"}, {"figures": "cost"}])
def test_carbon_refuses_what_it_would_not_use(hub: Starlette, given: dict[str, str]) -> None:
    reply = ask(hub, "GET", "/api/v1/carbon", query=RANGE | given)
    assert reply.status == 400
    assert f"query `{next(iter(given))}`: no such parameter; accepted: basis, boundary, fleet, from" in reply.text
