"""Health is what the store holds: states, sums over the last day and hour, and findings in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.answers.health import health
from app.config import Config
from app.store.database import Store
from app.store.membership import assign_fleets
from app.store.rollup import roll_up
from tests.batches import (
    CARD,
    DAY,
    HOUR,
    MINUTE,
    MODEL,
    SECOND,
    T0,
    URL,
    Clock,
    at,
    batch,
    engine,
    gpu,
    put,
    seconds,
    writing,
)

NOW = T0 + 3 * DAY


def settle(store: Store) -> None:
    while roll_up(store, NOW, oldest_raw_us=0, oldest_minute_us=0):
        pass


def only(answer: dict[str, Any], what: str) -> dict[str, Any]:
    (one,) = answer[what]
    return dict(one)


def words(one: dict[str, Any]) -> list[str]:
    return [f"{finding['level']}: {finding['what']}" for finding in one["findings"]]


def test_an_empty_store_has_no_nodes(store: Store) -> None:
    assert health(store, at(NOW)) == {
        "generated_at": at(NOW).isoformat(), "nodes": [], "gpus": [], "engines": [], "grid": [], "prices": [],
    }  # fmt: skip


def test_a_node_that_is_well(store: Store) -> None:
    clock = Clock(NOW - 4 * SECOND)
    rows = seconds(NOW - 10 * SECOND, 5)  # the newest sample is of NOW - 5 s
    said = {"driver_version": "570.1", "boot_id": "b1", "labels": {"rack": "7"}}
    with writing(store, clock) as taking:
        put(taking, batch(1, rows=rows, sent_at_us=NOW - 3 * SECOND, own={"spool_batches": 2}, **said))
    config = Config.model_validate({
        "fleet": [{"name": "cheap", "gpu": "*"}], "node": [{"match": "*", "fleet": "cheap"}],
    })  # fmt: skip
    assign_fleets(store, config, at(NOW))
    answer = health(store, at(NOW))
    node = only(answer, "nodes")
    assert node.pop("skew_s") == pytest.approx(1.0)  # sent at -3 s by its clock, arrived at -4 s by the hub's
    assert node.pop("lag_s") == pytest.approx(2.0)  # sent at -3 s, newest sample of -5 s, both by its own clock
    assert node.pop("agent")["spool_batches"] == 2
    assert node == {
        "node": "node-7", "simulated": False, "fleet": "cheap", "last_seen": at(NOW - 4 * SECOND).isoformat(),
        "age_s": 4.0, "agent_version": "0.1.0", "driver_version": "570.1", "boot_id": "b1", "status": None, "gpus": 1,
        "late_rows": 0, "skipped_batches": 0, "labels": {"rack": "7"}, "missing": {}, "twin_seen": None, "state": "ok",
        "findings": [],
    }  # fmt: skip
    json.dumps(answer, allow_nan=False)


def test_a_gpu_s_energy_coverage_and_divergence(store: Store) -> None:
    """By hand over the last day: 30 min measured at 300 W, 10 min bridged, a divergence in the last hour only."""
    start = NOW - 2 * HOUR
    measured = seconds(start, 1200, integral_mj=300_000, power_instant_mw=300_000)
    gap = {"t_us": start + 30 * MINUTE, "dt_us": 10 * MINUTE, "energy_method": "bridged", "energy_mj": 180_000_000}
    last = seconds(NOW - 30 * MINUTE, 600, integral_mj=250_000, power_instant_mw=200_000)
    before = seconds(NOW - 25 * HOUR, 60)
    with writing(store, Clock(NOW)) as taking:
        put(taking, batch(1, rows=[*before, *measured, gap, *last], gpus=[gpu(power_limit_mw=350_000)]))
    settle(store)
    found = only(health(store, at(NOW)), "gpus")
    # 1800 s x 300 J + 180 kJ = 720 kJ = 0.2 kWh; covered 1800 of 2400 s; 300 / 250 - 1 = 20 %
    assert found["energy_day_kwh"] == pytest.approx(0.2)
    assert found["coverage_day"] == pytest.approx(0.75)
    assert found["gap_day_s"] == pytest.approx(600)
    assert found["divergence_hour"] == pytest.approx(0.2)
    assert (found["power_w"], found["power_limit_w"]) == (pytest.approx(200.0), 350.0)
    assert (found["node"], found["gpu"], found["uuid"], found["name"]) == ("node-7", 0, "node-7-0", CARD)
    assert words(found) == [
        "warning: counter and power integral differ by +20.0%", "warning: samples cover 75% of the last day",
    ]  # fmt: skip


def test_what_was_never_measured_is_none_and_not_0(store: Store) -> None:
    """Law 2."""
    with writing(store, Clock(NOW)) as taking:
        put(taking, batch(1, rows=[], gpus=[gpu(energy_method=None)], sent_at_us=NOW))
    answer = health(store, at(NOW))
    found = only(answer, "gpus")
    missing = ("power_w", "power_limit_w", "energy_day_kwh", "coverage_day", "gap_day_s", "divergence_hour")
    assert {name: found[name] for name in missing} == dict.fromkeys(missing)
    assert words(found) == ["problem: no energy source on this device"]
    assert only(answer, "nodes")["lag_s"] is None


def test_a_gpu_whose_energy_is_unknown_has_no_kwh_of_0(store: Store) -> None:
    """Law 2: it was there for a minute, with no energy at all."""
    with writing(store, Clock(NOW)) as taking:
        put(taking, batch(1, rows=seconds(NOW - 5 * MINUTE, 60, energy_mj=None, energy_method=None)))
    settle(store)
    found = only(health(store, at(NOW)), "gpus")
    assert found["coverage_day"] == 0
    assert found["energy_day_kwh"] is None


def test_a_silent_node_a_skewed_one_a_twin_and_one_without_gpus(store: Store) -> None:
    clock = Clock(NOW - 5 * MINUTE)
    with writing(store, clock) as taking:
        put(taking, batch(1, node="a-silent", sent_at_us=clock.us))
        clock.us = NOW
        put(taking, batch(1, node="b-skewed", sent_at_us=NOW - 10 * SECOND))
        for sequence in (1, 2):
            for epoch in ("a" * 32, "b" * 32):
                put(taking, batch(sequence, node="c-twin", epoch=epoch, sent_at_us=NOW))
        put(taking, batch(1, node="d-empty", rows=[], gpus=[], sent_at_us=NOW, status="no NVIDIA driver",
                          missing={"power_w": "no driver"}))  # fmt: skip
        put(taking, batch(1, node="e-full", sent_at_us=NOW, own={"dropped_batches": 2, "spool_batches": 9}))
    nodes = health(store, at(NOW))["nodes"]
    assert {node["node"]: (node["state"], words(node)) for node in nodes} == {
        "a-silent": ("silent", ["problem: no batch for 5 min"]),
        "b-skewed": ("warning", ["warning: its clock is 10 s behind the hub's"]),
        "c-twin": ("problem", ["problem: two machines send under this name"]),
        "d-empty": ("problem", ["problem: no NVIDIA driver", "note: power_w is not measured"]),
        "e-full": (
            "warning", ["warning: its spool was full: 2 batches were dropped", "note: 9 batches wait on the node"],
        ),
    }  # fmt: skip
    assert {node["node"]: node["gpus"] for node in nodes}["d-empty"] == 0


def test_a_lost_gpu_and_one_in_mig_mode(store: Store) -> None:
    cards = [gpu(status="lost"), gpu(index=1, mig_enabled=True)]
    with writing(store, Clock(NOW)) as taking:
        put(taking, batch(1, gpus=cards))
    found = health(store, at(NOW))["gpus"]
    assert [words(one) for one in found] == [["problem: status: lost"], ["note: MIG is on"]]


# Engines


def test_an_engine_that_is_well(store: Store) -> None:
    with writing(store, Clock(NOW - 4 * SECOND)) as taking:
        put(taking, batch(1, engines=[engine(version="0.32.0")], sent_at_us=NOW))
    assert only(health(store, at(NOW)), "engines") == {
        "node": "node-7", "simulated": False, "engine": "node-7:8000", "url": URL, "label": "", "model": MODEL,
        "kind": "vllm", "version": "0.32.0", "status": "ok", "gpus": ["node-7-0"], "gpus_source": "config",
        "gpus_not_measured": [], "last_seen": at(NOW - 4 * SECOND).isoformat(), "age_s": 4.0, "node_age_s": 4.0,
        "state": "ok", "findings": [],
    }  # fmt: skip


def test_engines_that_are_down_silent_and_without_gpus(store: Store) -> None:
    """Of a silent node the node's own finding says enough."""
    clock = Clock(NOW - 5 * MINUTE)
    with writing(store, clock) as taking:
        put(taking, batch(1, node="a-silent", engines=[engine()], sent_at_us=clock.us))
        put(taking, batch(1, node="b-left", engines=[engine(url=URL + "2")], sent_at_us=clock.us))
        clock.us = NOW
        put(taking, batch(2, node="b-left", sent_at_us=NOW))
        put(taking, batch(1, node="c-down", engines=[engine(status="connection refused", gpus=None)], sent_at_us=NOW))
        put(taking, batch(1, node="d-unknown", engines=[engine(gpus=None)], sent_at_us=NOW))
        put(taking, batch(1, node="e-elsewhere", engines=[engine(gpus=["node-7-0", "gone"])], sent_at_us=NOW))
        put(taking, batch(1, sent_at_us=NOW))
    answer = health(store, at(NOW))
    json.dumps(answer, allow_nan=False)
    assert {one["node"]: (one["state"], words(one)) for one in answer["engines"]} == {
        "a-silent": ("silent", []),
        "b-left": ("silent", ["warning: not read for 5 min"]),
        "c-down": ("down", ["problem: engine down: connection refused"]),
        "d-unknown": ("warning", ["warning: GPUs unknown"]),
        "e-elsewhere": ("warning", ["warning: GPUs not measured: gone"]),
    }


def test_an_engine_is_shown_for_a_week_and_one_that_was_replaced_is_not(store: Store) -> None:
    clock = Clock(NOW)
    with writing(store, clock) as taking:
        put(taking, batch(1, engines=[engine(model="org/old")]))
        clock.us += MINUTE
        put(taking, batch(2, engines=[engine()]))
    assert [one["model"] for one in health(store, at(clock.us))["engines"]] == [MODEL]
    assert len(health(store, at(clock.us + 7 * DAY - SECOND))["engines"]) == 1
    assert health(store, at(clock.us + 7 * DAY))["engines"] == []


def test_simulated_nodes_gpus_and_engines_are_marked(store: Store) -> None:
    """Law 10."""
    with writing(store, Clock(NOW)) as taking:
        put(taking, batch(1, engines=[engine()], simulated=True))
    answer = health(store, at(NOW))
    assert [only(answer, what)["simulated"] for what in ("nodes", "gpus", "engines")] == [True, True, True]
