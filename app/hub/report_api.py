"""Routes of reports: one asked for now, the scheduled ones, and their files."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.backend.local import LocalBackend
from app.hub.body import read_body
from app.hub.parameters import one_of, parameters
from app.reports.delivery import MANIFEST_SUFFIX, file_name
from app.reports.request import NAMES, parse_request

MAX_BODY_BYTES = 1024


class ReportApi:
    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def get_report(self, request: Request) -> Response:
        """The report of the query's window, by default of yesterday, as JSON or CSV."""
        given = parameters(request, {*NAMES, "format"})
        form = one_of("format", given.get("format", "json"), ("json", "csv"))
        wanted = parse_request({name: given[name] for name in NAMES if name in given}, datetime.now(UTC))
        report = await run_in_threadpool(self._backend.report, wanted)
        if form == "csv":
            named = {"Content-Disposition": f'attachment; filename="{file_name(wanted.name, report)}"'}
            return Response(report.csv, media_type="text/csv; charset=utf-8", headers=named)
        return JSONResponse(report.as_json())

    async def get_reports(self, request: Request) -> Response:
        parameters(request, set())
        return JSONResponse({"reports": await run_in_threadpool(self._backend.scheduled_reports)})

    async def post_run(self, request: Request) -> Response:
        """Write the report that the schedule would make now. The body is JSON, so that no web page can send it."""
        parameters(request, set())
        await read_body(request, "application/json", MAX_BODY_BYTES)
        return JSONResponse(await run_in_threadpool(self._backend.run_scheduled_report, request.path_params["name"]))

    async def get_file(self, request: Request) -> Response:
        """A file that the schedule has written; only names that are recorded are looked for."""
        parameters(request, set())
        name, file = request.path_params["name"], request.path_params["file"]
        path = await run_in_threadpool(self._backend.report_file, name, file)
        media_type = "application/json" if file.endswith(MANIFEST_SUFFIX) else "text/csv; charset=utf-8"
        named = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return Response(await run_in_threadpool(path.read_bytes), media_type=media_type, headers=named)
