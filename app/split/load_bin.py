"""Bins of load: what replicas of one type did while each made about so many tokens a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from app.accounting.latency import Bucket, merged
from collectors.samples import LatencyMetric

# A bin of fewer minutes says more of their chance than of its load.
LEAST_MINUTES = 5
# So many requests show a p99: five of them lie above it. Bins are widened, up to so many fold, until most hold as many.
LEAST_REQUESTS = 500
WIDEST = 8


@dataclass(frozen=True)
class ReplicaType:
    """Replicas that do alike: of one fleet, model, card and number of GPUs, all simulated or none."""

    fleet: str
    model: str
    gpu_name: str
    gpus: int
    simulated: bool = False


@dataclass(frozen=True)
class LoadBin:
    """Sums over minutes of replicas. Loads are [low, high) in tokens/s (prompt + generated) of one replica.

    seconds: of replicas; queued_s: of them, those of five minutes in which requests waited all along. engines: on the
    day with most. finished, failed: requests (failed: with aborted ones); finished None where nobody tells.
    running_s: running requests x seconds, over gauged_s; 0 where nobody tells. prefill_s, decode_s: sums of finished
    requests' times, over the tokens of replicas that tell them. power_ws: energy of the seconds, in W x s.
    """

    low: float
    high: float
    is_throttled: bool
    engines: int
    minutes: float
    seconds: float
    queued_s: float
    finished: float | None
    failed: float
    prompt_tokens: float
    generated_tokens: float
    running_s: float
    gauged_s: float
    prefill_s: float
    decode_s: float
    timed_prompt_tokens: float
    timed_generated_tokens: float
    power_ws: float
    latency: Mapping[LatencyMetric, Sequence[Bucket]] = field(default_factory=dict)

    @property
    def tokens_per_s(self) -> float:
        """What one replica sustained."""
        return (self.prompt_tokens + self.generated_tokens) / self.seconds

    @property
    def power_w(self) -> float:
        return self.power_ws / self.seconds

    @property
    def requests(self) -> int:
        """That finished; where nobody tells, those that have an end-to-end time, else a first token."""
        if self.finished is not None:
            return round(self.finished)
        metrics: tuple[LatencyMetric, ...] = ("e2e", "ttft")
        counted = [self.latency[metric] for metric in metrics if self.latency.get(metric)]
        return sum(bucket.n for bucket in counted[0]) if counted else 0

    @property
    def running(self) -> float | None:
        return self.running_s / self.gauged_s if self.gauged_s else None


_SUMMED = [one.name for one in fields(LoadBin) if one.name not in ("low", "high", "is_throttled", "engines", "finished",
                                                                   "latency")]  # fmt: skip


def together(bins: Sequence[LoadBin]) -> LoadBin:
    """Their sum, with all their latencies. At least one."""
    told = [one.finished for one in bins if one.finished is not None]
    metrics = {metric: None for one in bins for metric in one.latency}
    return LoadBin(
        low=min(one.low for one in bins),
        high=max(one.high for one in bins),
        is_throttled=any(one.is_throttled for one in bins),
        engines=max(one.engines for one in bins),
        finished=sum(told) if told else None,
        latency={
            metric: merged(bucket for one in bins for bucket in one.latency.get(metric, ())) for metric in metrics
        },
        **{name: sum(getattr(one, name) for one in bins) for name in _SUMMED},
    )


def widened(bins: Sequence[LoadBin], steps: Sequence[int], per_doubling: int) -> list[LoadBin]:
    """Bins of steps of load, `per_doubling` of them between a load and its double, as fewer and wider ones.

    Far below the highest load they need not be narrow relative to their own: in each halving below the first two they
    are twice as wide. All are widened further where most of the narrow ones hold too few requests to show a p99.
    """
    found: list[LoadBin] = list(bins)
    width = 1
    while width <= WIDEST:
        found = _grouped(bins, steps, per_doubling, width)
        requests = sorted(one.requests for one in found)
        if not requests or requests[len(requests) // 2] >= LEAST_REQUESTS:
            break
        width *= 2
    return found


def _grouped(bins: Sequence[LoadBin], steps: Sequence[int], per_doubling: int, width: int) -> list[LoadBin]:
    groups: dict[tuple[int, bool], list[LoadBin]] = {}
    top = max(steps, default=0) // per_doubling
    for one, step in zip(bins, steps, strict=True):
        fold = min(per_doubling, width * 2 ** max(0, top - step // per_doubling - 1))
        groups.setdefault((step // fold * fold, one.is_throttled), []).append(one)
    return [together(group) for _, group in sorted(groups.items())]


def normal(bins: Iterable[LoadBin]) -> tuple[list[LoadBin], float]:
    """One bin per load without its throttled minutes, and how many those were.

    Where most of a load's time was throttled that is what the load does to the card, as to one at its power limit:
    then all of it counts, and the bin is a throttled one.
    """
    by_load: dict[float, list[LoadBin]] = {}
    for one in bins:
        by_load.setdefault(one.low, []).append(one)
    found: list[LoadBin] = []
    left_out = 0.0
    for same in by_load.values():
        slowed, free = [one for one in same if one.is_throttled], [one for one in same if not one.is_throttled]
        if sum(one.seconds for one in slowed) > sum(one.seconds for one in free):
            found.append(together(same))
        else:
            found.append(together(free))
            left_out += sum(one.minutes for one in slowed)
    return sorted(found, key=lambda one: one.low), left_out


def wide_enough(bins: Iterable[LoadBin]) -> tuple[list[LoadBin], float]:
    """Those of at least LEAST_MINUTES, and the minutes of the others."""
    all_of_them = list(bins)
    kept = [one for one in all_of_them if one.minutes >= LEAST_MINUTES]
    return kept, sum(one.minutes for one in all_of_them if one.minutes < LEAST_MINUTES)
