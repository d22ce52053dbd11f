"""HTTP routes. Each calls the function that the page calls; errors answer 4xx with what, where and what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import cast, get_args

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app import __version__
from app.answers.runs import Assume, rows_as_csv
from app.backend import LocalBackend
from app.errors import DemandError, ImportFileError, UnknownName, WattmixError
from app.split.demand import parse_demand
from app.split.scenario import what_if
from app.store.schema import SCHEMA_VERSION
from collectors.benchmark import facts_csv

MAX_BODY_BYTES = 64 * 1024 * 1024

Handler = Callable[[Request], Awaitable[Response]]


class BodyTooLarge(WattmixError):
    http_status = 413


class WrongContentType(WattmixError):
    http_status = 415


class BadParameter(WattmixError):
    http_status = 400


class Api:
    """The routes beside the dashboard's own, over one backend."""

    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return [
            Route("/healthz", _told(self.healthz), methods=["GET"]),
            Route("/api/v1/runs", _told(self.get_runs), methods=["GET"]),
            Route("/api/v1/runs", _told(self.post_runs), methods=["POST"]),
            Route("/api/v1/study", _told(self.get_study), methods=["GET"]),
            Route("/api/v1/split", _told(self.get_split), methods=["GET"]),
            Route("/api/v1/split", _told(self.post_split), methods=["POST"]),
            Route("/api/{rest:path}", _told(_no_such_route), methods=every),
        ]

    async def healthz(self, request: Request) -> Response:
        store = self._backend.store
        return JSONResponse(
            {
                "status": "ok",
                "version": __version__,
                "pid": os.getpid(),
                "schema": SCHEMA_VERSION,
                "store": str(store.path),
                "demo": store.purpose == "demo",
            }
        )

    async def get_runs(self, request: Request) -> Response:
        given = _parameters(request, {"model", "gpu", "assume", "format"})
        assume = _one_of("assume", given.get("assume", "corrected"), get_args(Assume))
        form = _one_of("format", given.get("format", "json"), ("json", "csv"))
        rows = await run_in_threadpool(
            self._backend.run_rows, model=given.get("model"), gpu=given.get("gpu"), assume=cast(Assume, assume)
        )
        if form == "csv":
            return Response(rows_as_csv(rows), media_type="text/csv; charset=utf-8")
        return JSONResponse({"runs": rows})

    async def post_runs(self, request: Request) -> Response:
        body = await _body(request, "text/csv")
        try:
            runs = list(facts_csv.read(body.decode("utf-8")))
        except ValueError as problem:
            raise ImportFileError(f"body: {problem}") from None
        added = await run_in_threadpool(self._backend.add_runs, runs)
        return JSONResponse({"new": added.new, "known": added.known})

    async def get_study(self, request: Request) -> Response:
        _parameters(request, set())
        findings = await run_in_threadpool(self._backend.study)
        if findings is None:
            raise UnknownName("the store does not hold the study's runs; `wattmix demo` starts with them")
        return JSONResponse(findings)

    async def get_split(self, request: Request) -> Response:
        demand = what_if(self._backend.default_demand(), _parameters(request, None))
        return JSONResponse(await run_in_threadpool(self._backend.split, demand))

    async def post_split(self, request: Request) -> Response:
        body = await _body(request, "application/json")
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as problem:
            raise DemandError(f"body: not JSON ({problem})") from None
        if not isinstance(content, dict):
            raise DemandError("body: a JSON object with `class`, `fleet` and `solve` is accepted")
        return JSONResponse(await run_in_threadpool(self._backend.split, parse_demand(content, "body")))


async def _no_such_route(request: Request) -> Response:
    raise UnknownName(f"no such route: {request.method} {request.url.path}; see docs/api.md")


def _told(handler: Handler) -> Handler:
    """`handler` with every WattmixError told as JSON."""

    async def endpoint(request: Request) -> Response:
        try:
            return await handler(request)
        except WattmixError as error:
            return JSONResponse({"error": str(error)}, status_code=error.http_status)

    return endpoint


def _parameters(request: Request, accepted: set[str] | None) -> Mapping[str, str]:
    """The query parameters, each given once; None accepts any name (the callee checks)."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if accepted is not None and name not in accepted:
            raise BadParameter(f"query `{name}`: no such parameter; accepted: {', '.join(sorted(accepted)) or 'none'}")
        if names.count(name) > 1:
            raise BadParameter(f"query `{name}`: given twice")
    return request.query_params


def _one_of(name: str, value: str, accepted: tuple[str, ...]) -> str:
    if value not in accepted:
        raise BadParameter(f"query `{name}`: given {value!r}; accepted: {', '.join(accepted)}")
    return value


async def _body(request: Request, content_type: str) -> bytes:
    """The request's body. The content type must be named: no web page elsewhere can send it without asking first."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != content_type:
        raise WrongContentType(f"Content-Type: {content_type} is accepted")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise BodyTooLarge(f"body: more than {MAX_BODY_BYTES // 1024**2} MiB")
        parts.append(part)
    return b"".join(parts)
