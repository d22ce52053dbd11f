"""The hidden truth of a UTC day, minute by minute: what each replica did and what each GPU took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from app.simulator.arrays import Floats, Ints, generator
from app.simulator.fleet import Card, Replica, SimulatedNode, World
from app.simulator.latency import E2E_BOUNDS_S, ITL_BOUNDS_S, TTFT_BOUNDS_S, LogNormal, draw
from app.simulator.load import offered_per_s, up_share
from app.simulator.operating import Curve, study_curve
from app.simulator.recurring import DAY_MINUTES, MINUTE_S, covered_s

# Assumptions beyond the study, which sent chats of unlike length and had no cache of prompts, no hang-ups, no heat.
PROMPT_DEVIATION = 1.2  # of one request, relative to the mean
GENERATED_DEVIATION = 0.9
E2E_SIGMA = 0.8  # of the logarithm: requests differ in length
CACHED_SHARE = 0.12  # of the prompt tokens
ABORTED_SHARE = 0.004  # of the requests
LENGTH_SHARE = 0.15  # of the finished ones: they reach their limit
LEAST_GENERATED = 120  # a minute with work has a token in each slot of five seconds
HOT_SLOWNESS = 1.6  # latencies of a card that throttles
HOT_POWER = 0.8
POWER_DEVIATION = 0.015

# The days that the live rows and their checks ask for again and again: a day of each replica and GPU.
_KEPT_DAYS = 64


@dataclass(frozen=True, eq=False)
class ReplicaDay:
    """One entry a minute. counts: column of EngineSamples -> its sum in that minute.

    down_s: seconds at the start of the minute in which it does not answer. started: requests with a first token.
    running, waiting: their means. load: throughput over the best that such a replica sustains, while it answers.
    """

    counts: dict[str, Ints]
    started: Ints
    down_s: Ints
    load: Floats
    running: Floats
    waiting: Floats
    ttft: LogNormal
    itl: LogNormal
    e2e: LogNormal

    @property
    def finished(self) -> Ints:
        return self.counts["finished_stop"] + self.counts["finished_length"]

    @property
    def gaps(self) -> Ints:
        """Times between two tokens of a request."""
        return self.counts["generated_tokens"] - self.started


@dataclass(frozen=True, eq=False)
class BucketDay:
    """Counts by latency bucket, a row a minute."""

    ttft: Ints
    itl: Ints
    e2e: Ints


@dataclass(frozen=True, eq=False)
class GpuDay:
    """One entry a minute. absent_s: seconds at its start without the node; busy: an engine on it worked."""

    energy_mj: Ints
    power_w: Floats
    absent_s: Ints
    busy: Ints
    hot: Ints


@lru_cache(_KEPT_DAYS)
def replica_day(world: World, replica: Replica, day: int) -> ReplicaDay:
    """A day of a replica. day: whole days since 1970."""
    minutes = minutes_of(day)
    rng = generator(world.seed, "replica", replica.url, day)
    curve = study_curve(replica.pool.model, replica.card.name, len(replica.gpus))
    offered = offered_per_s(world, replica, minutes)
    served = curve.served(offered)
    slowness = 1.0 + (HOT_SLOWNESS - 1.0) * hot_share(replica, minutes)
    ttft = curve.ttft(offered).times(replica.ttft_factor * slowness)
    itl = curve.itl(offered).times(replica.itl_factor * slowness)
    e2e_mean_s = ttft.mean_s + itl.mean_s * (curve.generated_tokens - 1)
    queue_mean_s = np.maximum(ttft.mean_s - curve.prefill_s, 0.0)
    started = rng.poisson(served * up_share(replica, minutes) * MINUTE_S)
    return ReplicaDay(
        counts=_counts(rng, curve, started, ttft, itl, queue_mean_s),
        started=started,
        down_s=covered_s(replica.down, minutes),
        load=served / curve.best_per_s,
        running=served * e2e_mean_s,
        waiting=served * queue_mean_s,
        ttft=ttft,
        itl=itl,
        e2e=LogNormal.with_mean(e2e_mean_s, E2E_SIGMA),
    )


def _counts(
    rng: np.random.Generator, curve: Curve, started: Ints, ttft: LogNormal, itl: LogNormal, queue_mean_s: Floats
) -> dict[str, Ints]:
    """What the engine counts in each minute, in the columns' units."""
    prompt = _tokens(rng, started, curve.prompt_tokens, PROMPT_DEVIATION, 4)
    generated = _tokens(rng, started, curve.generated_tokens, GENERATED_DEVIATION, LEAST_GENERATED)
    aborted = rng.binomial(started, ABORTED_SHARE)
    length = rng.binomial(started - aborted, LENGTH_SHARE)
    ttft_us = _micros(started * ttft.mean_s)
    queue_us = np.minimum(_micros(started * queue_mean_s), ttft_us)
    decode_us = _micros((generated - started) * itl.mean_s)
    zero = np.zeros(len(started), np.int64)
    return {
        "prompt_tokens": prompt,
        "cached_tokens": rng.binomial(prompt, CACHED_SHARE),
        "transferred_tokens": zero,
        "generated_tokens": generated,
        "finished_stop": started - aborted - length,
        "finished_length": length,
        "finished_aborted": aborted,
        "finished_failed": zero,
        "rejected": zero,
        "preemptions": zero,
        "prefill_us": ttft_us - queue_us,
        "decode_us": decode_us,
        "queue_us": queue_us,
        "inference_us": ttft_us - queue_us + decode_us,
        "ttft_us": ttft_us,
        "itl_us": decode_us,
        "e2e_us": ttft_us + decode_us,
    }


def _tokens(rng: np.random.Generator, requests: Ints, mean: float, deviation: float, least: int) -> Ints:
    """Tokens of so many requests; of none, none."""
    spread = mean * deviation * np.sqrt(requests) * rng.standard_normal(len(requests))
    tokens = np.maximum(np.rint(requests * mean + spread), np.maximum(least, requests))
    return np.where(requests > 0, tokens, 0).astype(np.int64)


def _micros(total_s: Floats) -> Ints:
    return np.rint(total_s * 1e6).astype(np.int64)


@lru_cache(_KEPT_DAYS)
def bucket_day(world: World, replica: Replica, day: int) -> BucketDay:
    """The latency buckets of a replica's day: their sums are its first tokens, its gaps and its finished requests."""
    truth = replica_day(world, replica, day)
    rng = generator(world.seed, "buckets", replica.url, day)
    return BucketDay(
        ttft=draw(rng, truth.started, truth.ttft, TTFT_BOUNDS_S),
        itl=draw(rng, truth.gaps, truth.itl, ITL_BOUNDS_S),
        e2e=draw(rng, truth.finished, truth.e2e, E2E_BOUNDS_S),
    )


@lru_cache(_KEPT_DAYS)
def gpu_day(world: World, node: SimulatedNode, gpu: int, day: int) -> GpuDay:
    """A day of a GPU: power is affine in its replica's load."""
    minutes = minutes_of(day)
    rng = generator(world.seed, "gpu", node.uuid(gpu), day)
    absent_s = covered_s((node.away,) if node.away else (), minutes)
    replica = node.replica_of(gpu)
    busy, hot = np.zeros(DAY_MINUTES, np.int64), np.zeros(DAY_MINUTES, np.int64)
    power_w = np.full(DAY_MINUTES, node.card.bare_w)
    if replica is not None:
        truth = replica_day(world, replica, day)
        hot_part = hot_share(replica, minutes)
        busy, hot = (truth.started > 0).astype(np.int64), (hot_part > 0).astype(np.int64)
        power_w = _power_w(node.card, truth.load, up_share(replica, minutes), hot_part)
    power_w = power_w * (1.0 + POWER_DEVIATION * rng.standard_normal(DAY_MINUTES))
    energy_mj = np.rint(power_w * (MINUTE_S - absent_s) * 1e3).astype(np.int64)
    return GpuDay(energy_mj, power_w, absent_s, busy, hot)


def _power_w(card: Card, load: Floats, up: Floats, hot: Floats) -> Floats:
    serving_w = card.idle_w + (card.loaded_w - card.idle_w) * load * (1.0 - (1.0 - HOT_POWER) * hot)
    return up * serving_w + (1.0 - up) * card.bare_w


def hot_share(replica: Replica, minutes: Ints) -> Floats:
    """Part of each minute in which its cards slow down for heat."""
    return covered_s((replica.hot,) if replica.hot else (), minutes) / MINUTE_S


def minutes_of(day: int) -> Ints:
    """The minutes of a day, counted since 1970."""
    return np.arange(day * DAY_MINUTES, (day + 1) * DAY_MINUTES)


def days_between(first: int, last: int) -> Iterator[tuple[int, slice]]:
    """The minutes first to last - 1 as (day, its minutes)."""
    while first < last:
        day, place = divmod(first, DAY_MINUTES)
        end = min(last, (day + 1) * DAY_MINUTES)
        yield day, slice(place, place + end - first)
        first = end
