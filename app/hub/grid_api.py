"""Route of grid intensity: what is known of a zone, hour by hour, now and to come."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.answers.grid import GridQuery
from app.backend.local import LocalBackend
from app.errors import BadParameter
from app.hub.parameters import moment, parameters, past_moment

NAMES = ("zone", "from", "to", "known-at")


class GridApi:
    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def get_grid(self, request: Request) -> Response:
        given, now = parameters(request, set(NAMES)), datetime.now(UTC)
        if not given.get("zone"):
            raise BadParameter("query `zone`: the name of a zone is missing; such as zone=DE")
        start, end = (moment(name, given[name]) if name in given else None for name in ("from", "to"))
        known_at = past_moment("known-at", given["known-at"], now) if "known-at" in given else None
        query = GridQuery.around(given["zone"], now, start, end, known_at)
        return JSONResponse(await run_in_threadpool(self._backend.grid, query))
