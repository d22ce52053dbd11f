"""Hubs that misbehave: a real HTTP server whose answers a test scripts, and which remembers what it took."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from collectors.samples import Batch, decode


@dataclass
class Hub:
    """A ledger as the real hub keeps one: batches in the order in which they were first taken."""

    address: str = ""
    taken: list[int] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    duplicates: int = 0
    requests: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    script: list[str] = field(default_factory=list)
    retry_after: str | None = None

    def record(self, body: bytes) -> int:
        batch = decode(body, max_json_bytes=2**26)
        if self.taken and batch.sequence <= max(self.taken):
            self.duplicates += 1
        else:
            self.taken.append(batch.sequence)
            self.batches.append(batch)
        return batch.sequence


class Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        hub = self.hub
        hub.requests += 1
        hub.headers.append(dict(self.headers))
        assert self.path == "/api/v1/ingest"
        what = hub.script.pop(0) if hub.script else "ok"
        if what == "cut":  # closes without an answer, nothing recorded
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif what == "commit-then-cut":
            hub.record(body)
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif what == "commit-then-sleep":
            hub.record(body)
            time.sleep(1.0)
            self.close_connection = True
        elif what == "trickle":
            hub.record(body)
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            for _ in range(30):
                self.wfile.write(b" " * 4096)
                self.wfile.flush()
                time.sleep(0.1)
        elif what == "ok":
            self.answer(200, {"acknowledged": hub.record(body)})
        elif what == "wrong-ack":
            self.answer(200, {"acknowledged": 123456})
        elif what == "html":
            self.answer(200, "<html>welcome to the wifi</html>")
        else:
            self.answer(int(what), {"error": f"scripted {what}"})

    def answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        if self.hub.retry_after is not None and status in (429, 503):
            self.send_header("Retry-After", self.hub.retry_after)
        if status == 307:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        return  # clients that hang up are part of the tests


@contextmanager
def hub(*script: str, retry_after: str | None = None) -> Iterator[Hub]:
    """A hub that answers with `script`, one word a request, and then takes everything."""
    state = Hub(script=list(script), retry_after=retry_after)
    server = _Server(("127.0.0.1", 0), type("Bound", (Request,), {"hub": state}))
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
