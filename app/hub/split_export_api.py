"""Routes that give the split away: as the settings of a router, and the schema of its JSON."""

from __future__ import annotations

from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.backend.local import LocalBackend
from app.hub.body import json_object, read_body
from app.hub.parameters import one_of, parameters
from app.reference.tables import split_schema_file
from app.split.demand import Demand, parse_demand
from app.split.router_files import FORMATS, RouterFormat

MAX_BODY_BYTES = 64 * 1024 * 1024


class SplitExportApi:
    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def get_export(self, request: Request) -> Response:
        """Of the configured demand, or of a scenario, with some numbers replaced."""
        words = dict(parameters(request, None))
        form = _form(words.pop("format", FORMATS[0]))

        def answer() -> str:
            return self._backend.export_split(self._backend.asked_demand(words), form)

        return _as_file(await run_in_threadpool(answer), form)

    async def post_export(self, request: Request) -> Response:
        """Of the demand in the body."""
        form = _form(parameters(request, {"format"}).get("format", FORMATS[0]))
        content = json_object(await read_body(request, "application/json", MAX_BODY_BYTES))
        demand: Demand = parse_demand(content, "body")
        return _as_file(await run_in_threadpool(self._backend.export_split, demand, form), form)

    async def get_schema(self, request: Request) -> Response:
        parameters(request, set())
        return Response(split_schema_file().read_bytes(), media_type="application/schema+json")


def _form(word: str) -> RouterFormat:
    return cast(RouterFormat, one_of("format", word, FORMATS))


def _as_file(text: str, form: RouterFormat) -> Response:
    named = {"Content-Disposition": f'attachment; filename="wattmix-{form}.yaml"'}
    return Response(text, media_type="application/yaml; charset=utf-8", headers=named)
