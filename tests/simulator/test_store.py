"""The simulated past through a real store and its rollups: hours hold the truth."""

from __future__ import annotations

import pytest

from app.simulator.batches import batch, minute_rows, spans
from app.simulator.truth import gpu_truth, replica_truth
from app.store.database import Store
from app.store.rollup import roll_up
from tests.batches import Clock, put, writing
from tests.simulator.wires import DAY_S, SECOND_US, WORLD, node_named, of_the_day

HOUR_S = 3600
NODES = ("h100-3", "gamer-5")


def test_an_hour_of_the_store_is_an_hour_of_the_truth(store: Store) -> None:
    start_s, end_s = of_the_day(9), of_the_day(11)
    with writing(store, Clock(end_s * SECOND_US)) as writer:
        for name in NODES:
            for number, span in enumerate(spans(node_named(WORLD, name), start_s, end_s, DAY_S), start=1):
                made = batch(
                    WORLD, node_named(WORLD, name), span, minute_rows,
                    epoch="0" * 32, sequence=number, sent_at_us=end_s * SECOND_US,
                )  # fmt: skip
                assert made is not None
                assert put(writer, made).late_rows == 0
    while roll_up(store, (end_s + HOUR_S) * SECOND_US, oldest_raw_us=0, oldest_minute_us=0):
        pass
    gpus = store.query(
        "SELECT uuid, hour_us, counter_j, provisioned_s, throttled_s, covered_s FROM gpu_hour JOIN gpu USING (gpu_id)"
    )
    assert gpus.height == 2 * 4
    for uuid, hour_us, counter_j, provisioned_s, throttled_s, covered_s in gpus.iter_rows():
        node = next(node for node in WORLD.nodes if uuid.startswith(f"simulated-{node.name}-"))
        truth = gpu_truth(WORLD, node, int(uuid[-1]), hour_us, hour_us + HOUR_S * SECOND_US)
        assert counter_j == pytest.approx(truth.energy_j, abs=1e-6)
        assert (provisioned_s, throttled_s, covered_s) == (truth.present_s, truth.hot_s, truth.present_s)
    engines = store.query(
        "SELECT url, hour_us, prompt_tokens, generated_tokens, finished_stop + finished_length AS finished"
        " FROM engine_hour JOIN engine USING (engine_id)"
    )
    assert engines.height == 2 * 3
    for url, hour_us, prompt, generated, finished in engines.iter_rows():
        replica = next(replica for replica in WORLD.replicas if replica.url == url)
        whole = replica_truth(WORLD, replica, hour_us, hour_us + HOUR_S * SECOND_US)
        assert (prompt, generated, finished) == (
            whole.counts["prompt_tokens"], whole.counts["generated_tokens"], whole.finished,
        )  # fmt: skip
    simulated = store.query("SELECT DISTINCT simulated FROM node")
    assert simulated["simulated"].to_list() == [True]
