"""What the product learns of replicas whose parameters are hidden, and what it recommends, against the truth.

The truth at a load is that of the pool that was observed (`pool_at_load`): the same replicas behind the same router at
a steady rate. One replica alone waits longer, for its arrivals are not smoothed by the router's choice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import groupby

import numpy as np
import pytest

from app.answers.curves import LiveCurves, measure_curves
from app.answers.split import with_options
from app.split.answer import SplitAnswer
from app.split.demand import Demand, Slo, WorkloadClass
from app.split.live_point import Curve
from app.split.load_bin import ReplicaType
from app.split.point import OperatingPoint, is_small_sample
from app.split.recommend import recommend
from app.store.facts import fact_book
from collectors.benchmark.run import Latency, LatencyMetric
from tests.batches import at
from tests.queueing.arrivals import SECOND_NS, steadily
from tests.queueing.pool import Pool
from tests.queueing.stored import BOUNDS_S, Stored
from tests.queueing.truth import SplitTruth, Truth, capacity, highest_load, pool_at_load, simulate_split
from tests.queueing.week import CONFIG, LENGTHS, MODEL, POOLS

QUANTILES: tuple[tuple[LatencyMetric, float], ...] = (("ttft", 99), ("e2e", 99))
# Above it p99 rises by a bucket within the 2% that a bin of load is wide: which bucket it is in says little there. What
# counts, which of those loads is the last to keep an SLO, is in the split's cost and attainment.
STEADY = 0.9


@dataclass(frozen=True)
class Form:
    """requests, steps: of each simulation of the truth, and of the search for the highest load. Of 80,000 requests the
    truth itself would be uncertain by 3% of load: waiting near saturation comes in few long episodes.

    tenths: of the capacity, for each of which a point is held against the truth. split_s: how long a split lasts.
    cost: how far that of a recommended split may be from the true one. Of one replica alone in a day, five minutes at a
    high load are often five busy ones of a lower rate, and there are few of them: its curve is less certain.
    """

    requests: int
    steps: int
    tenths: int
    split_s: int
    cost: float


DAY = Form(requests=16_000, steps=5, tenths=2, split_s=300, cost=0.10)
WEEK = Form(requests=200_000, steps=8, tenths=1, split_s=1800, cost=0.02)


def form(stored: Stored) -> Form:
    return WEEK if stored.is_week else DAY


@pytest.fixture
def now(stored: Stored) -> datetime:
    return at(stored.simulated.end_us)


@pytest.fixture
def learned(stored: Stored, now: datetime) -> LiveCurves:
    return measure_curves(stored.store, CONFIG, now)


def curve_of(learned: LiveCurves, name: str) -> Curve:
    (found,) = (one for one in learned.curves if one.kind.fleet == name)
    return found


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_the_top_of_a_curve_is_the_capacity(stored: Stored, learned: LiveCurves, pool: Pool) -> None:
    top = max(point.tokens_per_s for point in curve_of(learned, pool.name).points)
    assert top == pytest.approx(capacity(pool.kind, LENGTHS), rel=0.05)


def shown(stored: Stored, curve: Curve, most: float) -> Iterator[OperatingPoint]:
    """Of each tenth or so of the capacity the point with most requests.

    Only those that show a p99 at all (five requests or more above it), and that lie below saturation.
    """
    steady = [
        point for point in curve.points
        if point.tokens_per_s < STEADY * most and "saturated" not in point.seen and not is_small_sample(point.n, 99)
    ]  # fmt: skip
    for _, tenth in groupby(steady, lambda point: int(10 / form(stored).tenths * point.tokens_per_s / most)):
        yield max(tenth, key=lambda point: point.n)


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_p99_is_within_a_bucket_at_every_load(stored: Stored, learned: LiveCurves, pool: Pool) -> None:
    most = capacity(pool.kind, LENGTHS)
    points = list(shown(stored, curve_of(learned, pool.name), most))
    assert len(points) >= 9 // form(stored).tenths - 1
    for point in points:
        truth = pool_at_load(
            stored.pool(pool.name), LENGTHS, point.tokens_per_s / LENGTHS.tokens, count=form(stored).requests
        )
        for metric, percentile in QUANTILES:
            found_s = point.latency[metric].quantiles_ms[percentile] / 1000
            true_s = truth.quantile_ms(metric, percentile) / 1000
            apart = bisect_left(BOUNDS_S[metric], found_s) - bisect_left(BOUNDS_S[metric], true_s)
            assert abs(apart) <= 1, (metric, point.tokens_per_s / most, found_s, true_s)


def asked(name: str, requests_per_s: float, slos: Sequence[tuple[LatencyMetric, float]]) -> WorkloadClass:
    return WorkloadClass(
        name=name,
        model=MODEL,
        requests_per_s=requests_per_s,
        prompt_tokens=LENGTHS.prompt_tokens,
        generated_tokens=LENGTHS.generated_tokens,
        slo=tuple(Slo(metric=metric, percentile=99, max_ms=max_ms) for metric, max_ms in slos),
    )


def demanded(*classes: WorkloadClass, **most_gpus: int) -> Demand:
    """At the prices in force of the fleets; of those named, so many GPUs at most. Tens of replicas of each fleet that
    is used: with a few, the split is more a matter of whole numbers than of what replicas do."""
    fleets = [{"name": pool.name, "gpu": pool.kind.card, "max_gpus": most_gpus.get(pool.name)} for pool in POOLS]
    return Demand.model_validate({"class": classes, "fleet": fleets})


# Each fleet misses some of the limits well below its capacity, and keeps each of them at some load.
CHAT = asked("chat", 90.0, [("ttft", 2_500)])
DOCUMENTS = asked("documents", 120.0, [("ttft", 5_000), ("e2e", 120_000)])
ONLINE = asked("online", 150.0, [("ttft", 5_000)])
ALL_FLEETS = "chat and documents on all fleets"
DEMANDS = {
    ALL_FLEETS: demanded(CHAT, DOCUMENTS, h100=150, rtx4090=360),
    "chat and documents on as many GPUs as it takes": demanded(CHAT, DOCUMENTS),
    "one class on all fleets": demanded(ONLINE, h100=80, rtx4090=200),
}


def demands_of(stored: Stored) -> Mapping[str, Demand]:
    """Of a day one is enough."""
    return DEMANDS if stored.is_week else {ALL_FLEETS: DEMANDS[ALL_FLEETS]}


def best(demand: Demand, stored: Stored, now: datetime, live: LiveCurves) -> SplitAnswer:
    answer = recommend(*with_options(demand, [], CONFIG, fact_book(stored.store), now, live)).answer
    assert answer.status == "optimal", answer.reason
    return answer


def true_curves(demand: Demand, stored: Stored, learned: LiveCurves) -> LiveCurves:
    """Of each fleet, for each class the highest load at which its pool keeps the SLOs, and what is true of it there."""
    said = form(stored)
    return LiveCurves(
        learned.start,
        learned.end,
        tuple(
            Curve(
                ReplicaType(pool.name, MODEL, pool.kind.card, pool.kind.gpus),
                tuple(filter(None, (highest_point(pool, slos, said) for slos in {one.slo for one in demand.classes}))),
                {},
            )
            for pool in stored.simulated.pools
        ),
    )


@cache
def highest_point(pool: Pool, slos: tuple[Slo, ...], said: Form) -> OperatingPoint | None:
    """None where the pool keeps them at no load."""
    per_s = highest_load(pool, LENGTHS, slos, count=said.requests, steps=said.steps)
    if not per_s:
        return None
    truth = pool_at_load(pool, LENGTHS, per_s, count=said.requests)
    return OperatingPoint(
        point_id=f"truth:{pool.name}:{per_s:.3f}",
        source="live",
        model=MODEL,
        gpu_name=pool.kind.card,
        gpus=pool.kind.gpus,
        qps=per_s,
        tokens_per_s=per_s * LENGTHS.tokens,
        prompt_share=LENGTHS.prompt_tokens / LENGTHS.tokens,
        n=said.requests,
        idle_w=pool.kind.idle_w,
        loaded_w=truth.power_w / pool.replicas,
        power_method="truth",
        latency={
            metric: Latency(quantiles_ms={percentile: truth.quantile_ms(metric, percentile)})
            for metric, percentile in QUANTILES
        },
    )


def test_the_recommended_split_costs_what_the_true_one_does(stored: Stored, learned: LiveCurves, now: datetime) -> None:
    for name, demand in demands_of(stored).items():
        found = best(demand, stored, now, learned).usd_per_hour
        truth = best(demand, stored, now, true_curves(demand, stored, learned)).usd_per_hour
        assert found == pytest.approx(truth, rel=form(stored).cost), name


def test_the_recommended_split_keeps_its_slos(stored: Stored, learned: LiveCurves, now: datetime) -> None:
    """All its replicas under fresh arrivals. Requests are alike, of whichever class: those of a class that go to a pool
    have the latencies of the pool."""
    seconds = form(stored).split_s
    for name, demand in demands_of(stored).items():
        answer = best(demand, stored, now, learned)
        split = simulated_split(answer, demand, seconds)
        assert split.usd_per_hour == pytest.approx(answer.usd_per_hour)
        for one in demand.classes:
            for slo in one.slo:
                kept = 100 * attainment(split, answer, one.name, slo, from_s=seconds // 4)
                assert kept >= slo.percentile, (name, slo.label)


def simulated_split(answer: SplitAnswer, demand: Demand, seconds: int) -> SplitTruth:
    kinds = {pool.name: pool.kind for pool in POOLS}
    pools = [
        Pool(
            pool.option.point.point_id,
            kinds[pool.option.fleet.name],
            pool.count,
            pool.tokens_per_s / answer.tokens_per_s,
            pool.option.fleet.usd_per_gpu_hour,
        )
        for pool in answer.pools
    ]
    per_s = sum(one.requests_per_s for one in demand.classes)
    return simulate_split(pools, steadily(np.random.default_rng(77), per_s, LENGTHS, round(per_s * seconds)))


def attainment(split: SplitTruth, answer: SplitAnswer, class_name: str, slo: Slo, *, from_s: int) -> float:
    """Of the requests whose first token or end comes after `from_s`: before it the replicas fill up."""
    shares: Mapping[str, float] = {
        share.option.point.point_id: share.share for share in answer.shares if share.class_name == class_name
    }
    assert sum(shares.values()) == pytest.approx(1.0)
    end_ns = split.everyone.end_ns
    return sum(
        share * Truth(split.pools[name].replicas, from_s * SECOND_NS, end_ns).attainment(slo)
        for name, share in shares.items()
    )
