"""A pool of like replicas behind a router, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.simulator.arrays import Ints
from tests.queueing.arrivals import Requests
from tests.queueing.engine import Engine, Served, serve
from tests.queueing.hidden import ReplicaType

# random: every replica gets its part by chance. least_loaded: the one with the fewest requests that have not ended;
# of several the next in turn.
Join = Literal["random", "least_loaded"]


@dataclass(frozen=True)
class Pool:
    """share: of all requests, by chance. usd_per_kwh: electricity on top of the price, of the GPUs' energy x pue."""

    name: str
    kind: ReplicaType
    replicas: int
    share: float
    usd_per_gpu_hour: float
    usd_per_kwh: float = 0.0
    pue: float = 1.0
    join: Join = "least_loaded"

    def usd_per_hour(self, power_w: float) -> float:
        """What an hour of the pool costs when its GPUs draw `power_w` together."""
        return self.replicas * self.kind.gpus * self.usd_per_gpu_hour + power_w / 1000 * self.pue * self.usd_per_kwh

    def serve(self, requests: Requests, rng: np.random.Generator) -> list[Served]:
        """What its replicas made of the requests, which are all its own."""
        if self.join == "least_loaded" and self.replicas > 1:
            return _least_loaded(self.kind, self.replicas, requests)
        places = rng.integers(self.replicas, size=len(requests))
        return [serve(self.kind, requests.where(places == replica)) for replica in range(self.replicas)]


def parted(requests: Requests, pools: Sequence[Pool], rng: np.random.Generator) -> list[Requests]:
    """Each pool's requests: by chance, in the parts of their shares, which sum to 1."""
    shares = [pool.share for pool in pools]
    places: Ints = rng.choice(len(pools), size=len(requests), p=shares)
    return [requests.where(places == place) for place in range(len(pools))]


def _least_loaded(kind: ReplicaType, replicas: int, requests: Requests) -> list[Served]:
    engines = [Engine(kind) for _ in range(replicas)]
    longest = int((requests.prompt_tokens + requests.generated_tokens).max()) if len(requests) else 0
    if longest > kind.kv_tokens:
        raise ValueError(f"a request of {longest} tokens; the cache holds {kind.kv_tokens}")
    turn = replicas - 1
    for arrival_ns, prompt, generated in requests.rows():
        for engine in engines:
            if engine.next_ns <= arrival_ns:
                engine.advance(arrival_ns)
        turn = _next(engines, turn)
        engines[turn].offer_one(arrival_ns, prompt, generated)
    for engine in engines:
        engine.advance()
    return [engine.served() for engine in engines]


def _next(engines: Sequence[Engine], last: int) -> int:
    """The engine with the fewest outstanding requests, of several the first after the last that got one."""
    count = len(engines)
    return min(((last + ahead) % count for ahead in range(1, count + 1)), key=lambda place: engines[place].outstanding)
