"""HTTP routes. Each calls the function that the page calls; errors answer 4xx with what, where and what to do."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast, get_args

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app import __version__
from app.answers.live import WINDOW_S, WINDOWS_S
from app.answers.runs import Assume, rows_as_csv
from app.backend.local import LocalBackend
from app.errors import BadParameter, Forbidden, ImportFileError, Overloaded, UnknownName, WattmixError
from app.hub.account_api import AccountApi
from app.hub.auth import Gate, is_local
from app.hub.body import json_object, read_body
from app.hub.facts_api import FactsApi
from app.hub.grid_api import GridApi
from app.hub.ingest import Ingest
from app.hub.metrics import HubMetrics
from app.hub.parameters import one_of, parameters, past_moment, whole_number
from app.hub.report_api import ReportApi
from app.hub.scenario_api import ScenarioApi
from app.hub.split_api import SplitApi
from app.hub.split_export_api import SplitExportApi
from app.reference.tables import openapi_file
from app.split.demand import parse_demand
from app.store.schema import SCHEMA_VERSION
from app.store.tokens import Scope
from collectors.benchmark import facts_csv

MAX_BODY_BYTES = 64 * 1024 * 1024

Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """The routes beside the dashboard's own, over one backend."""

    def __init__(self, backend: LocalBackend, ingest: Ingest, metrics: HubMetrics, gate: Gate) -> None:
        self._backend = backend
        self._gate = gate
        self._ingest = ingest
        self._metrics = metrics
        self._reports = ReportApi(backend)
        self._facts = FactsApi(backend)
        self._accounts = AccountApi(backend)
        self._grid = GridApi(backend)
        self._split = SplitApi(backend)
        self._scenarios = ScenarioApi(backend)
        self._exports = SplitExportApi(backend)

    def routes(self) -> list[Route]:
        every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return [
            Route("/api/v1/ingest", _told(self._ingest.post), methods=["POST"]),
            Route("/healthz", _told(self.healthz), methods=["GET"]),
            Route("/metrics", _told(self._read(self.metrics)), methods=["GET"]),
            Route("/api/v1/health", _told(self._read(self.get_health)), methods=["GET"]),
            Route("/api/v1/live", _told(self._read(self.get_live)), methods=["GET"]),
            Route("/api/v1/tokens", _told(_only_here(self.get_tokens)), methods=["GET"]),
            Route("/api/v1/tokens", _told(_only_here(self.post_token)), methods=["POST"]),
            Route("/api/v1/tokens/{token_id}", _told(_only_here(self.delete_token)), methods=["DELETE"]),
            Route("/api/v1/runs", _told(self._read(self.get_runs)), methods=["GET"]),
            Route("/api/v1/runs", _told(_only_here(self.post_runs)), methods=["POST"]),
            Route("/api/v1/study", _told(self._read(self.get_study)), methods=["GET"]),
            Route("/api/v1/split", _told(self._read(self.get_split)), methods=["GET"]),
            Route("/api/v1/split", _told(self._read(self.post_split)), methods=["POST"]),
            Route("/api/v1/split/curves", _told(self._read(self.get_curves)), methods=["GET"]),
            Route("/api/v1/split/demand", _told(self._read(self.get_demand)), methods=["GET"]),
            Route("/api/v1/split/front", _told(self._read(self._split.front)), methods=["GET", "POST"]),
            Route("/api/v1/split/shadow", _told(self._read(self._split.shadow)), methods=["GET", "POST"]),
            Route("/api/v1/split/robustness", _told(self._read(self._split.robustness)), methods=["GET", "POST"]),
            Route("/api/v1/split/plan", _told(self._read(self._split.plan)), methods=["GET", "POST"]),
            Route("/api/v1/split/export", _told(self._read(self._exports.get_export)), methods=["GET"]),
            Route("/api/v1/split/export", _told(self._read(self._exports.post_export)), methods=["POST"]),
            Route("/api/v1/split/schema", _told(self._read(self._exports.get_schema)), methods=["GET"]),
            Route("/api/v1/split/scenarios", _told(self._read(self._scenarios.get_scenarios)), methods=["GET"]),
            Route("/api/v1/split/scenarios", _told(_only_here(self._scenarios.post_scenario)), methods=["POST"]),
            Route(
                "/api/v1/split/scenarios/{name}", _told(_only_here(self._scenarios.delete_scenario)), methods=["DELETE"]
            ),
            Route("/api/v1/summary", _told(self._read(self._accounts.get_summary)), methods=["GET"]),
            Route("/api/v1/series", _told(self._read(self._accounts.get_series)), methods=["GET"]),
            Route("/api/v1/latency", _told(self._read(self._accounts.get_latency)), methods=["GET"]),
            Route("/api/v1/carbon", _told(self._read(self._accounts.get_carbon)), methods=["GET"]),
            Route("/api/v1/power-load", _told(self._read(self._accounts.get_power_load)), methods=["GET"]),
            Route("/api/v1/grid", _told(self._read(self._grid.get_grid)), methods=["GET"]),
            Route("/api/v1/openapi.json", _told(self._read(self.get_openapi)), methods=["GET"]),
            Route("/api/v1/report", _told(self._read(self._reports.get_report)), methods=["GET"]),
            Route("/api/v1/reports", _told(self._read(self._reports.get_reports)), methods=["GET"]),
            Route("/api/v1/facts", _told(self._read(self._facts.get_facts)), methods=["GET"]),
            Route("/api/v1/facts", _told(_only_here(self._facts.post_facts)), methods=["POST"]),
            Route("/api/v1/reports/{name}/run", _told(_only_here(self._reports.post_run)), methods=["POST"]),
            Route("/api/v1/reports/{name}/files/{file}", _told(self._read(self._reports.get_file)), methods=["GET"]),
            Route("/api/{rest:path}", _told(_no_such_route), methods=every),
        ]

    def _read(self, handler: Handler) -> Handler:
        """`handler` for this machine, and for others with a read token."""

        async def guarded(request: Request) -> Response:
            self._gate.grant(request, "read")
            return await handler(request)

        return guarded

    async def healthz(self, request: Request) -> Response:
        store = self._backend.store
        return JSONResponse(
            {
                "status": "ok",
                "version": __version__,
                "pid": os.getpid(),
                "time_us": time.time_ns() // 1000,
                "schema": SCHEMA_VERSION,
                "store": str(store.path),
                "demo": store.purpose == "demo",
            }
        )

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def get_openapi(self, request: Request) -> Response:
        parameters(request, set())
        return Response(openapi_file().read_bytes(), media_type="application/json")

    async def get_health(self, request: Request) -> Response:
        parameters(request, set())
        return JSONResponse(await run_in_threadpool(self._backend.health))

    async def get_live(self, request: Request) -> Response:
        given = parameters(request, {"window_s", "at"})
        window_s = whole_number("window_s", given.get("window_s", str(WINDOW_S)), *WINDOWS_S)
        at = past_moment("at", given["at"], datetime.now(UTC)) if "at" in given else None
        return JSONResponse(await run_in_threadpool(self._backend.live, window_s=window_s, at=at))

    async def get_tokens(self, request: Request) -> Response:
        return JSONResponse({"tokens": await run_in_threadpool(self._backend.list_tokens)})

    async def post_token(self, request: Request) -> Response:
        body = await read_body(request, "application/json", MAX_BODY_BYTES)
        wanted = json_object(body, "`name`, `node` and `scope`")
        name, node = wanted.get("name"), wanted.get("node")
        scope = one_of("scope", str(wanted.get("scope", "node")), get_args(Scope))
        if not isinstance(name, str) or not name or not isinstance(node, str | None):
            raise BadParameter("body: `name` is text of at least one letter, `node` text or null")
        token = await run_in_threadpool(self._backend.create_token, name, cast(Scope, scope), node)
        return JSONResponse({"token": token})

    async def delete_token(self, request: Request) -> Response:
        await run_in_threadpool(self._backend.revoke_token, request.path_params["token_id"])
        return JSONResponse({"revoked": request.path_params["token_id"]})

    async def get_runs(self, request: Request) -> Response:
        given = parameters(request, {"model", "gpu", "assume", "format"})
        assume = one_of("assume", given.get("assume", "corrected"), get_args(Assume))
        form = one_of("format", given.get("format", "json"), ("json", "csv"))
        rows = await run_in_threadpool(
            self._backend.run_rows, model=given.get("model"), gpu=given.get("gpu"), assume=cast(Assume, assume)
        )
        if form == "csv":
            return Response(rows_as_csv(rows), media_type="text/csv; charset=utf-8")
        return JSONResponse({"runs": rows})

    async def post_runs(self, request: Request) -> Response:
        body = await read_body(request, "text/csv", MAX_BODY_BYTES)
        try:
            runs = list(facts_csv.read(body.decode("utf-8")))
        except ValueError as problem:
            raise ImportFileError(f"body: {problem}") from None
        added = await run_in_threadpool(self._backend.add_runs, runs)
        return JSONResponse({"new": added.new, "known": added.known})

    async def get_study(self, request: Request) -> Response:
        parameters(request, set())
        findings = await run_in_threadpool(self._backend.study)
        if findings is None:
            raise UnknownName("the store does not hold the study's runs; `wattmix demo` starts with them")
        return JSONResponse(findings)

    async def get_split(self, request: Request) -> Response:
        words = parameters(request, None)

        def answer() -> dict[str, Any]:
            return self._backend.split(self._backend.asked_demand(words))

        return JSONResponse(await run_in_threadpool(answer))

    async def post_split(self, request: Request) -> Response:
        content = json_object(await read_body(request, "application/json", MAX_BODY_BYTES))
        return JSONResponse(await run_in_threadpool(self._backend.split, parse_demand(content, "body")))

    async def get_curves(self, request: Request) -> Response:
        parameters(request, set())
        return JSONResponse(await run_in_threadpool(self._backend.live_curves))

    async def get_demand(self, request: Request) -> Response:
        is_live = one_of("live", parameters(request, {"live"}).get("live", "0"), ("0", "1")) == "1"
        ask = self._backend.live_demand if is_live else self._backend.default_demand
        demand = await run_in_threadpool(ask)
        return JSONResponse(demand.model_dump(by_alias=True, mode="json"))


def _only_here(handler: Handler) -> Handler:
    """`handler` for this machine only: tokens, and what a person imports."""

    async def guarded(request: Request) -> Response:
        if not is_local(request):
            raise Forbidden("this is done on the hub's own machine, with the wattmix command there")
        return await handler(request)

    return guarded


async def _no_such_route(request: Request) -> Response:
    raise UnknownName(f"no such route: {request.method} {request.url.path}; see docs/api.md")


def _told(handler: Handler) -> Handler:
    """`handler` with every WattmixError told as JSON."""

    async def endpoint(request: Request) -> Response:
        try:
            return await handler(request)
        except WattmixError as error:
            headers = {"Retry-After": str(error.retry_after_s)} if isinstance(error, Overloaded) else None
            return JSONResponse({"error": str(error)}, status_code=error.http_status, headers=headers)

    return endpoint
