"""Fetches an engine's page within a bound: whatever the server does, the text or the reason is there in seconds.

http.client and not requests: there a server that trickles its headers holds the caller for as long as it likes.
No proxy is used, no redirect followed, no compression accepted, and nothing but the address is sent.
"""

from __future__ import annotations

import errno
import functools
import http.client
import io
import json
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

METRICS = "text/plain; version=0.0.4"
_PIECE_BYTES = 65_536
_CUT = "the page was cut short"

_HTTP_WORDS = {
    401: "it asks for a login, which is not supported for metrics",
    403: "it refuses this address",
    404: "it has no such page (SGLang shows it with --enable-metrics)",
    501: "it does not show metrics (llama-server does with --metrics)",
    503: "it is not ready",
}
_SYSTEM_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to the host",
    errno.ENETUNREACH: "no route to its network",
    errno.ECONNRESET: "it closed the connection without an answer",
    errno.EPIPE: "it closed the connection without an answer",
}


class ScrapeError(Exception):
    """There is no page; str(error) says why.

    is_down: nothing answers at the address, or not in time. is_refused: nothing listens there.
    """

    def __init__(self, reason: str, *, is_down: bool = False, is_refused: bool = False) -> None:
        super().__init__(reason)
        self.is_down = is_down
        self.is_refused = is_refused


@dataclass(frozen=True)
class Bounds:
    """connect_s: for one address of the host; total_s: for everything after the name was looked up."""

    connect_s: float = 2.0
    total_s: float = 4.0
    max_bytes: int = 8 * 2**20


BOUNDS = Bounds()


def fetch_page(url: str, bounds: Bounds = BOUNDS) -> str:
    """The metrics page at `url`. Raises ScrapeError."""
    kind, body = _get(url, METRICS, bounds)
    if kind == "text/html" or body[:500].lstrip()[:1] == b"<":
        raise ScrapeError("an HTML page, not metrics: is this the engine's own port?")
    if body and not body.endswith(b"\n"):
        raise ScrapeError(_CUT)
    return body.decode("utf-8", errors="replace")


def fetch_json(url: str, path: str, bounds: Bounds = BOUNDS) -> Any:
    """What the server of `url` answers at another path, as JSON. Raises ScrapeError."""
    parts = urlsplit(url)
    _, body = _get(f"{parts.scheme}://{parts.netloc}{path}", "application/json", bounds)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise ScrapeError(f"{path} does not answer with JSON") from None


def _get(url: str, accept: str, bounds: Bounds) -> tuple[str, bytes]:
    """The content type and the body of a 200 answer. Raises ScrapeError."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    addresses = _addresses(parts.hostname or "", port)
    deadline_s = time.monotonic() + bounds.total_s
    sock: socket.socket | None = None
    try:
        sock = _connect(addresses, deadline_s, bounds.connect_s)
        if parts.scheme == "https":
            sock.settimeout(_left(deadline_s))
            sock = _tls().wrap_socket(sock, server_hostname=parts.hostname)
        return _exchange(_Bounded(sock, deadline_s), parts.netloc, parts.path, accept, bounds.max_bytes)
    except TimeoutError:
        raise ScrapeError(f"no answer within {bounds.total_s:g} s", is_down=True) from None
    except ssl.SSLError as problem:
        raise ScrapeError(f"TLS fails: {getattr(problem, 'verify_message', '') or problem.reason}") from None
    except OSError as problem:
        raise ScrapeError(_words(problem), is_down=True, is_refused=problem.errno == errno.ECONNREFUSED) from None
    except http.client.IncompleteRead:
        raise ScrapeError(_CUT) from None
    except (http.client.HTTPException, ValueError):
        raise ScrapeError("it does not speak HTTP as it should") from None
    finally:
        if sock is not None:
            sock.close()


def _addresses(host: str, port: int) -> list[tuple[Any, ...]]:
    try:
        return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):
        raise ScrapeError(f"the name {host} is not known here", is_down=True) from None


def _connect(addresses: list[tuple[Any, ...]], deadline_s: float, connect_s: float) -> socket.socket:
    """A connection to the first address that takes one. Raises the OSError of the last."""
    problem: OSError = TimeoutError()
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(min(connect_s, _left(deadline_s)))
            sock.connect(address)
        except OSError as refusal:
            sock.close()
            problem = refusal
        else:
            return sock
    raise problem


def _exchange(sock: _Bounded, place: str, path: str, accept: str, max_bytes: int) -> tuple[str, bytes]:
    connection = http.client.HTTPConnection(place)
    connection.sock = cast(socket.socket, sock)
    connection.request("GET", path, headers={"Accept": accept, "User-Agent": "wattmix", "Connection": "close"})
    response = connection.getresponse()
    if response.status != 200:
        raise ScrapeError(_status_words(response.status))
    if response.getheader("Content-Encoding", "identity") != "identity":
        raise ScrapeError("the page is compressed, which was not asked for")
    body = bytearray()
    while piece := response.read(_PIECE_BYTES):
        body += piece
        if len(body) > max_bytes:
            raise ScrapeError(f"the page has more than {max_bytes // 2**20} MiB")
    if response.length:
        raise ScrapeError(_CUT)
    return response.headers.get_content_type(), bytes(body)


class _Bounded:
    """What http.client needs of a socket; each call gets what is left of the time, however little comes each time."""

    def __init__(self, sock: socket.socket, deadline_s: float) -> None:
        self._sock = sock
        self._deadline_s = deadline_s

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(_left(self._deadline_s))
        self._sock.sendall(data)

    def receive_into(self, buffer: Any) -> int:
        self._sock.settimeout(_left(self._deadline_s))
        return self._sock.recv_into(buffer)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self), _PIECE_BYTES)

    def close(self) -> None:
        """http.client closes it before the body was read; its owner does that later."""


class _Reader(io.RawIOBase):
    def __init__(self, sock: _Bounded) -> None:
        super().__init__()
        self._bounded = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._bounded.receive_into(buffer)


def _left(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _status_words(status: int) -> str:
    if 300 <= status < 400:
        return f"HTTP {status}: it redirects, which is not followed; name the page's own address"
    return f"HTTP {status}" + (f": {_HTTP_WORDS[status]}" if status in _HTTP_WORDS else "")


def _words(problem: OSError) -> str:
    # http.client.RemoteDisconnected is a ConnectionResetError without a number.
    code = problem.errno or (errno.ECONNRESET if isinstance(problem, ConnectionResetError) else 0)
    return _SYSTEM_WORDS.get(code, problem.strerror or type(problem).__name__)
