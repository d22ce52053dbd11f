"""Real HTTP servers for engines' pages, well-behaved and not: what they do is set while they run."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

VLLM = 'vllm:num_requests_running{engine="0",model_name="m"} 1.0\n'


@dataclass
class Server:
    """do: what it does with a request, "ok" or a word of _ANSWERS or _SLOW or a status. bodies: path -> text."""

    port: int = 0
    do: str = "ok"
    bodies: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.address}/metrics"

    @property
    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]


@contextmanager
def server(do: str = "ok", text: str = VLLM, port: int = 0) -> Iterator[Server]:
    """A server on 127.0.0.1 that shows `text` at /metrics."""
    state = Server(do=do, bodies={"/metrics": text})
    listener = socket.create_server(("127.0.0.1", port))
    listener.settimeout(0.02)
    state.port = listener.getsockname()[1]
    thread = threading.Thread(target=_accept, args=(listener, state), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closed.set()
        thread.join()
        listener.close()


def _accept(listener: socket.socket, state: Server) -> None:
    while not state.closed.is_set():
        with contextlib.suppress(TimeoutError):
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, state), daemon=True).start()


def _serve(connection: socket.socket, state: Server) -> None:
    # Clients that hang up are part of the tests.
    with connection, contextlib.suppress(OSError, TimeoutError):
        connection.settimeout(5.0)
        request = b""
        while b"\r\n\r\n" not in request:
            piece = connection.recv(65536)
            if not piece:
                return
            request += piece
        state.requests.append(request.decode())
        _act(connection, state, request.split(b" ")[1].decode())


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
# What a server answers that needs no more than one write; {0} is the body, {1} its length in hexadecimal.
_ANSWERS: dict[str, bytes] = {
    "cut": _HEAD + b"Content-Length: 100000\r\n\r\n{0}",
    "cut-chunk": _HEAD + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n{0}",
    "cut-line": _HEAD + b"\r\n{0}and half a li",
    "chunked": _HEAD + b"Transfer-Encoding: chunked\r\n\r\n{1}\r\n{0}\r\n0\r\n\r\n",
    "gzip": _HEAD + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b",
    "html": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>hello</html>\n",
    "html-as-text": _HEAD + b"\r\n  <!doctype html>\n",
    "redirect": b"HTTP/1.1 307 Temporary\r\nLocation: http://127.0.0.1:9/?hush\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.9\r\n",
    "close": b"",
}


def _act(connection: socket.socket, state: Server, path: str) -> None:
    body = state.bodies.get(path, "").encode()
    whole = _HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    if state.do in _ANSWERS:
        connection.sendall(_ANSWERS[state.do].replace(b"{0}", body).replace(b"{1}", b"%x" % len(body)))
    elif state.do in _SLOW:
        _SLOW[state.do](connection, state, whole)
    elif state.do == "ok" and path in state.bodies:
        connection.sendall(whole)
    else:
        status = "404" if state.do == "ok" else state.do
        connection.sendall(f"HTTP/1.1 {status} Nothing here\r\nContent-Length: 5\r\n\r\nwords".encode())


def _hang(connection: socket.socket, state: Server, whole: bytes) -> None:
    state.closed.wait(30)


def _answer_late(connection: socket.socket, state: Server, whole: bytes) -> None:
    time.sleep(0.3)
    connection.sendall(whole)


def _trickle(connection: socket.socket, state: Server, whole: bytes) -> None:
    """Far more than a bound in all, and never a pause that looks like silence."""
    for byte in whole + b"x" * 10_000:
        connection.sendall(bytes([byte]))
        if state.closed.wait(0.02):
            return


def _trickle_body(connection: socket.socket, state: Server, whole: bytes) -> None:
    connection.sendall(_HEAD + b"\r\n")
    _trickle(connection, state, whole)


def _never_end(connection: socket.socket, state: Server, whole: bytes) -> None:
    connection.sendall(_HEAD + b"\r\n")
    while not state.closed.is_set():
        connection.sendall(b"# padding\n" * 10_000)


_SLOW: dict[str, Callable[[socket.socket, Server, bytes], None]] = {
    "hang": _hang, "slow": _answer_late, "trickle-head": _trickle, "trickle-body": _trickle_body, "huge": _never_end,
}  # fmt: skip
