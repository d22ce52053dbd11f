"""Which replicas are slower, or more or less loaded, than others of their kind. Pure.

Each replica is held against the median of its peers, itself left out, so that one outlier neither hides itself nor
accuses the others. It is named when it is beyond a factor of that median and further from it than SPREADS times the
peers' own spread (the median absolute deviation, scaled to a standard deviation): a kind whose replicas differ anyway
accuses none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

SLOW_FACTOR = 1.5
FEW_FACTOR, MANY_FACTOR = 0.6, 1.6
SPREADS = 3.0
MAD_TO_SIGMA = 1.4826  # of a normal distribution
MIN_LIKE = 3
# A median of 20 latencies is good to about a quarter of their spread.
MIN_FIRST_TOKENS = 20
# 50 requests vary by 7 by chance alone: 0.6 and 1.6 times as many are 3 and 4 standard deviations away.
MIN_REQUESTS = 50

Quantity = Literal["ttft", "speed", "load"]


@dataclass(frozen=True)
class Observation:
    """What a replica did in one window, the same for all.

    like: replicas of equal `like` are compared. ttft_s: median time to first token, of `first_tokens` requests.
    tokens_per_request_s: generated tokens a second and running request; None when none ran.
    requests_per_s: finished requests over the seconds seen. None is not known: it takes no part.
    """

    replica: str
    like: Hashable
    first_tokens: int
    ttft_s: float | None
    tokens_per_request_s: float | None
    requests_per_s: float | None
    seen_s: float


@dataclass(frozen=True)
class Deviation:
    """A replica whose `quantity` is `value`, where the median of its `peers` is `peers_median`."""

    replica: str
    quantity: Quantity
    value: float
    peers_median: float
    peers: int

    @property
    def factor(self) -> float:
        return self.value / self.peers_median


@dataclass(frozen=True)
class NotJudged:
    """Replicas of a kind that were not compared, and why."""

    like: Hashable
    replicas: int
    reason: str


@dataclass(frozen=True)
class Balance:
    deviations: tuple[Deviation, ...]
    not_judged: tuple[NotJudged, ...]


@dataclass(frozen=True)
class _Test:
    """value_of: the compared value, None when the replica takes no part. is_beyond: of value and peers' median."""

    quantity: Quantity
    value_of: Callable[[Observation], float | None]
    is_beyond: Callable[[float, float], bool]


def _if_enough(value_of: Callable[[Observation], float | None]) -> Callable[[Observation], float | None]:
    return lambda one: value_of(one) if one.first_tokens >= MIN_FIRST_TOKENS else None


_TESTS = (
    _Test("ttft", _if_enough(lambda one: one.ttft_s), lambda value, usual: value > SLOW_FACTOR * usual),
    _Test("speed", _if_enough(lambda one: one.tokens_per_request_s), lambda value, usual: value * SLOW_FACTOR < usual),
    _Test(
        "load",
        lambda one: one.requests_per_s,
        lambda value, usual: value < FEW_FACTOR * usual or value > MANY_FACTOR * usual,
    ),
)


def judge(observations: Iterable[Observation]) -> Balance:
    """The replicas that differ from their like, by replica and quantity; kinds that could not be compared, and why."""
    kinds: dict[Hashable, list[Observation]] = {}
    for one in observations:
        kinds.setdefault(one.like, []).append(one)
    deviations: list[Deviation] = []
    not_judged: list[NotJudged] = []
    for like, replicas in kinds.items():
        if len(replicas) < MIN_LIKE:
            reason = f"{MIN_LIKE} like replicas are needed to tell which one is off"
        else:
            compared = [_compare(test, replicas) for test in _TESTS]
            deviations += [one for found in compared if found is not None for one in found]
            reason = "" if any(found is not None for found in compared) else "too few requests to compare them"
        if reason:
            not_judged.append(NotJudged(like, len(replicas), reason))
    order = [test.quantity for test in _TESTS]
    deviations.sort(key=lambda one: (one.replica, order.index(one.quantity)))
    not_judged.sort(key=lambda one: str(one.like))
    return Balance(tuple(deviations), tuple(not_judged))


def _compare(test: _Test, replicas: Sequence[Observation]) -> list[Deviation] | None:
    """None when fewer than MIN_LIKE of the replicas can be compared."""
    known = sorted(((value, one) for one in replicas if (value := test.value_of(one)) is not None), key=_first)
    if len(known) < MIN_LIKE:
        return None
    values = [value for value, _ in known]
    found: list[Deviation] = []
    judged = 0
    for place, (value, one) in enumerate(known):
        usual = _median_without(values, place)
        if test.quantity == "load" and usual * one.seen_s < MIN_REQUESTS:
            continue
        judged += 1
        if not test.is_beyond(value, usual):
            continue
        peers = values[:place] + values[place + 1 :]
        if abs(value - usual) > SPREADS * MAD_TO_SIGMA * median(abs(peer - usual) for peer in peers):
            found.append(Deviation(one.replica, test.quantity, value, usual, len(peers)))
    return found if judged else None


def _median_without(ordered: Sequence[float], place: int) -> float:
    """The median of ascending values but the one at `place`; of thousands of replicas at once."""
    low, high = (len(ordered) - 2) // 2, (len(ordered) - 1) // 2
    return (ordered[low + (low >= place)] + ordered[high + (high >= place)]) / 2


def _first(pair: tuple[float, Observation]) -> float:
    return pair[0]
