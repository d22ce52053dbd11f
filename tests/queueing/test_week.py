"""A day, and in `make test-all` the week, through the store: the product reads what was simulated."""

from __future__ import annotations

from bisect import bisect_left

import pytest

from app.hub.ingest import MAX_JSON_BYTES
from collectors.samples import decode, encode
from tests.queueing.arrivals import HOUR_S, SECOND_NS
from tests.queueing.pool import Pool
from tests.queueing.stored import BOUNDS_S, Stored
from tests.queueing.truth import Truth, capacity
from tests.queueing.week import LENGTHS, POOLS, SURGE, WEDNESDAY_S


def test_the_hub_accepts_what_the_nodes_send(stored: Stored) -> None:
    sent = next(stored.simulated.batches(60))
    received = decode(encode(sent), max_json_bytes=MAX_JSON_BYTES)
    assert received.engine_samples is not None
    assert received.gpu_samples is not None
    assert (len(received.engine_samples), len(received.gpu_samples)) == (1440, 2880)
    assert received.readings == sent.readings


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_tokens_requests_and_joules_are_those_of_the_truth(stored: Stored, pool: Pool) -> None:
    figures, truth = stored.figures(pool), stored.truth(pool)
    seconds = stored.simulated.end_s - stored.simulated.start_s
    replicas = stored.simulated.served[pool.name]
    end_ns = stored.simulated.end_s * SECOND_NS
    read = sum(int(one.requests.prompt_tokens[one.first_ns <= end_ns].sum()) for one in replicas)
    ended = sum(int((one.finished_ns <= end_ns).sum()) for one in replicas)
    assert figures["prompt_tokens"]["value"] == read
    assert figures["requests"]["value"] == ended
    # prompts half read at the end are no tokens yet of the counter
    tokens = figures["prompt_tokens"]["value"] + figures["generated_tokens"]["value"]
    assert tokens / seconds / len(replicas) == pytest.approx(truth.tokens_per_s, rel=1e-4)
    assert figures["energy_kwh"]["value"] * 3.6e6 == pytest.approx(truth.power_w * seconds, rel=1e-6)


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_quantiles_lie_in_the_buckets_of_the_truth(stored: Stored, pool: Pool) -> None:
    figures, truth = stored.figures(pool), stored.truth(pool)
    for metric, bounds_s in BOUNDS_S.items():
        for percentile in (50, 99):
            found_s = figures[f"{metric}_p{percentile}_ms"]["value"] / 1000
            true_s = truth.quantile_ms(metric, percentile) / 1000
            assert bisect_left(bounds_s, found_s) == bisect_left(bounds_s, true_s), (metric, percentile)


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_the_surge_is_more_than_a_replica_takes(stored: Stored, pool: Pool) -> None:
    """In its last half hour each makes what it can at most: else nobody could learn that from the samples."""
    most = capacity(pool.kind, LENGTHS)
    for one in stored.simulated.served[pool.name]:
        surge = Truth([one], (SURGE.end_s - 1800) * SECOND_NS, SURGE.end_s * SECOND_NS)
        assert surge.tokens_per_s == pytest.approx(most, rel=0.05)


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_nights_have_little_to_do(stored: Stored, pool: Pool) -> None:
    night_s = WEDNESDAY_S + 2 * HOUR_S
    night = Truth(stored.simulated.served[pool.name], night_s * SECOND_NS, (night_s + HOUR_S) * SECOND_NS)
    assert 0.02 < night.tokens_per_s / capacity(pool.kind, LENGTHS) < 0.12
