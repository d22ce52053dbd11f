"""The simulator's hidden truth comes back out of the accounts: joules, tokens, and seconds used and idle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from app.answers.query import AccountQuery
from app.answers.summary import summary
from app.config import Config
from app.simulator.days import replica_day
from app.simulator.fleet import Replica, SimulatedNode
from app.simulator.truth import GpuTruth, ReplicaTruth, gpu_truth, replica_truth
from app.store.database import Store
from app.store.rollup import roll_up
from tests.batches import HOUR, SECOND, Clock, at, batch, engine, gpu, put, writing
from tests.recompute.case import CONFIG, MOVES_S, Case, fleet_of
from tests.simulator.wires import DAY_S, WORLD, node_named, of_the_day

ENERGY = 0.01
PAST_INTERVAL_S = 60
Figures = Mapping[str, Mapping[str, Any]]


def nodes_of(case: Case) -> list[SimulatedNode]:
    return [node for node in WORLD.nodes if node.name in {row.node for row in case.sent.gpus}]


def test_each_gpu_s_joules_and_seconds_are_recovered(case: Case) -> None:
    answer = summary(case.store, CONFIG, case.query(by="gpu", boundary="gpu"), case.now)
    lines = {line["key"]["gpu"]: line["figures"] for line in answer["lines"]}
    gpus = [(node, index) for node in nodes_of(case) for index in range(node.gpu_count)]
    assert set(lines) == {node.uuid(index) for node, index in gpus}
    for node, index in gpus:
        truth = gpu_truth(WORLD, node, index, case.start_s * SECOND, case.end_s * SECOND)
        transitions = _transitions(node.replica_of(index), case.start_s, case.end_s)
        assert_recovered(lines[node.uuid(index)], [truth], PAST_INTERVAL_S * transitions)


def test_each_fleet_s_joules_seconds_and_tokens_are_recovered(case: Case) -> None:
    answer = summary(case.store, CONFIG, case.query(by="fleet", boundary="gpu"), case.now)
    spans = list(pairwise((case.start_s, MOVES_S, case.end_s)))
    assert {line["key"]["fleet"] for line in answer["lines"]} == {"h100", "rtx4090", "spot"}
    for line in answer["lines"]:
        members = [
            (node, low * SECOND, high * SECOND)
            for node in nodes_of(case)
            for low, high in spans
            if fleet_of(node.name, low * SECOND) == line["key"]["fleet"]
        ]
        gpus = [gpu_truth(WORLD, node, index, *span) for node, *span in members for index in range(node.gpu_count)]
        engines = [replica_truth(WORLD, replica, *span) for node, *span in members for replica in node.replicas]
        transitions = sum(
            _transitions(node.replica_of(index), start // SECOND, end // SECOND)
            for node, start, end in members
            for index in range(node.gpu_count)
        )
        assert_recovered(line["figures"], gpus, PAST_INTERVAL_S * transitions)
        assert_tokens(line["figures"], engines)


def test_each_model_s_tokens_are_recovered(case: Case) -> None:
    answer = summary(case.store, CONFIG, case.query(by="model"), case.now)
    replicas = [replica for node in nodes_of(case) for replica in node.replicas]
    for line in answer["lines"]:
        of_model = [one for one in replicas if one.pool.model == line["key"]["model"]]
        span = (case.start_s * SECOND, case.end_s * SECOND)
        if of_model:
            assert_tokens(line["figures"], [replica_truth(WORLD, one, *span) for one in of_model])
    assert {line["key"]["model"] for line in answer["lines"]} == {None, *(one.pool.model for one in replicas)}


def assert_recovered(figures: Figures, truths: Sequence[GpuTruth], within_s: float) -> None:
    """within_s: one sampling interval for each change between used and idle."""
    there_s = figures["gpu_hours"]["value"] * 3600
    used_s = (figures["utilisation"]["value"] or 0.0) * there_s
    true_j = sum(truth.energy_j for truth in truths)
    assert figures["energy_kwh"]["value"] * 3.6e6 == pytest.approx(true_j, rel=ENERGY)
    assert there_s == pytest.approx(sum(truth.present_s for truth in truths), abs=1e-3)
    assert used_s == pytest.approx(sum(truth.used_s for truth in truths), abs=within_s + 1e-3)
    unused_s = sum(truth.idle_s + truth.unallocated_s for truth in truths)
    assert there_s - used_s == pytest.approx(unused_s, abs=within_s + 1e-3)


def assert_tokens(figures: Figures, truths: Iterable[ReplicaTruth]) -> None:
    truths = list(truths)
    for name in ("prompt_tokens", "cached_tokens", "generated_tokens"):
        assert figures[name]["value"] == sum(truth.counts[name] for truth in truths)
    assert figures["requests"]["value"] == sum(truth.finished for truth in truths)
    assert figures["failed_requests"]["value"] == sum(truth.counts["finished_aborted"] for truth in truths)


def _transitions(replica: Replica | None, start_s: int, end_s: int) -> int:
    """How often the truth changes between used and not."""
    if replica is None:
        return 0
    changes = 0
    for day in range(start_s // DAY_S, -(-end_s // DAY_S)):
        truth = replica_day(WORLD, replica, day)
        used = np.where(truth.started > 0, 60 - truth.down_s, 0)
        inside = used[max(start_s - day * DAY_S, 0) // 60 : min(end_s - day * DAY_S, DAY_S) // 60]
        changes += int((np.diff(inside) != 0).sum())
    return changes


# Samples that lie across the truth's changes, as those of a real agent do

OFFSET_S, EVERY_S = 13, 29
START_S, END_S = of_the_day(5, 0, OFFSET_S), of_the_day(5, 0, OFFSET_S) + 440 * EVERY_S


@pytest.fixture
def sampled(store: Store) -> Store:
    """Three and a half hours in which an office model begins its day, by samples that no minute begins with."""
    node = node_named(WORLD, "h100-4")
    moments = [second * SECOND for second in range(START_S, END_S + 1, EVERY_S)]
    gpu_rows = [
        {"gpu": index, "t_us": end, "dt_us": end - start,
         "energy_mj": gpu_truth(WORLD, node, index, start, end).energy_mj}
        for index in range(node.gpu_count) for start, end in pairwise(moments)
    ]  # fmt: skip
    sent = batch(
        node=node.name, rows=gpu_rows, engine_rows=list(_scrapes(node.replicas[0], moments)), simulated=True,
        gpus=[gpu(uuid=node.uuid(index), index=index) for index in range(node.gpu_count)],
        engines=[engine(gpus=[node.uuid(0)])],
    )  # fmt: skip
    with writing(store, Clock(END_S * SECOND)) as writer:
        put(writer, sent)
    while roll_up(store, END_S * SECOND + 2 * HOUR, oldest_raw_us=0, oldest_minute_us=0):
        pass
    return store


def _scrapes(replica: Replica, moments: Sequence[int]) -> Iterator[dict[str, Any]]:
    for start, end in pairwise(moments):
        truth = replica_truth(WORLD, replica, start, end)
        counts = {name: truth.counts[name] for name in ("prompt_tokens", "generated_tokens", "finished_stop")}
        now = replica_truth(WORLD, replica, end - SECOND, end)
        yield {"t_us": end, "dt_us": end - start, "running": int(now.used_s > 0), **counts}


def test_samples_across_changes_are_wrong_by_less_than_an_interval_each(sampled: Store) -> None:
    node = node_named(WORLD, "h100-4")
    start_us, end_us = START_S * SECOND, END_S * SECOND
    query = AccountQuery(at(of_the_day(5) * SECOND), at(of_the_day(9) * SECOND), by="gpu", boundary="gpu")
    answer = summary(sampled, Config(), query, at(END_S * SECOND + 3 * HOUR))
    transitions = _transitions(node.replicas[0], START_S, END_S)
    assert transitions >= 3
    for line, index, changes in zip(answer["lines"], (0, 1), (transitions, 0), strict=True):
        assert line["key"]["gpu"] == node.uuid(index)
        assert_recovered(line["figures"], [gpu_truth(WORLD, node, index, start_us, end_us)], EVERY_S * changes)
    truth = replica_truth(WORLD, node.replicas[0], start_us, end_us)
    for name in ("prompt_tokens", "generated_tokens"):
        assert answer["total"]["figures"][name]["value"] == truth.counts[name]
