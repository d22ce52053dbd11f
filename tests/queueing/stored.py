"""What was simulated, and the store that all of it went into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.answers.query import AccountQuery
from app.answers.summary import summary
from app.simulator.latency import E2E_BOUNDS_S, ITL_BOUNDS_S, TTFT_BOUNDS_S
from app.store.database import Store
from collectors.samples import LatencyMetric
from tests.batches import HOUR, at
from tests.queueing.arrivals import SECOND_NS
from tests.queueing.pool import Pool
from tests.queueing.truth import Truth
from tests.queueing.week import CONFIG, Simulated, fill

BOUNDS_S: dict[LatencyMetric, tuple[float, ...]] = {"ttft": TTFT_BOUNDS_S, "itl": ITL_BOUNDS_S, "e2e": E2E_BOUNDS_S}


@dataclass(frozen=True, eq=False)
class Stored:
    """is_week: the long form, of a week with all replicas; else a day of one replica a fleet."""

    simulated: Simulated
    store: Store
    is_week: bool

    def pool(self, name: str) -> Pool:
        """As it was simulated."""
        (found,) = (pool for pool in self.simulated.pools if pool.name == name)
        return found

    def truth(self, pool: Pool) -> Truth:
        edges = (self.simulated.start_s * SECOND_NS, self.simulated.end_s * SECOND_NS)
        return Truth(self.simulated.served[pool.name], *edges)

    def figures(self, pool: Pool) -> dict[str, Any]:
        end = at(self.simulated.end_us)
        query = AccountQuery(at(self.simulated.start_us), end, by="fleet", boundary="gpu")
        answer = summary(self.store, CONFIG, query, at(self.simulated.end_us + 3 * HOUR))
        (line,) = (line for line in answer["lines"] if line["key"]["fleet"] == pool.name)
        return dict(line["figures"])


@contextmanager
def stored_in(folder: Path, simulated: Simulated, *, is_week: bool) -> Iterator[Stored]:
    """A day with a row every 15 s, a week with one a minute."""
    store = Store.open(folder / "store.duckdb")
    fill(store, simulated, 60 if is_week else 15)
    yield Stored(simulated, store, is_week)
    store.close()
