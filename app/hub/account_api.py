"""Routes of accounts: a range of time as a whole, step by step, and its latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.answers import carbon
from app.answers.latency import parse_wanted
from app.answers.query import NAMES, AccountQuery, parse_query
from app.answers.summary import as_csv
from app.backend.local import LocalBackend
from app.hub.parameters import one_of, parameters

_FORMS = ("json", "csv")


class AccountApi:
    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def get_summary(self, request: Request) -> Response:
        """What the range cost in dollars, joules and grams, and the range before it."""
        return await _answer(request, "summary", self._backend.summary)

    async def get_series(self, request: Request) -> Response:
        """The same step by step."""
        return await _answer(request, "series", self._backend.series)

    async def get_latency(self, request: Request) -> Response:
        """Quantiles, whole and step by step, and SLOs."""
        query = _query(request, {"metric", "max-ms"})
        wanted = parse_wanted(request.query_params)
        return JSONResponse(await run_in_threadpool(self._backend.latency, query, wanted))

    async def get_power_load(self, request: Request) -> Response:
        """Measured power of each replica type against its load."""
        return JSONResponse(await run_in_threadpool(self._backend.power_load, _query(request, set())))

    async def get_carbon(self, request: Request) -> Response:
        """What grams stand on, what moved them, and when and where they would be fewer."""
        query = _query(request, set(), carbon.NAMES)
        return JSONResponse(await run_in_threadpool(self._backend.carbon, query))


async def _answer(request: Request, name: str, ask: Callable[[AccountQuery], dict[str, Any]]) -> Response:
    query = _query(request, {"format"})
    form = one_of("format", request.query_params.get("format", "json"), _FORMS)
    answer = await run_in_threadpool(ask, query)
    if form == "csv":
        named = {"Content-Disposition": f'attachment; filename="{name}_{query.start.date()}_{query.end.date()}.csv"'}
        return Response(as_csv(answer), media_type="text/csv; charset=utf-8", headers=named)
    return JSONResponse(answer)


def _query(request: Request, more: set[str], names: Sequence[str] = NAMES) -> AccountQuery:
    given = parameters(request, {*names, *more})
    return parse_query({name: given[name] for name in names if name in given}, datetime.now(UTC))
