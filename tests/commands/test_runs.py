"""`wattmix runs`: pure CSV and JSON on stdout, a table for people, and the study's figures in all three."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.backend.local import LocalBackend
from app.config import Config
from app.store.benchmarks import add_runs
from app.store.database import Store
from collectors.benchmark.run import BenchmarkRun
from tests.collectors.benchmark.runs import RUN
from tests.commands.invoke import wattmix

Capture = pytest.CaptureFixture[str]

REQUIRED = [
    "model", "qps", "gpu", "gpu_count", "duration_s", "completed", "prompt_tokens", "generated_tokens",
    "cost_per_run_usd", "usd_per_mtok_total", "usd_per_mtok_output", "total_tokens_per_s", "requests_per_s",
    "ttft_mean_ms", "ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms", "joules_per_token", "energy_method", "g_per_mtok",
    "source_file", "source_index",
]  # fmt: skip


def strict_json(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def rows_of(capsys: Capture, db: Path, *arguments: object) -> list[dict[str, Any]]:
    outcome = wattmix(capsys, "runs", "--db", db, "--format", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    return list(strict_json(outcome.out)["runs"])


def db_with(folder: Path, *runs: BenchmarkRun) -> Path:
    store = Store.open(folder / "s.duckdb")
    add_runs(store, runs)
    store.close()
    return store.path


def test_csv_has_every_run_with_the_promised_columns_and_nothing_else(capsys: Capture, study_db: Path) -> None:
    outcome = wattmix(capsys, "runs", "--db", study_db, "--format", "csv")
    assert (outcome.code, outcome.err) == (0, "")
    reader = csv.DictReader(io.StringIO(outcome.out), strict=True)
    rows = list(reader)
    assert set(REQUIRED) <= set(reader.fieldnames or ())
    assert len(rows) == 130
    assert all(None not in row and None not in row.values() for row in rows)
    assert {row["energy_method"] for row in rows} == {"tdp_estimate"}


def test_csv_and_json_hold_the_same_unrounded_numbers(capsys: Capture, study_db: Path) -> None:
    text = wattmix(capsys, "runs", "--db", study_db, "--format", "csv").out
    for cells, row in zip(csv.DictReader(io.StringIO(text)), rows_of(capsys, study_db), strict=True):
        assert cells == {name: "" if value is None else str(value) for name, value in row.items()}


def test_json_is_the_backend_s_rows(capsys: Capture, study_db: Path) -> None:
    shown = rows_of(capsys, study_db)
    store = Store.open(study_db)
    assert shown == json.loads(json.dumps(LocalBackend(store, Config()).run_rows()))
    store.close()


def test_a_run_of_the_study_has_the_published_cost(capsys: Capture, study_db: Path) -> None:
    """Table 2, row 6: 2 x RTX 4090 at $0.25/h for 66.47 s, 83,123 tokens."""
    rows = rows_of(capsys, study_db, "--model", "DeepSeek-R1-Distill-Qwen-14B", "--gpu", "RTX 4090")
    [row] = [row for row in rows if (row["qps"], row["gpu_count"], row["source_index"]) == (4, 2, 0)]
    assert row["prompt_tokens"] + row["generated_tokens"] == 83_123
    assert row["duration_s"] == pytest.approx(66.47, abs=0.005)
    assert row["cost_per_run_usd"] == pytest.approx(0.50 * 66.47 / 3600, rel=1e-4)
    assert row["usd_per_mtok_total"] == pytest.approx(0.1111, abs=5e-5)
    assert row["requests_per_s"] == pytest.approx(200 / 66.47, rel=1e-4)


def test_the_study_s_assumptions_double_the_h100_s_joules(capsys: Capture, study_db: Path) -> None:
    corrected = rows_of(capsys, study_db, "--gpu", "H100 PCIe")
    study = rows_of(capsys, study_db, "--gpu", "H100 PCIe", "--assume", "study")
    assert len(corrected) == len(study) == 70
    assert {row["tdp_w"] for row in corrected} == {350.0}
    assert {row["tdp_w"] for row in study} == {700.0}
    for one, other in zip(corrected, study, strict=True):
        assert other["joules_per_token"] == pytest.approx(2 * one["joules_per_token"])
        assert other["cost_per_run_usd"] == one["cost_per_run_usd"]
        assert other["g_per_mtok"] == pytest.approx(2 * one["g_per_mtok"] * 242 / 213.02)


def test_the_config_s_price_zone_and_pue_count(capsys: Capture, tmp_path: Path, study_db: Path) -> None:
    (tmp_path / "w.toml").write_text(
        "[[fleet]]\nname = 'x'\ngpu = '*4090'\nzone = 'FR'\npue = 2.0\n"
        "price = { plan = 'owned', purchase_usd = 8760, life_years = 1, tariff_usd_per_kwh = 0.36 }\n"
    )
    [before, *_] = rows_of(capsys, study_db, "--gpu", "RTX 4090")
    [after, *_] = rows_of(capsys, study_db, "--gpu", "RTX 4090", "--config", tmp_path / "w.toml")
    hours = after["duration_s"] * after["gpu_count"] / 3600
    # $1/h for the card, and 450 W x PUE 2 at $0.36/kWh = $0.324/h
    assert after["cost_per_run_usd"] == pytest.approx(hours * 1.324)
    assert after["g_per_mtok"] == pytest.approx(before["g_per_mtok"] * 2 * 41.44 / 213.02)
    assert "PUE 2" in after["grid"]
    assert "fleet x (owned)" in after["price_source"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model", "gpt-5"], "error: no run of model 'gpt-5'; the store has: "),
        (["--gpu", "L4"], "error: no run on GPU 'L4'; the store has: NVIDIA-GeForce-RTX-4090, NVIDIA-H100-PCIe\n"),
    ],
)
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_an_unknown_name_is_told_with_what_there_is(
    capsys: Capture, study_db: Path, arguments: list[str], told: str, form: str
) -> None:
    outcome = wattmix(capsys, "runs", "--db", study_db, "--format", form, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(told)


def test_an_empty_store_is_an_empty_answer(capsys: Capture, tmp_path: Path) -> None:
    db = tmp_path / "s.duckdb"
    assert rows_of(capsys, db) == []
    text = wattmix(capsys, "runs", "--db", db, "--format", "csv").out
    assert list(csv.reader(io.StringIO(text))) == [text.rstrip("\n").split(",")]
    assert set(REQUIRED) <= set(text.rstrip("\n").split(","))
    assert "wattmix import PATH" in wattmix(capsys, "runs", "--db", db).out


def test_a_run_without_tokens_has_a_cost_and_no_ratio(capsys: Capture, tmp_path: Path) -> None:
    db = db_with(tmp_path, replace(RUN, prompt_tokens=0, generated_tokens=0, completed=0, latency={}))
    [row] = rows_of(capsys, db)
    assert row["cost_per_run_usd"] == pytest.approx(2.00 * 19.004579995002132 / 3600)
    names = ("usd_per_mtok_total", "usd_per_mtok_output", "joules_per_token", "g_per_mtok", "ttft_p99_ms")
    assert [row[name] for name in names] == [None] * 5
    assert "no tokens" in row["missing"]


def test_a_table_shows_the_figures_and_says_how_they_were_got(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    outcome = wattmix(capsys, "runs", "--db", db_with(tmp_path, RUN, replace(RUN, offered_requests_per_s=None)))
    assert (outcome.code, outcome.err) == (0, "")
    for shown in ("AceMath-7B-Instruct", "1x H100 PCIe", "16", "all at once", "tdp_estimate", "GPU only", "EU27 2024"):
        assert shown in outcome.out
    assert "0.125" in outcome.out  # 2 USD/h x 19.0046 s / 3600 / 84,335 tokens x 1e6 = 0.12519 USD/Mtok


@pytest.mark.parametrize("name", ["[bold]m", "a[/x]b", "[/]", "m\\[x]"])
def test_the_names_of_a_model_and_a_card_are_shown_as_they_are(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    db = db_with(tmp_path, replace(RUN, model=f"org/{name}", gpu_name=f"card {name}"))
    outcome = wattmix(capsys, "runs", "--db", db)
    assert outcome.code == 0
    assert f"1x card {name}" in outcome.out
    assert name.rsplit("/", 1)[-1] in outcome.out
