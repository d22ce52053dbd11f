"""Routes beside the split's own: its fronts, shadow prices, robustness and plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.answers.split_plan import HOURS
from app.backend.local import LocalBackend
from app.hub.body import json_object, read_body
from app.hub.parameters import parameters, whole_number
from app.split.demand import Demand, parse_demand
from app.split.timeline import MOST_HOURS

MAX_BODY_BYTES = 64 * 1024 * 1024


class SplitApi:
    """GET asks of the configured demand with its knobs turned, POST of the demand in the body."""

    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def front(self, request: Request) -> Response:
        def answer(demand: Demand, given: Mapping[str, str]) -> dict[str, Any]:
            return self._backend.split_front(demand, against=given.get("against", "carbon"))

        return await self._answered(request, {"against"}, answer)

    async def shadow(self, request: Request) -> Response:
        return await self._answered(request, set(), lambda demand, _: self._backend.split_shadow(demand))

    async def robustness(self, request: Request) -> Response:
        def answer(demand: Demand, given: Mapping[str, str]) -> dict[str, Any]:
            names = given["inputs"].split(",") if "inputs" in given else None
            return self._backend.split_robustness(demand, inputs=[name for name in names if name] if names else None)

        return await self._answered(request, {"inputs"}, answer)

    async def plan(self, request: Request) -> Response:
        def answer(demand: Demand, given: Mapping[str, str]) -> dict[str, Any]:
            hours = whole_number("hours", given.get("hours", str(HOURS)), 1, MOST_HOURS)
            return self._backend.split_plan(demand, hours=hours)

        return await self._answered(request, {"hours"}, answer)

    async def _answered(
        self, request: Request, own: set[str], answer: Callable[[Demand, Mapping[str, str]], dict[str, Any]]
    ) -> Response:
        """own: parameters beside the knobs."""
        is_get = request.method == "GET"
        given = parameters(request, None if is_get else own)
        content = None if is_get else json_object(await read_body(request, "application/json", MAX_BODY_BYTES))

        def answered() -> dict[str, Any]:
            if content is not None:
                return answer(parse_demand(content, "body"), given)
            turned = {name: value for name, value in given.items() if name not in own}
            return answer(self._backend.asked_demand(turned), given)

        return JSONResponse(await run_in_threadpool(answered))
