"""Routes of dated facts: what is known, and an import."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.answers.facts import facts_as_csv
from app.backend.local import LocalBackend
from app.errors import BadParameter, ImportFileError
from app.hub.body import read_body
from app.hub.parameters import moment, one_of, parameters, past_moment

MAX_BODY_BYTES = 64 * 1024 * 1024


class FactsApi:
    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def get_facts(self, request: Request) -> Response:
        """What is known, by kind, subject and the moment at which it is in force: JSON, or the form of an import."""
        given = parameters(request, {"kind", "subject", "at", "known_at", "format"})
        form = one_of("format", given.get("format", "json"), ("json", "csv"))
        known_at = past_moment("known_at", given["known_at"], datetime.now(UTC)) if "known_at" in given else None
        at = moment("at", given["at"]) if "at" in given else None
        answer = await run_in_threadpool(
            self._backend.facts, kind=given.get("kind"), subject=given.get("subject"), at=at, known_at=known_at
        )
        if form == "csv":
            named = {"Content-Disposition": 'attachment; filename="facts.csv"'}
            return Response(facts_as_csv(answer), media_type="text/csv; charset=utf-8", headers=named)
        return JSONResponse(answer)

    async def post_facts(self, request: Request) -> Response:
        """Add the facts of a CSV, all or none. `file`: by which name its findings are told."""
        given = parameters(request, {"file"})
        file = given.get("file", "body")
        if len(file) > 500 or not file.isprintable():
            raise BadParameter("query `file`: at most 500 printable characters are accepted")
        body = await read_body(request, "text/csv", MAX_BODY_BYTES)
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ImportFileError(f"{file}: not UTF-8 text") from None
        return JSONResponse(await run_in_threadpool(self._backend.import_facts, text, file))
