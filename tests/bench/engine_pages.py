"""Serves one vLLM page on several ports of 127.0.0.1, as eight engines of a node do. A process of its own.

python -m tests.bench.engine_pages PORT [PORT ...]
"""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.bench.engines import page_of


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    body = b""

    def do_GET(self) -> None:
        found = self.path == "/metrics"
        body = self.body if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """The benchmark's output is its table."""


def main(ports: list[int]) -> None:
    Page.body = page_of("0.32.0")[0].encode()
    servers = [ThreadingHTTPServer(("127.0.0.1", port), Page) for port in ports]
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    servers[0].serve_forever()


if __name__ == "__main__":
    main([int(port) for port in sys.argv[1:]])
