"""`wattmix split`: the backend's answer as JSON, and the same numbers as tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.backend import LocalBackend
from app.config import Config
from app.reference.tables import data_folder
from app.split.demand import parse_demand
from app.store.database import Store
from tests.commands.invoke import wattmix

Capture = pytest.CaptureFixture[str]

EXAMPLE = data_folder() / "demand.example.toml"


def test_json_is_the_backend_s_answer(capsys: Capture, study_db: Path) -> None:
    outcome = wattmix(capsys, "split", "--db", study_db, "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    store = Store.open(study_db)
    backend = LocalBackend(store, Config())
    assert json.loads(outcome.out) == json.loads(json.dumps(backend.split(backend.default_demand())))
    store.close()


def test_the_demand_is_the_option_s_else_the_config_s_else_the_example(
    capsys: Capture, study_db: Path, tmp_path: Path
) -> None:
    def hourly(*arguments: object) -> float:
        outcome = wattmix(capsys, "split", "--db", study_db, "--format", "json", *arguments)
        return float(json.loads(outcome.out)["usd_per_hour"])

    example = EXAMPLE.read_text(encoding="utf-8")
    (tmp_path / "double.toml").write_text(example.replace("requests_per_s = 40", "requests_per_s = 80"))
    (tmp_path / "none.toml").write_text(example.replace("requests_per_s = 40", "requests_per_s = 0"))
    (tmp_path / "w.toml").write_text(f"[split]\ndemand = '{tmp_path / 'none.toml'}'\n")
    assert hourly() == hourly("--demand", EXAMPLE)
    assert hourly("--demand", "double.toml") > hourly()
    assert hourly("--config", "w.toml") == hourly("--demand", "none.toml") < hourly()
    assert hourly("--config", "w.toml", "--demand", "double.toml") == hourly("--demand", "double.toml")


def test_an_imported_price_changes_split_and_runs(capsys: Capture, study_db: Path, tmp_path: Path) -> None:
    price = "price = { plan = 'rented', per_gpu_hour = 2.0 }"
    (tmp_path / "wattmix.toml").write_text(f"[[fleet]]\nname = 'h100'\ngpu = 'NVIDIA H100 PCIe'\n{price}\n")
    (tmp_path / "f.csv").write_text(
        "kind,subject,valid_from,source,plan,per_gpu_hour\nprice,h100,2026-03-01,contract,rented,3\n"
    )

    def told(command: str, *options: object) -> str:
        return wattmix(capsys, command, "--db", study_db, *options).out

    def h100() -> list[float]:
        rows = json.loads(told("runs", "--gpu", "NVIDIA H100 PCIe", "--format", "json"))["runs"]
        return [row["cost_per_run_usd"] for row in rows]

    before = h100()
    assert "$8.50/h" in told("split")
    assert wattmix(capsys, "facts", "import", tmp_path / "f.csv", "--db", study_db).code == 0
    assert h100() == pytest.approx([1.5 * cost for cost in before])
    # one H100 and thirteen pairs of 4090s: 3.00 + 6.50
    assert "$9.50/h" in told("split")
    assert "Price: h100 $3.00/h (contract, fleet h100); rtx4090 $0.25/h (the demand)." in told("split")
    assert "$8.50/h" in told("split", "--demand", EXAMPLE)  # a demand that is given says its own prices


def test_a_table_shows_the_answer_its_reasons_and_its_exclusions(
    capsys: Capture, study_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    answer = json.loads(wattmix(capsys, "split", "--db", study_db, "--format", "json").out)
    outcome = wattmix(capsys, "split", "--db", study_db)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"${answer['usd_per_hour']:.2f}/h" in outcome.out
    for pool in answer["replicas"]:
        assert pool["fleet"] in outcome.out
    for reason in answer["reasons"]:
        assert reason["text"] in outcome.out
    assert answer["excluded"][0]["reason"] in outcome.out
    assert "--format json has all" in outcome.out


def test_an_infeasible_demand_is_an_answer_that_says_why(capsys: Capture, study_db: Path, tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text(EXAMPLE.read_text(encoding="utf-8").replace("max_ms = 60", "max_ms = 0.5"))
    outcome = wattmix(capsys, "split", "--db", study_db, "--demand", "d.toml")
    assert outcome.code == 0
    assert outcome.out.startswith("Infeasible. ")
    answer = json.loads(wattmix(capsys, "split", "--db", study_db, "--demand", "d.toml", "--format", "json").out)
    assert answer["status"] == "infeasible"
    assert answer["reason"]


def test_an_empty_store_is_infeasible_not_an_error(capsys: Capture, tmp_path: Path) -> None:
    answer = json.loads(wattmix(capsys, "split", "--db", tmp_path / "s.duckdb", "--format", "json").out)
    assert answer["status"] == "infeasible"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("requests_per_s = 5", "requests_per_s = 'five'",
         "d.toml: `class[1].requests_per_s`: given 'five'; accepted: a number"),
        ("pue = 1.2", "pue = 0.2", "d.toml: `fleet[1].pue`: given 0.2; accepted: a number >= 1"),
        ("[solve]", "[slove]", "d.toml: `slove`: no such key"),
        ('zone = "EU27"', 'zone = "EU28"', "fleet h100, `zone`: no grid intensity for zone 'EU28'; near it: EU27"),
        ("[[class]]", "[[class", "d.toml: not TOML: "),
    ],
)  # fmt: skip
def test_a_mistake_in_the_demand_is_told_with_file_and_key(
    capsys: Capture, study_db: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    (tmp_path / "d.toml").write_text(EXAMPLE.read_text(encoding="utf-8").replace(old, new))
    outcome = wattmix(capsys, "split", "--db", study_db, "--demand", "d.toml")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"error: {told}" in outcome.err


@pytest.mark.parametrize("intensity", ["1e100", "1.7e308"])
def test_no_number_makes_the_solver_run_for_ever(study_db: Path, tmp_path: Path, intensity: str) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace('zone = "EU27"', f"g_per_kwh = {intensity}")
    (tmp_path / "d.toml").write_text(text)
    command = [sys.executable, "-m", "app", "split", "--db", str(study_db), "--demand", "d.toml"]
    split = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert split.returncode in (0, 2)
    assert "Traceback" not in split.stderr


def test_a_demand_that_is_not_there_is_told(capsys: Capture, tmp_path: Path) -> None:
    outcome = wattmix(capsys, "split", "--db", tmp_path / "s.duckdb", "--demand", "none.toml")
    assert (outcome.code, outcome.err) == (2, "error: none.toml: no such file\n")


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "a[/x]b", "[/]"])
def test_a_fleet_s_and_a_class_s_name_are_shown_as_they_are(
    capsys: Capture, study_db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    text = (
        EXAMPLE.read_text(encoding="utf-8")
        .replace('"rtx4090"', f'"{name} fleet"')
        .replace('"batch"', f'"{name} class"')
    )
    (tmp_path / "d.toml").write_text(text)
    outcome = wattmix(capsys, "split", "--db", study_db, "--demand", "d.toml")
    assert outcome.code == 0
    assert f"{name} fleet" in outcome.out
    assert f"of {name} class" in outcome.out


def test_the_shipped_example_is_a_demand() -> None:
    store_free = parse_demand({"class": [], "fleet": []} | _read(EXAMPLE), "example")
    assert [one.name for one in store_free.classes] == ["chat", "batch"]


def _read(path: Path) -> dict[str, object]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))
