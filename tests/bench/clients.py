"""Sends prepared bodies over many connections at once and notes how long each answer took."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

GZIP = {"Content-Encoding": "gzip"}
OURS = ("/api/v1/ingest", {"Content-Type": "application/json", **GZIP})
VICTORIA = ("/api/v1/import/prometheus", GZIP)


@dataclass
class Outcome:
    seconds: float = 0.0
    latencies_s: list[float] = field(default_factory=list)
    failures: int = 0

    def quantile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies_s)
        return 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def send_all(port: int, route: tuple[str, dict[str, str]], queues: Sequence[Sequence[bytes]]) -> Outcome:
    """Each queue on a connection of its own, in order, one request in flight: as that many agents would."""
    outcome, guard = Outcome(), threading.Lock()

    def work(bodies: Sequence[bytes]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for one in bodies:
            began = time.perf_counter()
            connection.request("POST", route[0], one, route[1])
            answer = connection.getresponse()
            answer.read()
            took = time.perf_counter() - began
            with guard:
                outcome.latencies_s.append(took)
                outcome.failures += answer.status not in (200, 204)

    threads = [threading.Thread(target=work, args=(bodies,)) for bodies in queues]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcome.seconds = time.perf_counter() - began
    return outcome
