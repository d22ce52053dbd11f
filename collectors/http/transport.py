"""One request within bounds of time and size; what goes wrong is told without the address's query or any key.

requests bounds each read, not the whole: a server that trickles would hold the caller for hours. So the request runs
on a thread of its own, and is left behind when its time is over.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

import requests
import urllib3.exceptions
from requests.auth import AuthBase

from collectors.http.address import origin
from collectors.http.problem import ProblemKind
from collectors.http.status import Reply
from collectors.push import is_loopback

MAX_REDIRECTS = 3
# Threads that wait for servers which trickle; with so many left behind no other request is begun.
MOST_UNDER_WAY = 8
_PIECE_BYTES = 16_384


@dataclass(frozen=True)
class Bounds:
    """connect_s, read_s: of one wait; total_s: of the request as a whole."""

    connect_s: float = 10.0
    read_s: float = 10.0
    total_s: float = 20.0
    max_bytes: int = 8 * 2**20


BOUNDS = Bounds()


class NoReply(Exception):
    """There is no answer; str(problem) says why."""

    def __init__(self, kind: ProblemKind, what: str) -> None:
        super().__init__(what)
        self.kind = kind


@dataclass
class _Outcome:
    reply: Reply | None = None
    problem: NoReply | None = None
    over: threading.Event = field(default_factory=threading.Event)
    response: requests.Response | None = None


class Transport:
    """Thread-safe."""

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self._outward = requests.Session()
        # A proxy of the environment is for servers elsewhere, never for one on this machine.
        self._local = requests.Session()
        self._local.trust_env = False
        logging.getLogger("urllib3.connectionpool").addFilter(_WITHOUT_QUERY)  # one filter is added once
        self._bounds = bounds
        self._free = threading.BoundedSemaphore(MOST_UNDER_WAY)

    def ask(self, url: str, params: Mapping[str, str], headers: Mapping[str, str], body: bytes | None = None) -> Reply:
        """The answer at `url`, whatever its status, to a GET, or a POST where there is a body. Raises NoReply.

        A redirect is followed on the same host only: a key is for that host. A body is a question, which changes
        nothing there, so it is sent again.
        """
        if not self._free.acquire(blocking=False):
            raise NoReply("timed_out", f"{MOST_UNDER_WAY} earlier requests still wait for their answers")
        outcome = _Outcome()
        threading.Thread(
            target=self._run, args=(outcome, url, dict(params), dict(headers), body), name="ask", daemon=True
        ).start()
        if not outcome.over.wait(self._bounds.total_s):
            _hang_up(outcome.response)
            raise NoReply("timed_out", f"no complete answer within {self._bounds.total_s:g} s")
        if outcome.reply is None:
            raise outcome.problem or NoReply("unreachable", "no answer")
        return outcome.reply

    def _run(
        self, outcome: _Outcome, url: str, params: dict[str, str], headers: dict[str, str], body: bytes | None
    ) -> None:
        try:
            outcome.reply = self._follow(outcome, url, params, headers, body)
        except NoReply as problem:
            outcome.problem = NoReply(problem.kind, str(problem))
        except Exception as problem:  # its text may hold the address with a key, so only its kind is told
            outcome.problem = NoReply(*_told(problem, self._bounds))
        finally:
            self._free.release()
            outcome.over.set()

    def _follow(
        self, outcome: _Outcome, url: str, params: dict[str, str], headers: dict[str, str], body: bytes | None
    ) -> Reply:
        method = "GET" if body is None else "POST"
        end_s = time.monotonic() + self._bounds.total_s
        for _ in range(MAX_REDIRECTS + 1):
            session = self._local if is_loopback(url) else self._outward
            with session.request(
                method, url, params=params, data=body, auth=_Headers(headers), allow_redirects=False, stream=True,
                timeout=(self._bounds.connect_s, self._bounds.read_s),
            ) as response:  # fmt: skip
                outcome.response = response
                if not response.is_redirect:
                    return Reply(response.status_code, response.headers, self._body(response, end_s))
                url, params = _next(url, response.headers["Location"]), {}
        raise NoReply("unreachable", f"more than {MAX_REDIRECTS} redirects")

    def _body(self, response: requests.Response, end_s: float) -> bytes:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise NoReply("malformed", "a compressed answer, which was not asked for")
        body = bytearray()
        for piece in response.iter_content(_PIECE_BYTES):
            body += piece
            if len(body) > self._bounds.max_bytes:
                raise NoReply("malformed", f"an answer of more than {self._bounds.max_bytes / 2**20:g} MiB")
            if time.monotonic() > end_s:
                raise NoReply("timed_out", f"no complete answer within {self._bounds.total_s:g} s")
        return bytes(body)


class _WithoutQuery(logging.Filter):
    """urllib3 logs each path with its query at level DEBUG, and a redirect's query may hold the key that was sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(one.split("?")[0] if isinstance(one, str) else one for one in record.args)
        return True


_WITHOUT_QUERY = _WithoutQuery()


class _Headers(AuthBase):
    """The headers of a request. As an `auth` they also keep requests from using ~/.netrc instead."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.update(
            {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "wattmix", **self._headers}
        )
        return request


def _next(url: str, location: str) -> str:
    following = urljoin(url, location)
    before, after = urlsplit(url), urlsplit(following)
    upgraded = (before.scheme, after.scheme) == ("http", "https") and before.port in (None, 80)
    same = origin(url) == origin(following) or (upgraded and before.hostname == after.hostname and after.port is None)
    if not same or after.username is not None:
        # No more than the host: what follows may hold the key that was sent.
        place = f"{after.scheme}://{after.hostname}"[:120]
        raise NoReply("unreachable", f"it redirects to {place}, which is not followed: set base_url to where it is now")
    return following


def _told(problem: Exception, bounds: Bounds) -> tuple[ProblemKind, str]:
    inner = problem.args[0] if problem.args else None
    if isinstance(problem, requests.ConnectTimeout):
        return "timed_out", f"no connection within {bounds.connect_s:g} s"
    if isinstance(problem, requests.Timeout | TimeoutError) or isinstance(inner, urllib3.exceptions.ReadTimeoutError):
        return "timed_out", f"no answer within {bounds.read_s:g} s"
    if isinstance(problem, requests.exceptions.SSLError):
        return "unreachable", "the TLS connection fails: is its certificate, or this machine's clock, out of date?"
    if isinstance(problem, requests.exceptions.ProxyError):
        return "unreachable", "the proxy gives no connection"
    if isinstance(problem, requests.exceptions.ChunkedEncodingError | urllib3.exceptions.ProtocolError):
        return "unreachable", "the connection was cut before the answer was complete"
    if isinstance(problem, requests.ConnectionError):
        return "unreachable", _connection_words(inner)
    return "unreachable", f"no answer ({type(problem).__name__})"


def _connection_words(inner: object) -> str:
    if isinstance(inner, urllib3.exceptions.ProtocolError):
        return "the connection was closed without an answer"
    reason = getattr(inner, "reason", None)
    if isinstance(reason, urllib3.exceptions.NameResolutionError):
        return "its name is not known here"
    if isinstance(reason, urllib3.exceptions.NewConnectionError):
        return "no connection: refused, or no way there"
    return "no connection"


def _hang_up(response: requests.Response | None) -> None:
    """Ends the wait of the thread that was left behind, where urllib3 (2.3 or later) can."""
    shutdown: Callable[[], None] | None = getattr(getattr(response, "raw", None), "shutdown", None)
    if shutdown is not None:
        try:
            shutdown()
        except (OSError, ValueError):
            return  # it has ended by itself
