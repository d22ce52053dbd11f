"""What is sent: it decodes as the hub decodes it, and its rows are the truth's differences without gap or overlap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from app.hub.ingest import MAX_BODY_BYTES, MAX_JSON_BYTES
from app.simulator.batches import RESTARTING, Rows, Span, batch, live_rows, minute_rows, spans
from app.simulator.fleet import H100, SimulatedNode
from app.simulator.run import PAST_BATCH_S
from app.simulator.truth import gpu_truth, replica_truth
from collectors.samples import LATENCY_METRICS, Batch, decode, encode
from tests.simulator.wires import DAY_S, SECOND_US, WEDNESDAY_S, WORLD, node_named, of_the_day, rows_of

MINUTES, LIVE = (minute_rows, 60, 60), (live_rows, 1, 5)


def sent(node: SimulatedNode, start_s: int, end_s: int, rows: Rows = minute_rows) -> list[Batch]:
    """The node's batches of a time, through the wire."""
    made = (
        batch(WORLD, node, span, rows, epoch="0" * 32, sequence=number, sent_at_us=end_s * SECOND_US)
        for number, span in enumerate(spans(node, start_s, end_s, DAY_S), start=1)
    )
    return [decode(encode(one), max_json_bytes=MAX_JSON_BYTES) for one in made if one is not None]


def only(node: str, start_s: int, end_s: int, rows: Rows = minute_rows) -> Batch:
    (batch_,) = sent(node_named(WORLD, node), start_s, end_s, rows)
    return batch_


def rows_by(table: Any, key: str, position: int) -> list[dict[str, Any]]:
    return [row for row in rows_of(table, key) if row[key] == position]


@pytest.mark.parametrize("node", WORLD.nodes, ids=lambda node: node.name)
@pytest.mark.parametrize(("rows", "gpu_s", "engine_s"), [MINUTES, LIVE])
def test_the_rows_are_the_truth_s_differences(node: SimulatedNode, rows: Rows, gpu_s: int, engine_s: int) -> None:
    start_s, end_s = of_the_day(9, 28), of_the_day(9, 34)
    for one in sent(node, start_s, end_s, rows):
        assert one.gpu_samples is not None
        assert one.engine_samples is not None
        for row in rows_of(one.gpu_samples, "gpu"):
            truth = gpu_truth(WORLD, node, row["gpu"], row["t_us"] - row["dt_us"], row["t_us"])
            assert row["dt_us"] == gpu_s * SECOND_US
            assert (row["energy_mj"], row["energy_method"]) == (truth.energy_mj, "counter")
            assert row["integral_mj"] == pytest.approx(row["energy_mj"], rel=0.03)
        for row in rows_of(one.engine_samples, "engine"):
            replica = node.replicas[row["engine"]]
            whole = replica_truth(WORLD, replica, row["t_us"] - row["dt_us"], row["t_us"])
            assert row["dt_us"] in (engine_s * SECOND_US, 30 * SECOND_US)
            assert {name: row[name] for name in whole.counts} == whole.counts
            assert sum(row["ttft_buckets"]) == whole.started
            assert sum(row["e2e_buckets"]) == whole.finished
            assert abs(sum(row["itl_buckets"]) - (whole.counts["generated_tokens"] - whole.started)) <= 2
            assert (row["running"] > 0) == (whole.counts["generated_tokens"] > 0)


@pytest.mark.parametrize("node", WORLD.nodes, ids=lambda node: node.name)
def test_a_minute_s_row_is_the_sum_of_its_live_rows(node: SimulatedNode) -> None:
    start_s, end_s = of_the_day(13, 7), of_the_day(13, 9)
    (past,), (live,) = (sent(node, start_s, end_s, rows) for rows in (minute_rows, live_rows))
    for key, table in (("gpu", "gpu_samples"), ("engine", "engine_samples")):
        for row in rows_of(getattr(past, table), key):
            parts = [
                part
                for part in rows_by(getattr(live, table), key, row[key])
                if row["t_us"] - row["dt_us"] < part["t_us"] <= row["t_us"]
            ]
            names = ["dt_us", "energy_mj"] if key == "gpu" else ["dt_us", "prompt_tokens", "generated_tokens", "e2e_us"]
            for name in names:
                assert sum(part[name] for part in parts) == row[name], name
            for metric in LATENCY_METRICS if key == "engine" else ():
                columns = np.array([part[f"{metric}_buckets"] for part in parts])
                assert columns.sum(axis=0).tolist() == row[f"{metric}_buckets"], metric


@pytest.mark.parametrize(
    ("name", "engine_gap_s", "gpu_gap_s"),
    [("h100-1", 0, 0), ("h100-3", 90, 0), ("gamer-5", 20 * 60, 20 * 60), ("gamer-4", 0, 0)],
)
def test_the_present_goes_on_where_the_past_ended_with_no_gap_but_the_event_s(
    name: str, engine_gap_s: int, gpu_gap_s: int
) -> None:
    node = node_named(WORLD, name)
    past = sent(node, of_the_day(9), of_the_day(10, 50), minute_rows)
    live = sent(node, of_the_day(10, 50), of_the_day(10, 52), live_rows)
    for table, key, gap_s in (("gpu_samples", "gpu", gpu_gap_s), ("engine_samples", "engine", engine_gap_s)):
        parts = [row for one in past + live for row in rows_by(getattr(one, table), key, 0)]
        gaps_us = [later["t_us"] - later["dt_us"] - earlier["t_us"] for earlier, later in pairwise(parts)]
        assert [gap for gap in gaps_us if gap] == ([gap_s * SECOND_US] if gap_s else [])
        assert parts[0]["t_us"] - parts[0]["dt_us"] == of_the_day(9) * SECOND_US
        assert parts[-1]["t_us"] == of_the_day(10, 52) * SECOND_US


def test_it_is_labelled_simulated() -> None:
    for node in WORLD.nodes:
        for one in sent(node, of_the_day(12), of_the_day(12, 2)):
            assert one.node.simulated is True
            assert "simulated" in one.node.agent_version
            assert all(gpu.uuid.startswith("simulated-") for gpu in one.gpus)


def test_the_fleets_are_as_described() -> None:
    batches = [one for node in WORLD.nodes for one in sent(node, of_the_day(12), of_the_day(12, 1))]
    cards = [gpu.name for one in batches for gpu in one.gpus]
    assert (cards.count("NVIDIA H100 PCIe"), cards.count("NVIDIA GeForce RTX 4090")) == (8, 12)
    assert len({gpu.uuid for one in batches for gpu in one.gpus}) == 20
    engines = [engine for one in batches for engine in one.engines]
    assert len({engine.key for engine in engines}) == 13
    assert [len(engine.gpus or ()) for engine in engines].count(2) == 6
    models = [(engine.model or "").rpartition("-")[2] for engine in engines]
    assert (models.count("14B"), models.count("32B")) == (11, 2)
    assert all(engine.kind == "vllm" and engine.gpus_source == "config" for engine in engines)
    known = {gpu.uuid for one in batches for gpu in one.gpus}
    assert known - {uuid for engine in engines for uuid in engine.gpus or ()} == {"simulated-h100-4-1"}


def test_a_node_that_left_says_nothing_and_comes_back_with_another_boot() -> None:
    node = node_named(WORLD, "gamer-5")
    assert sent(node, of_the_day(10, 20), of_the_day(10, 40), live_rows) == []
    before, after = sent(node, of_the_day(10, 15), of_the_day(10, 45))
    assert before.node.boot_id != after.node.boot_id
    assert after.gpu_samples is not None
    assert min(after.gpu_samples.t_us) == of_the_day(10, 41) * SECOND_US
    # its engine began when it came back
    assert after.engines[0].started_us == of_the_day(10, 40) * SECOND_US
    assert before.engines[0].started_us == (of_the_day(10, 40) - DAY_S) * SECOND_US


def test_an_engine_that_restarts_says_so_and_tells_its_new_start() -> None:
    before, during, after = (
        only("h100-3", of_the_day(9, *start), of_the_day(9, *end), live_rows)
        for start, end in (((29, 55), (30, 0)), ((30, 0), (30, 5)), ((31, 30), (31, 35)))
    )
    assert [one.engines[0].status for one in (before, during, after)] == ["ok", RESTARTING, "ok"]
    assert during.engines[1].status == "ok"
    assert during.engine_samples is not None
    assert set(during.engine_samples.engine) == {1}
    assert before.engines[0].started_us == (of_the_day(9, 31, 30) - DAY_S) * SECOND_US
    assert after.engines[0].started_us == of_the_day(9, 31, 30) * SECOND_US
    assert before.node.boot_id == after.node.boot_id


def test_heat_shows_in_the_flags_clock_and_temperature() -> None:
    hour = only("h100-2", of_the_day(12, 59), of_the_day(13, 1))
    cool, hot = rows_by(hour.gpu_samples, "gpu", 0)
    assert (cool["thermal_slowdown"], hot["thermal_slowdown"]) == (False, True)
    assert cool["sm_clock_mhz"] == H100.clock_mhz > hot["sm_clock_mhz"] == H100.hot_clock_mhz
    assert cool["temperature_c"] < 70 < hot["temperature_c"]
    assert not any(row["thermal_slowdown"] for row in rows_by(hour.gpu_samples, "gpu", 1))


def test_quantiles_of_a_minute_s_buckets_follow_the_study() -> None:
    """14B on one H100 at 8 to 10 offered requests a second: TTFT p50 38.3 to 39.1 ms, so in (20, 40] ms mostly."""
    hour = only("h100-1", of_the_day(14), of_the_day(15))
    buckets = np.array([row["ttft_buckets"] for row in rows_by(hour.engine_samples, "engine", 0)]).sum(axis=0)
    shares = np.cumsum(buckets) / buckets.sum()
    bounds_us = hour.engines[0].ttft_bounds_us
    assert 0.4 < shares[bounds_us.index(40_000)] < 0.75
    # p99 50 to 53 ms
    assert shares[bounds_us.index(60_000)] > 0.985


def test_spans_are_cut_at_new_boots_and_starts_and_at_their_longest() -> None:
    node = node_named(WORLD, "h100-3")
    restart = of_the_day(9, 30)
    cut = list(spans(node, of_the_day(0), of_the_day(12), 6 * 3600))
    assert cut == [
        Span(of_the_day(0), of_the_day(6)), Span(of_the_day(6), restart), Span(restart, of_the_day(12)),
    ]  # fmt: skip
    assert list(spans(node, restart, restart, 60)) == []


def test_the_longest_batch_of_the_past_is_far_from_the_hub_s_limits() -> None:
    node = node_named(WORLD, "h100-1")
    made = batch(
        WORLD, node, Span(WEDNESDAY_S, WEDNESDAY_S + PAST_BATCH_S), minute_rows,
        epoch="0" * 32, sequence=1, sent_at_us=0,
    )  # fmt: skip
    assert made is not None
    assert [len(table) for table in made.tables] == [2 * 4 * 1440, 2 * 4 * 1440]
    body = encode(made)
    assert len(body) < MAX_BODY_BYTES / 4
    assert decode(body, max_json_bytes=MAX_JSON_BYTES // 4).readings == made.readings
