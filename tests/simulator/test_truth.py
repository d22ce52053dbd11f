"""The hidden truth: it adds up over any cut, keeps its parts, and has the events in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulator.days import gpu_day, replica_day
from app.simulator.fleet import H100, RTX_4090, Card, Replica, SimulatedNode, demo_world
from app.simulator.truth import GpuTruth, ReplicaTruth, gpu_truth, replica_truth
from tests.simulator.wires import DAY_S, SECOND_US, WEDNESDAY_S, WORLD, node_named, of_the_day

HOUR_S = 3600
NODES = st.sampled_from(WORLD.nodes)
MOMENTS_US = st.integers(WEDNESDAY_S * SECOND_US, (WEDNESDAY_S + DAY_S) * SECOND_US)


def gpu(name: str, index: int, start_s: int, end_s: int) -> GpuTruth:
    return gpu_truth(WORLD, node_named(WORLD, name), index, start_s * SECOND_US, end_s * SECOND_US)


def replica_on(name: str, index: int = 0) -> Replica:
    found = node_named(WORLD, name).replica_of(index)
    assert found is not None
    return found


def engine(name: str, index: int, start_s: int, end_s: int) -> ReplicaTruth:
    return replica_truth(WORLD, replica_on(name, index), start_s * SECOND_US, end_s * SECOND_US)


@given(NODES, st.lists(MOMENTS_US, min_size=3, max_size=3).map(sorted))
def test_a_gpu_s_truth_adds_up_at_any_cut(node: SimulatedNode, moments: list[int]) -> None:
    start, cut, end = moments
    whole, one, other = (gpu_truth(WORLD, node, 1, a, b) for a, b in ((start, end), (start, cut), (cut, end)))
    assert one.energy_mj + other.energy_mj == whole.energy_mj
    for name in ("present_s", "used_s", "idle_s", "unallocated_s", "hot_s"):
        assert getattr(one, name) + getattr(other, name) == pytest.approx(getattr(whole, name), abs=1e-6)
    assert whole.used_s + whole.idle_s + whole.unallocated_s == pytest.approx(whole.present_s, abs=1e-6)
    assert 0 <= whole.present_s <= (end - start) / 1e6 + 1e-6


@given(st.sampled_from(WORLD.replicas), st.lists(MOMENTS_US, min_size=3, max_size=3).map(sorted))
def test_a_replica_s_truth_adds_up_at_any_cut(replica: Replica, moments: list[int]) -> None:
    start, cut, end = moments
    whole, one, other = (replica_truth(WORLD, replica, a, b) for a, b in ((start, end), (start, cut), (cut, end)))
    assert {name: one.counts[name] + other.counts[name] for name in whole.counts} == whole.counts
    assert one.started + other.started == whole.started
    assert one.used_s + other.used_s == pytest.approx(whole.used_s, abs=1e-6)


def test_a_day_is_the_sum_of_its_minutes() -> None:
    replica, node = replica_on("h100-1"), node_named(WORLD, "h100-1")
    day, start_s = WEDNESDAY_S // DAY_S, WEDNESDAY_S
    minutes = replica_day(WORLD, replica, day)
    whole = engine("h100-1", 0, start_s, start_s + DAY_S)
    assert whole.counts == {name: int(column.sum()) for name, column in minutes.counts.items()}
    assert whole.started == whole.finished + whole.counts["finished_aborted"]
    energy_mj = gpu("h100-1", 0, start_s, start_s + DAY_S).energy_mj
    assert energy_mj == int(gpu_day(WORLD, node, 0, day).energy_mj.sum())


def test_the_truth_is_the_same_in_any_order_of_asking_and_another_with_another_seed() -> None:
    start_us, end_us = of_the_day(9) * SECOND_US, of_the_day(10) * SECOND_US
    worlds = [demo_world(7), demo_world(7), demo_world(8)]
    later, again, other = (replica_truth(world, world.replicas[0], start_us, end_us) for world in worlds)
    assert later == again == engine("h100-1", 0, of_the_day(9), of_the_day(10))
    assert other.counts != later.counts


def test_requests_and_latency_sums_hang_together() -> None:
    hour = engine("gamer-1", 0, of_the_day(13), of_the_day(14))
    counts = hour.counts
    assert counts["inference_us"] == counts["prefill_us"] + counts["decode_us"]
    assert counts["ttft_us"] == counts["queue_us"] + counts["prefill_us"]
    assert counts["e2e_us"] == counts["ttft_us"] + counts["itl_us"]
    # the study's mean request has 208 prompt and about 209 generated tokens
    assert counts["prompt_tokens"] / hour.started == pytest.approx(208.25, rel=0.05)
    assert counts["generated_tokens"] / hour.started == pytest.approx(208.6, rel=0.05)
    assert 0.10 < counts["cached_tokens"] / counts["prompt_tokens"] < 0.14


@pytest.mark.parametrize(("name", "kind"), [("h100-1", H100), ("gamer-1", RTX_4090)])
def test_power_lies_between_idle_and_loaded_well_below_the_limit(name: str, kind: Card) -> None:
    night_w = gpu(name, 0, of_the_day(2), of_the_day(3)).energy_j / HOUR_S
    afternoon_w = gpu(name, 0, of_the_day(14), of_the_day(15)).energy_j / HOUR_S
    assert kind.idle_w < night_w < afternoon_w < kind.loaded_w < 0.85 * kind.limit_w


def test_a_gpu_without_an_engine_is_unallocated() -> None:
    hour = gpu("h100-4", 1, of_the_day(14), of_the_day(15))
    assert (hour.unallocated_s, hour.used_s, hour.idle_s) == (HOUR_S, 0.0, 0.0)
    assert hour.energy_j / HOUR_S == pytest.approx(H100.bare_w, rel=0.01)


def test_the_office_model_s_gpus_are_idle_at_night() -> None:
    night = gpu("h100-4", 0, of_the_day(1), of_the_day(2))
    assert (night.idle_s, night.used_s) == (HOUR_S, 0.0)
    assert night.energy_j / HOUR_S == pytest.approx(H100.idle_w, rel=0.01)
    assert gpu("h100-4", 0, of_the_day(14), of_the_day(15)).used_s == HOUR_S


def test_one_spot_node_is_gone_for_twenty_minutes_and_one_for_the_night() -> None:
    assert gpu("gamer-5", 0, of_the_day(10), of_the_day(11)).present_s == 40 * 60
    assert gpu("gamer-5", 0, of_the_day(10, 20), of_the_day(10, 40)) == GpuTruth(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    # 00:00 to 04:10 and 22:30 to 24:00: 5 h 40 min of the day
    assert gpu("gamer-6", 1, WEDNESDAY_S, WEDNESDAY_S + DAY_S).present_s == DAY_S - (5 * 60 + 40) * 60
    gone = engine("gamer-6", 0, of_the_day(1), of_the_day(2))
    assert (gone.started, gone.up_s, gone.used_s, sum(gone.counts.values())) == (0, 0.0, 0.0, 0)


def test_an_engine_that_restarts_loses_ninety_seconds_of_use_while_its_gpu_stays() -> None:
    hour = engine("h100-3", 0, of_the_day(9), of_the_day(10))
    assert (hour.up_s, hour.used_s) == (HOUR_S - 90, HOUR_S - 90)
    of_gpu = gpu("h100-3", 0, of_the_day(9), of_the_day(10))
    assert (of_gpu.present_s, of_gpu.used_s, of_gpu.idle_s) == (HOUR_S, HOUR_S - 90, 90)
    assert engine("h100-3", 0, of_the_day(9, 31), of_the_day(9, 31, 30)).started == 0
    assert engine("h100-3", 0, of_the_day(9, 31, 30), of_the_day(9, 32)).started > 0


def test_a_hot_card_answers_later_with_less_power() -> None:
    hot, cool = (engine("h100-2", index, of_the_day(13), of_the_day(14)) for index in (0, 1))
    assert gpu("h100-2", 0, of_the_day(12), of_the_day(15)).hot_s == HOUR_S
    assert gpu("h100-2", 1, of_the_day(12), of_the_day(15)).hot_s == 0
    # 1.6 times as long for each token
    per_token = [truth.counts["itl_us"] / truth.counts["generated_tokens"] for truth in (hot, cool)]
    assert per_token[0] / per_token[1] == pytest.approx(1.6, rel=0.01)
    powers = [gpu("h100-2", index, of_the_day(13), of_the_day(14)).energy_j for index in (0, 1)]
    assert powers[0] < 0.9 * powers[1]
    # within any quarter of an hour, so that it can be seen soon: three minutes
    assert gpu("gamer-4", 0, of_the_day(3), of_the_day(3, 15)).hot_s == 180


def test_the_slow_replica_stands_out() -> None:
    slow, peer = (engine(name, 0, of_the_day(10), of_the_day(11)) for name in ("gamer-2", "gamer-1"))
    ttft = [truth.counts["ttft_us"] / truth.started for truth in (slow, peer)]
    assert 2.3 < ttft[0] / ttft[1] < 3.7
    assert slow.counts["generated_tokens"] < 0.7 * peer.counts["generated_tokens"]


def test_a_minute_with_work_has_tokens_in_each_of_its_slots() -> None:
    """So that a row of five seconds and a row of a minute say the same of being used."""
    for replica in WORLD.replicas:
        day = replica_day(WORLD, replica, WEDNESDAY_S // DAY_S)
        worked = [minute for minute in range(600, 1440, 60) if day.started[minute] and not day.down_s[minute]]
        for minute in worked:
            start_s = WEDNESDAY_S + minute * 60
            for slot_s in range(start_s, start_s + 60, 5):
                truth = replica_truth(WORLD, replica, slot_s * SECOND_US, (slot_s + 5) * SECOND_US)
                assert truth.counts["generated_tokens"] > 0
