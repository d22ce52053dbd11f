"""Engines in the store: who they are, on which GPUs since when, and what their scrapes become."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from app.errors import StoreError
from app.store import engine_ingest, ingest
from app.store.database import Store
from collectors.samples import WireError, decode, encode
from tests.batches import BOUNDS_US, HOUR, MODEL, SECOND, T0, URL, Clock, at, batch, count, engine, put, writing

GPUS = ["node-7-0", "node-7-1"]


def engines(store: Store) -> list[dict[str, Any]]:
    return list(store.query("SELECT * FROM engine ORDER BY engine_id").iter_rows(named=True))


def moves(store: Store) -> list[tuple[Any, ...]]:
    sql = "SELECT engine_id, uuids, source, valid_from, known_at FROM engine_gpus ORDER BY engine_id, valid_from"
    return [(one, None if uuids is None else list(uuids), *rest) for one, uuids, *rest in store.query(sql).iter_rows()]


def test_an_engine_is_known_by_node_url_label_and_model(store: Store) -> None:
    two = [engine(label="0"), engine(label="1"), engine(label="1", model="org/other"), engine(url=URL + "2")]
    row = {"t_us": T0 + 5 * SECOND, "generated_tokens": 1}
    rows = [row | {"engine": position} for position in range(4)]
    with writing(store) as taking:
        put(taking, batch(1, engines=two, engine_rows=rows))
        put(taking, batch(1, node="node-8", engines=two[:1], engine_rows=rows[:1]))
    with writing(store) as taking:  # the hub was restarted
        put(taking, batch(2, engines=two[::-1], engine_rows=[row | {"engine": 0, "t_us": T0 + 10 * SECOND}]))
    found = [(one["node_id"], one["url"], one["label"], one["model"]) for one in engines(store)]
    assert found == [(1, URL, "0", MODEL), (1, URL, "1", MODEL), (1, URL, "1", "org/other"), (1, URL + "2", "", MODEL),
                     (2, URL, "0", MODEL)]  # fmt: skip
    last = store.query("SELECT engine_id FROM engine_sample WHERE t_us = $1", [T0 + 10 * SECOND])
    assert last["engine_id"].to_list() == [4]


def test_what_is_said_of_an_engine_is_kept_up_to_date(store: Store) -> None:
    clock = Clock()
    with writing(store, clock) as taking:
        put(taking, batch(1, engines=[engine(version="0.12.0", started_us=T0)]))
        clock.us += HOUR
        put(taking, batch(2, engines=[engine(version="0.32.0", started_us=T0 + HOUR, labels={"team": "chat"})]))
        clock.us += HOUR
        put(taking, batch(3, engines=[engine(version="0.32.0", status="down: connection refused")]))
    (one,) = engines(store)
    assert (one["version"], one["status"], one["started_us"]) == ("0.32.0", "down: connection refused", None)
    assert json.loads(one["labels"]) == {}
    # It was last seen well before it went down.
    assert (one["first_seen"], one["last_seen"]) == (at(clock.us - 2 * HOUR), at(clock.us - HOUR))


def test_the_gpus_of_an_engine_are_dated_by_the_first_row_that_knows_them(store: Store) -> None:
    clock = Clock()

    def sent(sequence: int, gpus: list[str] | None, source: str | None, t_us: int) -> None:
        rows = [{"t_us": t_us, "generated_tokens": 1}]
        put(taking, batch(sequence, engines=[engine(gpus=gpus, gpus_source=source)], engine_rows=rows))

    with writing(store, clock) as taking:
        sent(1, None, None, T0 + 10 * SECOND)
        sent(2, GPUS[::-1], "processes", T0 + 20 * SECOND)
        sent(3, GPUS, "processes", T0 + 30 * SECOND)  # the same, in another order
    with writing(store, clock) as taking:
        sent(4, GPUS, "processes", T0 + 40 * SECOND)
        sent(5, None, None, T0 + 50 * SECOND)
    known = at(clock.us)
    assert moves(store) == [
        (1, None, None, at(T0 + 5 * SECOND), known),
        (1, GPUS, "processes", at(T0 + 15 * SECOND), known),
        (1, None, None, at(T0 + 45 * SECOND), known),
    ]


def test_a_batch_that_fails_leaves_no_engine_and_can_be_sent_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = batch(1, engine_rows=[{"t_us": T0 + 5 * SECOND, "generated_tokens": 1}])
    with writing(store) as taking:
        with monkeypatch.context() as patched:
            patched.setitem(ingest._INSERTS, "engine_sample", "SELECT error('No space left on device')")
            with pytest.raises(StoreError, match="No space left"):
                put(taking, sent)
        assert (engines(store), moves(store)) == ([], [])
        put(taking, sent)
    assert len(engines(store)) == len(moves(store)) == count(store, "engine_sample") == 1


def test_counts_and_buckets_are_stored_as_they_came(store: Store) -> None:
    counts = {name: number for number, name in enumerate(engine_ingest.ENGINE_COUNTS, 1)}
    gauges = {"running": 3, "waiting": 0, "kv_usage_ppm": 950_000}
    buckets = {"ttft_buckets": [0, 5, 0, 1], "itl_buckets": [9, 0, 0, 0], "e2e_buckets": None}
    rows = [{"t_us": T0 + 5 * SECOND, **counts, **gauges, **buckets}, {"t_us": T0 + 10 * SECOND}]
    with writing(store) as taking:
        put(taking, batch(1, engine_rows=rows))
    full, empty = store.query("SELECT * FROM engine_sample ORDER BY t_us").iter_rows(named=True)
    assert full == {"engine_id": 1, "t_us": T0 + 5 * SECOND, "dt_us": 5 * SECOND, **counts, **gauges}
    assert {value for name, value in empty.items() if name in counts | gauges} == {None}
    found = store.query(
        "SELECT metric, lower_us, upper_us, n FROM engine_latency_scrape ORDER BY metric, lower_us"
    ).rows()
    assert found == [(0, 10_000, 50_000, 5), (0, 100_000, None, 1), (1, 0, 10_000, 9)]


def test_rows_from_before_raw_samples_are_kept_are_left_out_and_counted(store: Store) -> None:
    clock = Clock(T0 + 10 * 24 * HOUR)
    fresh = clock.us - 5 * SECOND
    rows = [{"t_us": T0, "generated_tokens": 5}, {"t_us": fresh, "generated_tokens": 7}]
    with writing(store, clock, raw_days=7) as taking:
        answer = put(taking, batch(1, rows=[], engine_rows=rows))
    assert answer.late_rows == 1
    assert store.query("SELECT t_us, generated_tokens FROM engine_sample").rows() == [(fresh, 7)]
    assert moves(store)[0][3] == at(fresh) - timedelta(seconds=5)


def test_a_node_that_ever_sent_simulated_numbers_stays_marked(store: Store) -> None:
    with writing(store) as taking:
        put(taking, batch(1, node="made-up", simulated=True))
        put(taking, batch(1, node="real"))
    with writing(store) as taking:
        put(taking, batch(2, node="made-up"))
    assert store.query("SELECT name, simulated FROM node ORDER BY name").rows() == [("made-up", True), ("real", False)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"ttft_buckets": [1, 2, 3]}, "ttft_buckets with one count more than the engine has ttft_bounds_us"),
        ({"engine": 1}, "`engine` to point into engines, which has 1"),
    ],
)
def test_rows_that_do_not_fit_their_engine_are_refused(change: dict[str, Any], told: str) -> None:
    good = batch(1, engine_rows=[{"t_us": T0 + 5 * SECOND}])
    table = good.engine_samples
    assert table is not None
    columns = {name: [value] for name, value in change.items()}
    bad = good.model_copy(update={"engine_samples": table.model_copy(update=columns)})
    with pytest.raises(WireError, match=told):
        decode(encode(bad), max_json_bytes=2**20)


def test_bounds_that_do_not_ascend_and_engines_listed_twice_are_refused() -> None:
    for engines_, told in (
        ([engine(), engine()], "engines that differ in url, label or model"),
        ([engine().model_copy(update={"itl_bounds_us": BOUNDS_US[::-1]})], "itl_bounds_us that ascend"),
    ):
        bad = batch(1).model_copy(update={"engines": engines_})
        with pytest.raises(WireError, match=told):
            decode(encode(bad), max_json_bytes=2**20)
