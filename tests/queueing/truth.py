"""The hidden truth: what replicas sustain, how long requests wait at which load, what a split costs and keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.simulator.arrays import Ints
from app.split.demand import Slo
from collectors.benchmark.run import LatencyMetric
from tests.queueing.arrivals import SECOND_NS, Lengths, Requests, steadily
from tests.queueing.engine import Served, serve
from tests.queueing.hidden import ReplicaType
from tests.queueing.pieces import whole, work
from tests.queueing.pool import Pool, parted
from tests.queueing.samples import energy_mj

# Runs are taken apart into steps so many at once, for the memory that it takes.
RUNS_AT_ONCE = 100_000


@dataclass(frozen=True, eq=False)
class Truth:
    """What replicas did in (start, end]: exact latencies, not buckets of them; itl to the microsecond.

    Of ttft the requests whose first token came then count, of e2e and tpot those that ended, of itl each token but the
    first of a request.
    """

    replicas: Sequence[Served]
    start_ns: int
    end_ns: int

    @property
    def _seconds(self) -> float:
        return (self.end_ns - self.start_ns) / SECOND_NS

    @property
    def tokens_per_s(self) -> float:
        """Prompt tokens read and tokens generated, of a mean replica."""
        edges = np.array([self.start_ns, self.end_ns])
        tokens = 0
        for one in self.replicas:
            done = work(one.runs, edges)
            firsts = np.searchsorted(one.first_ns, edges, side="right")
            tokens += int(np.diff(done.read + done.decoded + firsts)[0])
        return tokens / self._seconds / len(self.replicas)

    @property
    def power_w(self) -> float:
        """Of all replicas together."""
        edges = np.array([self.start_ns, self.end_ns])
        return sum(float(np.diff(energy_mj(one, edges))[0]) for one in self.replicas) / 1000 / self._seconds

    def quantile_ms(self, metric: LatencyMetric, percentile: float) -> float:
        """The smallest latency that `percentile` % are at or under."""
        values_ns, counts = self._latencies(metric)
        order = np.argsort(values_ns)
        sums = np.cumsum(counts[order])
        rank = np.searchsorted(sums, percentile / 100 * sums[-1], side="left")
        return float(values_ns[order][rank]) / 1e6

    def attainment(self, slo: Slo) -> float:
        """Share at or under the limit."""
        values_ns, counts = self._latencies(slo.metric)
        return float(counts[values_ns <= round(slo.max_ms * 1e6)].sum() / counts.sum())

    def keeps(self, slos: Sequence[Slo]) -> bool:
        return all(100 * self.attainment(slo) >= slo.percentile for slo in slos)

    def _latencies(self, metric: LatencyMetric) -> tuple[Ints, Ints]:
        """Values in nanoseconds and how often each was seen."""
        if metric == "itl":
            parts = [self._token_times(one) for one in self.replicas]
            return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        joined = np.concatenate([self._of_requests(one, metric) for one in self.replicas])
        return joined, np.ones(len(joined), np.int64)

    def _of_requests(self, one: Served, metric: LatencyMetric) -> Ints:
        moments_ns = one.first_ns if metric == "ttft" else one.finished_ns
        there = (moments_ns > self.start_ns) & (moments_ns <= self.end_ns)
        if metric == "tpot":
            return one.tpot_ns[there & (one.requests.generated_tokens > 1)]
        return (one.ttft_ns if metric == "ttft" else one.e2e_ns)[there]

    def _token_times(self, one: Served) -> tuple[Ints, Ints]:
        """What each step took, in whole microseconds, as often as a sequence got a token of it."""
        found = np.zeros(0, np.int64)
        for first in range(0, len(one.runs.steps), RUNS_AT_ONCE):
            runs = one.runs.part(slice(first, first + RUNS_AT_ONCE))
            place = np.arange(runs.steps.sum()) - np.repeat(np.cumsum(runs.steps) - runs.steps, runs.steps)
            steps = runs.part(np.repeat(np.arange(len(runs.steps)), runs.steps))
            end_ns = steps.start_ns + steps.elapsed_ns(place + 1)
            there = (end_ns > self.start_ns) & (end_ns <= self.end_ns)
            taken_us = -(-(steps.first_ns + place * steps.growth_ns)[there] // 1000)
            more = whole(np.bincount(taken_us, steps.decoding[there], minlength=len(found)))
            more[: len(found)] += found
            found = more
        values_us = np.flatnonzero(found)
        return values_us * 1000, found[values_us]


def capacity(kind: ReplicaType, lengths: Lengths, *, count: int = 20_000, seed: int = 1) -> float:
    """The best tokens/s (prompt + generated) that a replica sustains: with more waiting than it can take at any time.

    Measured from the moment a quarter of `count` requests were let in to the one when all were.
    """
    served = serve(kind, steadily(np.random.default_rng(seed), np.inf, lengths, count))
    return Truth([served], int(served.scheduled_ns[count // 4]), int(served.scheduled_ns[-1])).tokens_per_s


def alone(kind: ReplicaType) -> Pool:
    """One replica that gets all of its requests."""
    return Pool(kind.card, kind, 1, 1.0, 0.0)


def pool_at_load(pool: Pool, lengths: Lengths, per_s: float, *, count: int = 40_000, seed: int = 1) -> Truth:
    """A pool of which each replica gets requests at this steady rate in the mean, after the first tenth of `count`.

    The latencies at a load are those of its pool: a router that sends each request to the replica with the fewest makes
    a replica's arrivals smoother than those of one alone, which waits longer at the same load.
    """
    rng = np.random.default_rng(seed)
    requests = steadily(rng, per_s * pool.replicas, lengths, count)
    arrivals = requests.arrival_ns
    return Truth(pool.serve(requests, rng), int(arrivals[count // 10]), int(arrivals[-1]))


def at_load(kind: ReplicaType, lengths: Lengths, per_s: float, *, count: int = 40_000, seed: int = 1) -> Truth:
    """As `pool_at_load`, of one replica alone."""
    return pool_at_load(alone(kind), lengths, per_s, count=count, seed=seed)


def highest_load(
    pool: Pool, lengths: Lengths, slos: Sequence[Slo], *, count: int = 20_000, seed: int = 1, steps: int = 8
) -> float:
    """The most requests per second and replica at which a pool keeps every SLO: by bisection, to capacity / 2^steps.

    0.0 where it keeps them at no load that was tried.
    """
    kept, broken = 0.0, capacity(pool.kind, lengths) / lengths.tokens
    for _ in range(steps):
        tried = (kept + broken) / 2
        truth = pool_at_load(pool, lengths, tried, count=count, seed=seed)
        if truth.keeps(slos):
            kept = tried
        else:
            broken = tried
    return kept


@dataclass(frozen=True, eq=False)
class SplitTruth:
    """A split as simulated. everyone: of all its replicas, up to the end of the last request; pools: of each pool that
    has some, by name, up to the last arrival.
    """

    everyone: Truth
    pools: Mapping[str, Truth]
    usd_per_hour: float


def simulate_split(pools: Sequence[Pool], requests: Requests, *, seed: int = 1) -> SplitTruth:
    """The requests on the pools, each getting its share of them, over the time in which they arrive.

    Ask `everyone` whether an SLO is kept: every request is in it. Cost and power are those until the last arrival.
    """
    rng = np.random.default_rng(seed)
    end_ns = int(requests.arrival_ns[-1])
    used = [pool for pool in pools if pool.replicas]
    served = [pool.serve(part, rng) for pool, part in zip(used, parted(requests, used, rng), strict=True)]
    truths = {pool.name: Truth(replicas, 0, end_ns) for pool, replicas in zip(used, served, strict=True)}
    everyone = [one for replicas in served for one in replicas]
    last_ns = max(int(one.finished_ns.max(initial=end_ns)) for one in everyone)
    return SplitTruth(
        everyone=Truth(everyone, 0, last_ns),
        pools=truths,
        usd_per_hour=sum(pool.usd_per_hour(truths[pool.name].power_w) for pool in used),
    )
