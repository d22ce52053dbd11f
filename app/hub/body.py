"""Reading a request's body within its limits."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from app.errors import BodyTooLarge, DemandError, WrongContentType


async def read_body(request: Request, content_type: str, max_bytes: int) -> bytes:
    """The request's body. The content type must be named: no web page elsewhere can send it without asking first."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != content_type:
        raise WrongContentType(f"Content-Type: {content_type} is accepted")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            raise BodyTooLarge(f"body: more than {max_bytes // 1024**2} MiB")
        parts.append(part)
    return b"".join(parts)


def json_object(body: bytes, keys: str = "`class`, `fleet` and `solve`") -> dict[str, Any]:
    """The object that a body holds. keys: those that it may have, in words. Raises DemandError."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise DemandError(f"body: not JSON ({problem})") from None
    if not isinstance(content, dict):
        raise DemandError(f"body: a JSON object with {keys} is accepted")
    return content
