"""Sends a simulated node's batches to the hub as an agent does: in order, one in flight, again until acknowledged.

No spool: what was not sent yet can be computed again. What was sent is kept until the hub has it.
"""

from __future__ import annotations

import logging
import random
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime

import requests

from app.errors import HubError
from app.simulator.batches import Rows, Span, batch
from app.simulator.fleet import SimulatedNode, World
from collectors.hub_answer import Verdict, judge
from collectors.push import CONNECT_TIMEOUT_S, INGEST_PATH, is_loopback
from collectors.samples import encode

# A large batch waits for its turn among others.
READ_TIMEOUT_S = 60.0
MAX_BACKOFF_S = 30.0
# A hub that stops also ends its simulator, which need not say so meanwhile.
SILENT_FAILURES = 4

log = logging.getLogger("wattmix.simulator")


class Feed:
    """One node's way to the hub. sleep, utc_now, session: for tests."""

    def __init__(
        self,
        world: World,
        node: SimulatedNode,
        hub: str,
        *,
        session: requests.Session | None = None,
        sleep: Callable[[float], None] = time.sleep,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.node = node
        self._world = world
        self._hub = hub
        self._url = hub.rstrip("/") + INGEST_PATH
        self._session = session or requests.Session()
        # A proxy of the environment is for hubs elsewhere, never for one on this machine.
        self._session.trust_env = not is_loopback(hub)
        self._sleep, self._utc_now = sleep, utc_now
        self._epoch = secrets.token_hex(16)
        self._sequence = 0

    def send(self, span: Span, rows: Rows) -> int:
        """Send a span and wait until the hub has it; how many rows that were, 0 of a node that was off.

        Raises HubError when the hub refuses the batch: sending it again would not help.
        """
        made = batch(
            self._world, self.node, span, rows, epoch=self._epoch, sequence=self._sequence + 1,
            sent_at_us=round(self._utc_now().timestamp() * 1e6),
        )  # fmt: skip
        if made is None:
            return 0
        self._sequence += 1
        self._deliver(encode(made))
        return sum(len(table) for table in made.tables)

    def _deliver(self, body: bytes) -> None:
        failures = 0
        while (verdict := self._post(body)).outcome != "acknowledged":
            if verdict.outcome == "rejected":
                raise HubError(f"the hub at {self._hub} refused a batch of {self.node.name}: {verdict.reason}")
            failures += 1
            if failures == SILENT_FAILURES:
                log.warning("the hub at %s takes no batches: %s; trying on", self._hub, verdict.reason)
            backoff_s = random.uniform(0.2, min(MAX_BACKOFF_S, 2.0 ** min(failures, 10)))  # noqa: S311  no secret
            self._sleep(backoff_s if verdict.wait_s is None else verdict.wait_s)

    def _post(self, body: bytes) -> Verdict:
        try:
            response = self._session.post(
                self._url,
                data=body,
                headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
                timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S),
                allow_redirects=False,
            )
        except requests.RequestException as problem:
            return Verdict("kept", type(problem).__name__)
        return judge(
            response.status_code, response.headers, response.content, sequence=self._sequence, now=self._utc_now()
        )
