"""A real HTTP server that plays a provider, well-behaved or not; what it does is set while it runs."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""  # of a POST


@dataclass(frozen=True)
class Reply:
    """trickle: the body comes byte by byte, without end. cut: less than the announced length comes."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    trickle: bool = False
    cut: bool = False


def as_json(data: Any, status: int = 200, **headers: str) -> Reply:
    return Reply(
        json.dumps(data).encode(), status, headers={name.replace("_", "-"): word for name, word in headers.items()}
    )


@dataclass
class Player:
    """play: what to answer; asked: what came."""

    port: int = 0
    play: Callable[[Asked], Reply] = lambda _: as_json({"error": "nothing is played"}, 404)
    asked: list[Asked] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def always(self, reply: Reply) -> None:
        self.play = lambda _: reply


@contextmanager
def player() -> Iterator[Player]:
    state = Player()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            asked = Asked(parts.path, query, {name.lower(): word for name, word in self.headers.items()}, body)
            state.asked.append(asked)
            with contextlib.suppress(OSError):  # clients that hang up are part of the tests
                self._send(state.play(asked))

        do_POST = do_GET  # noqa: N815

        def _send(self, reply: Reply) -> None:
            if reply.hang:
                state.over.wait(5)
                return
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            for name, word in reply.headers.items():
                self.send_header(name, word)
            if not reply.trickle:
                self.send_header("Content-Length", str(len(reply.body) + (100 if reply.cut else 0)))
            self.end_headers()
            self.wfile.write(reply.body)
            self.wfile.flush()
            while reply.trickle and not state.over.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()
            if reply.cut:
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    state.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield state
    finally:
        state.over.set()
        server.shutdown()
        server.server_close()
