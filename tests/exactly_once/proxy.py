"""A proxy between agents and hub that does what networks do: fails, sends twice, loses the answer."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

FAULTS = ("none", "500", "twice", "answer lost", "answer late")


@contextmanager
def faulty_proxy(hub: str, seed: int, late_s: float) -> Iterator[tuple[str, Counter[str]]]:
    """(address, how often each fault was played). late_s: longer than the sender waits."""
    rng, played = random.Random(seed), Counter[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fault = rng.choice(FAULTS)
            played[fault] += 1
            if fault == "500":
                self._answer(500, b"no")
                return
            answer = self._forward(body)
            if fault == "twice":
                answer = self._forward(body)
            if fault == "answer lost":
                self.close_connection = True
                self.connection.close()
                return
            if fault == "answer late":
                threading.Event().wait(late_s)
            self._answer(answer.status_code, answer.content)

        def _forward(self, body: bytes) -> requests.Response:
            kept = {name: self.headers[name] for name in ("Content-Type", "Content-Encoding") if name in self.headers}
            return requests.post(f"{hub}{self.path}", data=body, headers=kept, timeout=30)

        def _answer(self, status: int, body: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                return  # the sender has given up waiting, as it should

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", played
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
