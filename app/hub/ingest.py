"""`POST /api/v1/ingest`: a batch of samples in, an acknowledgement out once it is committed."""

from __future__ import annotations

import asyncio
import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.errors import BatchRefused, BodyTooLarge
from app.hub.auth import Gate
from app.hub.body import read_body
from app.store.ingest import check_ranges
from app.store.writer import SampleWriter
from collectors.samples import Batch, WireError, decode

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_JSON_BYTES = 64 * 1024 * 1024
# A node-sized body is decoded faster than a thread is handed it; only a large one is worth a thread.
DECODE_INLINE_BYTES = 64 * 1024


class Ingest:
    def __init__(self, writer: SampleWriter, gate: Gate) -> None:
        self._writer = writer
        self._gate = gate

    async def post(self, request: Request) -> Response:
        """Errors: 401/403 token, 413 too large, 415 type, 422 a field that cannot be, 503 with Retry-After."""
        grant = self._gate.grant(request, "node")
        body = await read_body(request, "application/json", MAX_BODY_BYTES)
        try:
            small = len(body) <= DECODE_INLINE_BYTES
            batch, readings = _decoded(body) if small else await run_in_threadpool(_decoded, body)
        except (BatchRefused, BodyTooLarge):
            self._writer.stats.refused += 1
            raise
        self._gate.check_node(grant, batch.node.id)
        answer = await asyncio.wrap_future(self._writer.submit(batch, readings))
        return JSONResponse(
            {
                "acknowledged": answer.sequence,
                "duplicate": answer.duplicate,
                "late_rows": answer.late_rows,
                "hub_time_us": time.time_ns() // 1000,
                "skew_s": round(batch.node.sent_at_us / 1e6 - time.time(), 3),
            }
        )


def _decoded(body: bytes) -> tuple[Batch, int]:
    """The batch and its number of readings. Raises BodyTooLarge or BatchRefused."""
    try:
        batch = decode(body, max_json_bytes=MAX_JSON_BYTES)
    except WireError as problem:
        raise (BodyTooLarge if problem.too_large else BatchRefused)(str(problem)) from None
    check_ranges(batch)
    return batch, batch.readings
