"""Runs of an engine, cut at the ends of sampling intervals, and what an engine counts of them in each.

Interval i covers (i x every, (i + 1) x every] since the simulation began. A step counts where it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.simulator.arrays import Bools, Floats, Ints
from tests.queueing.engine import Runs


@dataclass(frozen=True)
class Intervals:
    """`count` sampling intervals of `every_ns`."""

    every_ns: int
    count: int

    @property
    def ends_ns(self) -> Ints:
        return np.arange(1, self.count + 1, dtype=np.int64) * self.every_ns

    def of(self, moments_ns: Ints) -> Ints:
        """In which each moment lies; `count` and more: after the last."""
        return -(-moments_ns // self.every_ns) - 1

    def sums(self, moments_ns: Ints, values: Ints | None = None) -> Ints:
        """How many of the moments lie in each interval, or the sums of their values."""
        places = self.of(moments_ns)
        inside = places < self.count
        weights = None if values is None else values[inside]
        return whole(np.bincount(places[inside], weights, minlength=self.count))

    def histograms(self, moments_ns: Ints, values_ns: Ints, bounds_ns: Ints) -> Ints:
        """A row an interval: counts of the values in (0, b1], (b1, b2], ... (bn, infinity)."""
        width = len(bounds_ns) + 1
        places = self.of(moments_ns)
        inside = places < self.count
        buckets = np.searchsorted(bounds_ns, values_ns[inside], side="left")
        flat = np.bincount(places[inside] * width + buckets, minlength=self.count * width)
        return whole(flat).reshape(self.count, width)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Parts of runs that end within one interval each. run: of which; skipped: steps of it before this part."""

    runs: Runs
    run: Ints
    skipped: Ints
    steps: Ints
    interval: Ints

    @property
    def decoding(self) -> Ints:
        return self.runs.decoding[self.run]

    @property
    def growth_ns(self) -> Ints:
        return self.runs.growth_ns[self.run]

    @property
    def first_ns(self) -> Ints:
        """What the first step of each takes."""
        return self.runs.first_ns[self.run] + self.growth_ns * self.skipped

    @property
    def elapsed_ns(self) -> Ints:
        return self.steps * self.first_ns + self.growth_ns * (self.steps * (self.steps - 1) // 2)


@dataclass(frozen=True, eq=False)
class At:
    """Where runs stand at moments. ended: how many have ended; within: whether the next has begun by then.

    run: that next one, or the last where none comes; done: steps of it that have ended.
    """

    ended: Ints
    within: Bools
    run: Ints
    done: Ints


def at(runs: Runs, moments_ns: Ints) -> At:
    """Raises ValueError where there are no runs."""
    if not len(runs.steps):
        raise ValueError("no run to stand in")
    ended = np.searchsorted(runs.end_ns, moments_ns, side="right")
    run = np.minimum(ended, len(runs.steps) - 1)
    within = (ended == run) & (runs.start_ns[run] <= moments_ns)
    gap_ns = np.where(within, moments_ns - runs.start_ns[run], 0)
    return At(ended, within, run, steps_within(gap_ns, runs.first_ns[run], runs.growth_ns[run]))


@dataclass(frozen=True, eq=False)
class Work:
    """Done up to each moment: time in steps, prompt tokens read, tokens of sequences that were gone on with."""

    stepping_ns: Ints
    read: Ints
    decoded: Ints


def work(runs: Runs, moments_ns: Ints) -> Work:
    if not len(runs.steps):
        return Work(*(np.zeros(len(moments_ns), np.int64) for _ in range(3)))
    state = at(runs, moments_ns)
    part_ns = np.where(state.within, moments_ns - runs.start_ns[state.run], 0)
    return Work(
        stepping_ns=_before(runs.end_ns - runs.start_ns, state) + part_ns,
        read=_before(runs.prompt_tokens, state),
        decoded=_before(runs.steps * runs.decoding, state) + state.done * runs.decoding[state.run],
    )


def _before(values: Ints, state: At) -> Ints:
    """Their sum over the runs that have ended."""
    sums: Ints = np.concatenate([[0], np.cumsum(values)])[state.ended]
    return sums


def steps_within(gap_ns: Ints, first_ns: Ints, growth_ns: Ints) -> Ints:
    """The most steps that take `gap_ns` together or less, where the i-th takes first + i x growth, exactly."""
    half: Floats = first_ns - growth_ns / 2
    steps = np.floor(2 * gap_ns / (half + np.sqrt(half * half + 2.0 * growth_ns * gap_ns))).astype(np.int64)

    def elapsed(steps: Ints) -> Ints:
        return steps * first_ns + growth_ns * (steps * (steps - 1) // 2)

    # The estimate is right but for a step.
    steps -= elapsed(steps) > gap_ns
    steps += elapsed(steps + 1) <= gap_ns
    return steps


def cut(runs: Runs, intervals: Intervals) -> Pieces:
    """The runs' steps that end within the intervals."""
    count = len(runs.steps)
    if not count:
        return Pieces(runs, *(np.zeros(0, np.int64) for _ in range(4)))
    edges = at(runs, intervals.ends_ns)
    inner = edges.within & (edges.done > 0)
    run = np.insert(np.arange(count), edges.run[inner] + 1, edges.run[inner])
    skipped = np.insert(np.zeros(count, np.int64), edges.run[inner] + 1, edges.done[inner])
    following = np.append(np.where(run[1:] == run[:-1], skipped[1:], runs.steps[run[:-1]]), runs.steps[-1])
    first_end_ns = runs.start_ns[run] + runs.part(run).elapsed_ns(skipped + 1)
    interval = intervals.of(first_end_ns)
    kept = (following > skipped) & (interval < intervals.count)
    return Pieces(runs, run[kept], skipped[kept], (following - skipped)[kept], interval[kept])


def step_histograms(pieces: Pieces, count: int, bounds_ns: Ints) -> Ints:
    """A row an interval: what its steps took, each counted once for every sequence that got a token of it."""
    width = len(bounds_ns) + 1
    first_ns, growth_ns = pieces.first_ns, pieces.growth_ns
    last_ns = first_ns + growth_ns * (pieces.steps - 1)
    low, high = (np.searchsorted(bounds_ns, ns, side="left") for ns in (first_ns, last_ns))
    one = low == high
    flat = np.bincount(
        pieces.interval[one] * width + low[one], (pieces.steps * pieces.decoding)[one], minlength=count * width
    )
    several = ~one
    if several.any():
        below = np.zeros((int(several.sum()), width + 1), dtype=np.int64)
        for bucket, bound_ns in enumerate(bounds_ns):
            # Steps at or under the bound; growth is above 0 where a piece lies in several buckets.
            reached = (bound_ns - first_ns[several]) // growth_ns[several] + 1
            below[:, bucket + 1] = np.clip(reached, 0, pieces.steps[several])
        below[:, width] = pieces.steps[several]
        tokens = np.diff(below, axis=1) * pieces.decoding[several][:, None]
        places = pieces.interval[several][:, None] * width + np.arange(width)
        flat = flat + np.bincount(places.ravel(), tokens.ravel(), minlength=count * width)
    return whole(flat).reshape(count, width)


def whole(values: Floats | Ints) -> Ints:
    """Sums of whole numbers that numpy returns as floats; below 2^53 they are exact."""
    return np.rint(values).astype(np.int64)
