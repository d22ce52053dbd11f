"""Drives an ASGI application directly: one request in, one reply out, no socket and no client library."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.types import ASGIApp, Message


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    def json(self) -> Any:
        """The body as strict JSON: NaN and infinities are refused."""
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body, parse_constant=lambda word: (_ for _ in ()).throw(ValueError(word)))


def ask(
    app: ASGIApp,
    method: str,
    path: str,
    *,
    query: Sequence[tuple[str, str]] | Mapping[str, str] = (),
    body: bytes | Sequence[bytes] = b"",
    content_type: str | None = None,
    token: str | None = None,
    client: str = "127.0.0.1",
) -> Reply:
    """The reply to one request; a body given in parts arrives in parts. An error in the application is raised."""
    parts = [body] if isinstance(body, bytes) else list(body)
    incoming: list[Message] = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)} for number, part in enumerate(parts, 1)
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = {"content-type": content_type, "authorization": token and f"Bearer {token}"}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": urlencode(query).encode(), "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value],
        "client": (client, 1), "server": ("127.0.0.1", 8501),
    }  # fmt: skip
    _in_a_thread(lambda: asyncio.run(app(scope, receive, send)))
    start = sent[0]
    return Reply(
        start["status"],
        {name.decode().lower(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
    )


def _in_a_thread(call: Callable[[], None]) -> None:
    """Run `call` where no event loop runs: Playwright keeps one in the main thread while a browser is open."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()
