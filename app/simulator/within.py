"""What happens inside a minute of the truth: the seconds of a GPU's energy, the five-second slots of an engine's work.

The minute's sums are shared out, so that rows of seconds add up to rows of minutes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from app.simulator.arrays import Floats, Ints, generator
from app.simulator.days import BucketDay, bucket_day, gpu_day, replica_day
from app.simulator.fleet import Replica, SimulatedNode, World
from app.simulator.recurring import DAY_MINUTES, MINUTE_S, SLOT_S

SLOTS = MINUTE_S // SLOT_S
# Work and power of a slot or second vary by this much about the minute's mean.
_UNEVENNESS = 0.3
_KEPT_MINUTES = 256


def done_by(total: int, shares: Floats) -> Ints:
    """How much of a whole number is done at each edge of the shares."""
    return np.floor(total * shares).astype(np.int64)


@lru_cache(_KEPT_MINUTES)
def energy_done_mj(world: World, node: SimulatedNode, gpu: int, minute: int) -> Ints:
    """A GPU's energy since the start of a minute, at its seconds 0 to 60."""
    day, at = divmod(minute, DAY_MINUTES)
    truth = gpu_day(world, node, gpu, day)
    shares = _shares(world, node.uuid(gpu), minute, MINUTE_S, int(truth.absent_s[at]))
    return done_by(int(truth.energy_mj[at]), shares)


@lru_cache(_KEPT_MINUTES)
def counts_done(world: World, replica: Replica, minute: int) -> dict[str, Ints]:
    """What an engine counted since the start of a minute, at seconds 0, 5, ... 60; `started` and `gaps` among it."""
    day, at = divmod(minute, DAY_MINUTES)
    truth = replica_day(world, replica, day)
    shares = _shares(world, replica.url, minute, SLOTS, int(truth.down_s[at]))
    columns = {**truth.counts, "started": truth.started, "gaps": truth.gaps}
    return {name: done_by(int(column[at]), shares) for name, column in columns.items()}


@lru_cache(_KEPT_MINUTES)
def slot_buckets(world: World, replica: Replica, minute: int) -> BucketDay:
    """The minute's latency buckets by slot: which requests fell into which is drawn without putting back."""
    day, at = divmod(minute, DAY_MINUTES)
    buckets = bucket_day(world, replica, day)
    done = counts_done(world, replica, minute)
    rng = generator(world.seed, "slots", replica.url, minute)
    finished = done["finished_stop"] + done["finished_length"]
    return BucketDay(
        ttft=_deal(rng, buckets.ttft[at], np.diff(done["started"])),
        itl=_deal(rng, buckets.itl[at], np.diff(done["gaps"])),
        e2e=_deal(rng, buckets.e2e[at], np.diff(finished)),
    )


def _shares(world: World, what: str, minute: int, steps: int, idle_s: int) -> Floats:
    """Part of a minute's work that is done at each edge of its steps; none in the first `idle_s` seconds."""
    unevenness = generator(world.seed, "within", what, minute).uniform(-_UNEVENNESS, _UNEVENNESS, steps)
    begins_s = np.arange(steps) * (MINUTE_S // steps)
    weights = np.where(begins_s >= idle_s, 1.0 + unevenness, 0.0)
    shares = np.zeros(steps + 1)
    if weights.any():
        shares[1:] = np.cumsum(weights) / weights.sum()
        shares[-1] = 1.0
    return shares


def _deal(rng: np.random.Generator, counts: Ints, sizes: Ints) -> Ints:
    """Counts by bucket dealt out to slots of those sizes: a row a slot."""
    left, dealt = counts.copy(), []
    for size in sizes:
        hand = rng.multivariate_hypergeometric(left, int(size))
        left -= hand
        dealt.append(hand)
    return np.array(dealt)
