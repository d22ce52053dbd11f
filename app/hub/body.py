"""Reading a request's body within its limits."""

from __future__ import annotations

from starlette.requests import Request

from app.errors import BodyTooLarge, WrongContentType


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
