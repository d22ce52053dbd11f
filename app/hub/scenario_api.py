"""Routes of scenarios: what-ifs of the split that are kept by name."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.backend.local import LocalBackend
from app.errors import BadParameter
from app.hub.body import json_object, read_body
from app.hub.parameters import parameters
from app.split.demand import Demand, parse_demand
from app.split.scenario import what_if

MAX_BODY_BYTES = 1024 * 1024


class ScenarioApi:
    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def get_scenarios(self, request: Request) -> Response:
        parameters(request, set())
        return JSONResponse({"scenarios": await run_in_threadpool(self._backend.scenarios)})

    async def post_scenario(self, request: Request) -> Response:
        """Keep `demand`, or the configured one with `knobs` turned, as `name`."""
        parameters(request, set())
        body = await read_body(request, "application/json", MAX_BODY_BYTES)
        content = json_object(body, "`name` and `demand` or `knobs`")
        unknown = sorted(set(content) - {"name", "demand", "knobs"})
        name, demand, knobs = content.get("name"), content.get("demand"), content.get("knobs", {})
        if unknown or not isinstance(name, str) or not isinstance(knobs, dict) or (demand is not None and knobs):
            raise BadParameter("body: `name` is text; beside it `demand`, or `knobs` as numbers by their names")

        def asked() -> Demand:
            if demand is not None:
                return parse_demand(demand if isinstance(demand, dict) else {"demand": demand}, "body")
            return what_if(self._backend.default_demand(), knobs, "body")

        return JSONResponse(await run_in_threadpool(lambda: self._backend.save_scenario(name, asked())))

    async def delete_scenario(self, request: Request) -> Response:
        parameters(request, set())
        name = request.path_params["name"]
        await run_in_threadpool(self._backend.delete_scenario, name)
        return JSONResponse({"deleted": name})
