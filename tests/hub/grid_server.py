"""A real HTTP server that plays Energy-Charts and UK Carbon Intensity, well-behaved or not; set while it runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

QUARTER = timedelta(minutes=15)
# So that no quarter hour begins while a test runs of which the provider has only a forecast.
AHEAD = timedelta(minutes=10)


@dataclass
class Grid:
    """do: `ok`, an HTTP status, or a word of _FAULTS. measured_to: quarter hours that begin before it are measured.

    grams: of the measured quarter hours. skew: how far its clock is ahead. since: it has nothing of before.
    """

    now: datetime
    do: str = "ok"
    grams: float = 300.0
    days: int = 2
    skew: timedelta = timedelta()
    since: datetime | None = None
    retry_after: str | None = None
    port: int = 0
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def co2eq(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """Quarter hours of the days asked for, without them of the day before and this one and the next."""
        if "start" in query:
            first = datetime.fromisoformat(query["start"][0]).replace(tzinfo=UTC)
            last = datetime.fromisoformat(query["end"][0]).replace(tzinfo=UTC) + timedelta(days=1)
        else:
            first = self.now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
            last = first + timedelta(days=3)
        starts = [first + number * QUARTER for number in range(int((last - first) / QUARTER))]
        starts = [start for start in starts if self.since is None or start >= self.since]
        measured = [self.grams if start < self.now else None for start in starts]
        return {
            "unix_seconds": [int((start + self.skew).timestamp()) for start in starts],
            "co2eq": measured,
            "co2eq_forecast": [None if value is not None else 100.0 for value in measured],
            "deprecated": False,
        }


_FAULTS: dict[str, tuple[str, bytes]] = {
    "html": ("text/html", b"<html><body>down for maintenance</body></html>"),
    "not json": ("application/json", b'{"unix_seconds": [17'),
    "wrong type": ("application/json", b'{"unix_seconds": "soon", "co2eq": {}, "co2eq_forecast": 3}'),
    "empty": ("application/json", b"{}"),
}


class _Handler(BaseHTTPRequestHandler):
    grid: Grid

    def do_GET(self) -> None:
        if self.path != "/metrics":  # an agent of another test may look here for an engine
            self.grid.paths.append(self.path)
        self.grid.headers.append(dict(self.headers))
        with suppress(OSError):  # clients that hang up are part of the tests
            self._answer()

    def _answer(self) -> None:
        grid = self.grid
        if grid.do == "hang":
            grid.closed.wait(30)
        elif grid.do in _FAULTS:
            self._send(200, *_FAULTS[grid.do])
        elif grid.do == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"unix_seconds": [')
        elif grid.do.isdigit():
            self._send(int(grid.do), "application/json", b'{"error": "not now"}')
        else:
            body = json.dumps(grid.co2eq(parse_qs(urlsplit(self.path).query))).encode()
            self._send(200, "application/json", body)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.grid.retry_after:
            self.send_header("Retry-After", self.grid.retry_after)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        return


@contextmanager
def grid_server(now: datetime) -> Iterator[Grid]:
    grid = Grid(now)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"grid": grid}))
    server.daemon_threads = True
    grid.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield grid
    finally:
        grid.closed.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def grid() -> Iterator[Grid]:
    with grid_server(datetime.now(UTC) + AHEAD) as server:
        yield server
