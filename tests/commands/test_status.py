"""`wattmix status`: the same nodes and GPUs as a table and as JSON, with and without a hub."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from app.store.database import Store
from app.store.rollup import roll_up
from app.store.source_states import GridState, write_state
from tests.batches import DAY, MINUTE, MODEL, Clock, batch, engine, gpu, put, seconds, writing
from tests.commands.invoke import wattmix
from tests.hub_process import running

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """One node that has been silent for ten minutes and one that sends: 60 s of 300 W, 18 kJ, are 0.005 kWh."""
    now = time.time_ns() // 1000
    store = Store.open(tmp_path / "s.duckdb")
    with writing(store, Clock(now - 10 * MINUTE)) as taking:
        put(taking, batch(1, node="gone", rows=[], gpus=[], sent_at_us=now - 10 * MINUTE, status="no driver"))
    with writing(store, Clock(now)) as taking:
        minute = seconds((now // MINUTE - 5) * MINUTE, 60, power_instant_mw=300_000)
        engines = [engine(version="0.32.0"), engine(model="[red]odd[/red]", gpus=None)]
        put(taking, batch(1, rows=minute, gpus=[gpu(status="[red]odd[/red]")], engines=engines, sent_at_us=now,
                          own={"spool_batches": 3}))  # fmt: skip
    while roll_up(store, now, oldest_raw_us=now - 7 * DAY, oldest_minute_us=now - 30 * DAY):
        pass
    store.close()
    return store.path


def timeless(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what passes while the test runs."""
    for one in answer["engines"]:
        assert one.pop("age_s") >= 0
        assert one.pop("node_age_s") >= 0
    for node in answer["nodes"]:
        assert node.pop("age_s") >= 0
        node["findings"] = [one for one in node["findings"] if not one["what"].startswith("no batch for ")]
    del answer["generated_at"]
    return answer


def as_json(capsys: Capture, db: Path) -> dict[str, Any]:
    outcome = wattmix(capsys, "status", "--db", db, "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    return dict(json.loads(outcome.out))


def test_an_empty_store_says_what_to_do(capsys: Capture, tmp_path: Path) -> None:
    outcome = wattmix(capsys, "status", "--db", tmp_path / "s.duckdb")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "No node has sent anything yet. On a GPU node: wattmix agent --hub http://HUB:8501\n"
    assert as_json(capsys, tmp_path / "s.duckdb")["nodes"] == []


def test_the_table_has_nodes_gpus_and_what_to_do(capsys: Capture, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    outcome = wattmix(capsys, "status", "--db", db)
    assert (outcome.code, outcome.err) == (0, "")
    lines = [line for line in outcome.out.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert cells[0][:2] == ["gone", "silent"]
    assert cells[0][3] == "10 min ago"
    assert (cells[1][0], cells[1][1], cells[1][6], cells[1][7]) == ("node-7", "ok", "1", "3")
    assert cells[2][:5] == ["node-7:8000 ([red]odd[/red])", "warning", "[red]odd[/red]", "vllm", "not known"]
    assert cells[3][:5] == [f"node-7:8000 ({MODEL})", "ok", MODEL, "vllm 0.32.0", "1 (config)"]
    assert cells[4] == ["node-7", "0", "H100 PCIe 80GB", "counter", "300", "0.005", "100.0%", "–"]
    assert "problem gone: no driver. `wattmix doctor` on the node says more" in outcome.out
    assert "problem node-7 GPU 0: status: [red]odd[/red]." in outcome.out
    assert "warning node-7:8000 ([red]odd[/red]): GPUs unknown. set gpus in [[agent.engine]]" in outcome.out


def test_json_is_what_the_table_shows(capsys: Capture, db: Path) -> None:
    answer = as_json(capsys, db)
    assert [(node["node"], node["state"]) for node in answer["nodes"]] == [("gone", "silent"), ("node-7", "ok")]
    (one,) = answer["gpus"]
    assert one["energy_day_kwh"] == pytest.approx(0.005)
    assert (one["power_w"], one["coverage_day"]) == (pytest.approx(300), pytest.approx(1))


def test_status_is_the_same_with_and_without_a_hub(capsys: Capture, db: Path) -> None:
    """Design law 7."""
    without = timeless(as_json(capsys, db))
    with running(["serve", "--db", str(db)], db.parent) as hub:
        assert timeless(as_json(capsys, db)) == without
        assert hub.stop() == 0
    assert timeless(as_json(capsys, db)) == without


def test_simulated_nodes_and_engines_are_marked(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design law 10."""
    store = Store.open(tmp_path / "s.duckdb")
    now = time.time_ns() // 1000
    with writing(store, Clock(now)) as taking:
        put(taking, batch(1, rows=[], engines=[engine()], sent_at_us=now, simulated=True))
    store.close()
    monkeypatch.setenv("COLUMNS", "160")
    out = wattmix(capsys, "status", "--db", store.path).out
    assert "node-7 simulated" in out
    assert "node-7:8000 simulated" in out


def test_grid_providers_have_a_table_and_findings(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wattmix.toml"
    path.write_text(
        '[[grid]]\nprovider = "watttime"\nzones = { US-CA = "CAISO_NORTH" }\nuser = "u"\nkey_env = "NO_SUCH"\n',
        encoding="utf-8",
    )
    store = Store.open(tmp_path / "s.duckdb")
    absent = GridState(
        "watttime", "US-CA", problem="$NO_SUCH is not set (key_env)", problem_kind="absent", advice="set it"
    )
    write_state(store, absent)
    store.close()
    monkeypatch.setenv("COLUMNS", "160")
    out = wattmix(capsys, "status", "--db", store.path, "--config", path).out
    (row,) = (line for line in out.splitlines() if line.startswith("│"))
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["WattTime", "US-CA", "absent", "–", "–", "–", "–"]
    assert "warning WattTime, zone US-CA: not asked: $NO_SUCH is not set (key_env). set it" in out
