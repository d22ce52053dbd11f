"""Sends the spool to the hub: in order, one batch in flight, forgotten only when acknowledged."""

from __future__ import annotations

import ipaddress
import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from collectors.hub_answer import MISCONFIGURED_WAIT_S, Verdict, judge
from collectors.json_logs import log
from collectors.spool import Entry, Spool

INGEST_PATH = "/api/v1/ingest"
MAX_BACKOFF_S = 60.0
CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 65_536


class Pusher:
    """Drains a spool to a hub. `run` is the thread's body; `step` does one thing and says how long to wait.

    hub: its address, http(s)://host[:port][/prefix]. token_file: holds the node token; read at the start and again
    whenever the hub answers 401. batches_per_s: the pace of a catch-up. session, clock, utc_now, jitter: for tests.
    """

    def __init__(
        self,
        spool: Spool,
        hub: str,
        *,
        token_file: Path | None = None,
        batches_per_s: float = 20.0,
        session: requests.Session | None = None,
        read_timeout_s: float = READ_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._spool = spool
        self._url = hub.rstrip("/") + INGEST_PATH
        self._session = session or _session_for(hub)
        self._auth = _TokenAuth(token_file)
        self._pause_s = 1.0 / batches_per_s
        self._read_timeout_s = read_timeout_s
        self._clock, self._utc_now, self._jitter = clock, utc_now, jitter
        self._failures = 0
        self._not_before = clock()
        self._news = threading.Condition()
        self._has_news = False
        self._stop_at: float | None = None

    def wake(self) -> None:
        """There is a new batch. Does not cut a back-off short."""
        with self._news:
            self._has_news = True
            self._news.notify_all()

    def stop(self, within_s: float) -> None:
        """Send what can be sent within `within_s` seconds, trying at once, and then end `run`."""
        with self._news:
            self._stop_at = self._clock() + within_s
            self._not_before = self._clock()
            self._news.notify_all()

    def run(self) -> None:
        """Send until stopped. Never raises: what goes wrong is logged and tried again."""
        while True:
            try:
                wait_s = self.step()
            except Exception as problem:
                # Nothing was forgotten: the batch is still in the spool.
                log(logging.ERROR, "pushing failed", error=f"{type(problem).__name__}: {problem}")
                wait_s = self._fail()
            if not self._rest(wait_s):
                return

    def step(self) -> float | None:
        """Send the oldest batch if it is time. Returns seconds until the next step, None when the spool is empty."""
        with self._news:
            early_s = self._not_before - self._clock()
            if early_s > 0:
                return early_s
            self._has_news = False
        entry = self._spool.oldest()
        if entry is None:
            return None
        verdict = self._send(entry)
        if verdict.outcome == "acknowledged":
            self._spool.acknowledge(entry)
            if self._failures:
                log(logging.INFO, "the hub takes batches again", sequence=entry.sequence)
        elif verdict.outcome == "rejected":
            log(
                logging.ERROR,
                "the hub refused a batch; it is put aside",
                sequence=entry.sequence,
                reason=verdict.reason,
            )
            self._spool.reject(entry, verdict.reason)
        else:
            log(
                logging.WARNING,
                "the hub did not take a batch; it is kept",
                sequence=entry.sequence,
                reason=verdict.reason,
            )
            return self._fail(verdict.wait_s)
        self._failures = 0
        return self._leave_alone(self._pause_s)

    def _rest(self, wait_s: float | None) -> bool:
        """Wait: for news where wait_s is None, else that long or until told to stop. False when it is time to end."""
        with self._news:
            if self._stop_at is not None:
                if wait_s is None or self._clock() + wait_s >= self._stop_at:
                    return False
                self._news.wait(wait_s)
            elif wait_s is None:
                self._news.wait_for(lambda: self._has_news or self._stop_at is not None, timeout=60.0)
            else:
                self._news.wait_for(lambda: self._stop_at is not None, timeout=wait_s)
        return True

    def _send(self, entry: Entry) -> Verdict:
        problem = self._auth.problem
        if problem is not None:
            self._auth.read()
            if self._auth.problem is not None:
                return Verdict("kept", problem, MISCONFIGURED_WAIT_S)
        verdict, status = self._post(entry)
        # A token that was just replaced deserves a second try at once.
        if status == 401 and self._auth.read():
            verdict, _ = self._post(entry)
        return verdict

    def _post(self, entry: Entry) -> tuple[Verdict, int | None]:
        try:
            with self._session.post(
                self._url,
                data=entry.body,
                headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
                auth=self._auth,
                timeout=self._timeouts(),
                allow_redirects=False,
                stream=True,
            ) as response:
                body = self._answer_of(response)
                now = self._utc_now()
                verdict = judge(response.status_code, response.headers, body, sequence=entry.sequence, now=now)
                return verdict, response.status_code
        except (requests.RequestException, OSError) as problem:
            # Only the kind: the text may hold what a proxy's address holds.
            return Verdict("kept", f"no answer from {_place(self._url)}: {type(problem).__name__}"), None

    def _timeouts(self) -> tuple[float, float]:
        left_s = self._read_timeout_s if self._stop_at is None else max(self._stop_at - self._clock(), 0.05)
        return min(CONNECT_TIMEOUT_S, left_s), min(self._read_timeout_s, left_s)

    def _answer_of(self, response: requests.Response) -> bytes:
        """At most 64 KiB of the body, within the time-out as a whole: a trickling answer does not hold the agent."""
        body, end = b"", time.monotonic() + self._timeouts()[1]
        for piece in response.iter_content(4096):
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                break
            if time.monotonic() > end:
                raise requests.Timeout
        return body[:MAX_ANSWER_BYTES]

    def _fail(self, wait_s: float | None = None) -> float:
        self._failures += 1
        if wait_s is None:
            # Full jitter: a thousand agents do not come back at the same second.
            wait_s = self._jitter(1.0, min(MAX_BACKOFF_S, 2.0 ** min(self._failures, 10)))
        return self._leave_alone(wait_s)

    def _leave_alone(self, seconds: float) -> float:
        with self._news:
            self._not_before = self._clock() + seconds
        return seconds


class _TokenAuth(AuthBase):
    """Adds the bearer token. As an `auth` of its own it also keeps requests from using ~/.netrc instead."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._token: str | None = None
        self.problem: str | None = None
        self.read()

    def read(self) -> bool:
        """Read the file again; True when that gave another usable token. `problem` says in words what is wrong."""
        if self._path is None:
            return False
        before, self.problem = self._token, None
        try:
            token = self._path.read_text(encoding="ascii").strip()
            if not token or not token.isprintable() or " " in token:
                self.problem = f"the token file {self._path} must hold one token on one line"
        except OSError as problem:
            self.problem = f"the token file {self._path} cannot be read: {problem.strerror}"
        except UnicodeDecodeError:
            self.problem = f"the token file {self._path} must hold one token in ASCII"
        if self.problem is not None:
            return False
        self._token = token
        return token != before

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _session_for(hub: str) -> requests.Session:
    session = requests.Session()
    # A proxy of the environment is for hubs elsewhere, never for one on this machine.
    session.trust_env = not is_loopback(hub)
    session.headers["User-Agent"] = "wattmix-agent"
    return session


def is_loopback(hub: str) -> bool:
    """Whether the hub's address is on this machine."""
    host = urlsplit(hub).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
