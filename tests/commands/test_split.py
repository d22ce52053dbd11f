"""`wattmix split`: the backend's answer as JSON, and the same numbers as tables; front, plan and export."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.backend.local import LocalBackend
from app.commands import split as command
from app.config import Config
from app.reference.tables import data_folder
from app.split.demand import Demand, parse_demand
from app.split.scenario import what_if
from app.store.database import Store
from tests.answers.planned import a_plan
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


FRONT = {
    "against": "carbon",
    "reason": None,
    "knee": 1,
    "points": [
        {
            "usd_per_hour": usd, "g_per_hour": grams, "kind": kind, "is_knee": kind == "between",
            "split": {"replicas": [{"count": count, "gpus_per_replica": 2, "gpu_label": "RTX 4090"}]},
        }
        for usd, grams, kind, count in ((8.5, 1200.0, "cheapest", 13), (9.0, 900.0, "between", 12),
                                        (12.0, 850.0, "greenest", 11))
    ],
}  # fmt: skip


class Measured(LocalBackend):
    """A backend that has measured half of the example's requests, and knows a front and a plan. planned: what it was
    asked to plan.
    """

    front: dict[str, Any] = FRONT
    plan: dict[str, Any]
    planned: list[tuple[Demand | None, int]]

    def live_demand(self) -> Demand:
        return what_if(self.default_demand(), {"rps.chat": 2.5, "rps.batch": 20})

    def split_front(self, demand: Demand | None = None, *, against: str = "carbon") -> dict[str, Any]:
        return self.front

    def split_plan(self, demand: Demand | None = None, *, hours: int = 24) -> dict[str, Any]:
        self.planned.append((demand, hours))
        return self.plan


@pytest.fixture
def measured(study_db: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    store = Store.open(study_db)
    backend = Measured(store, Config())
    backend.plan, backend.planned = a_plan(), []

    @contextmanager
    def opened(*_: object) -> Iterator[Measured]:
        yield backend

    monkeypatch.setattr(command, "opened", opened)
    monkeypatch.setenv("COLUMNS", "200")
    return backend


def test_live_splits_what_is_measured(capsys: Capture, measured: Measured) -> None:
    told = json.loads(wattmix(capsys, "split", "--live", "--format", "json").out)
    assert told == json.loads(json.dumps(measured.split(measured.live_demand())))
    # (2.5 + 20) req/s x (208 + 209) tokens
    assert told["tokens_per_s"] == pytest.approx(22.5 * 417)
    table = wattmix(capsys, "split", "--live")
    assert table.out.startswith("Demand as measured: chat 2.50 req/s, batch 20.00 req/s.\n")
    assert f"${told['usd_per_hour']:.2f}/h" in table.out


def test_front_is_a_table_that_marks_the_knee(capsys: Capture, measured: Measured) -> None:
    lines = wattmix(capsys, "split", "--front").out.splitlines()
    rows = [line for line in lines if " x 2x RTX 4090" in line]
    counts = [("*" in row, count) for row in rows for count in (13, 12, 11) if f" {count} x 2x" in row]
    assert counts == [(False, 13), (True, 12), (False, 11)]
    assert "12.00" in rows[-1] and "850" in rows[-1] and "greenest" in rows[-1]


def test_a_front_that_there_is_not_says_why(capsys: Capture, measured: Measured) -> None:
    measured.front = {"against": "carbon", "reason": "fleet h100: neither zone nor g_per_kwh is set", "points": []}
    told = wattmix(capsys, "split", "--front").out
    assert "No front of cost against carbon: fleet h100: neither zone nor g_per_kwh is set\n" in told


def test_plan_is_a_table_with_a_row_per_hour_its_totals_and_its_sources(capsys: Capture, measured: Measured) -> None:
    outcome = wattmix(capsys, "split", "--live", "--plan", "3")
    assert (outcome.code, outcome.err) == (0, "")
    assert measured.planned == [(measured.live_demand(), 3)]
    split, told = outcome.out.split("Plan of 3 hours: ")
    assert f"${measured.split(measured.live_demand())['usd_per_hour']:.2f}/h" in split
    assert told.startswith("$7.00 + $0.20 switching   $0.432/Mtok   600 gCO2e   16.2 Mtok\n")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in told.splitlines() if line.startswith("│")]
    # from, load, H100s, pairs of RTX 4090s, started, stopped, $, g, what waits
    assert rows == [
        ["2026-10-25 00:00Z", "50%", "1", "0", "1", "", "2.00", "200", "3.6 Mtok"],
        ["2026-10-25 01:00Z", "50%", "1", "2", "2", "", "2.00", "200", "1.8 Mtok"],
        ["2026-10-25 02:00Z", "100%", "1", "4", "2", "", "3.00", "200", "0.0 Mtok"],
    ]
    assert "($12.00, 900 gCO2e): $5.00 (41.7%) less, 300 gCO2e less.\n" in told
    assert "Grid of h100: DE, without a forecast: the yearly value in 3 of 3 hours.\n" in told


def test_a_plan_that_there_is_not_is_an_answer_that_says_why(capsys: Capture, measured: Measured) -> None:
    nothing = {"status": "infeasible", "reason": "batch: no GPU is left", "hours": [], "totals": None, "saving": None}
    measured.plan = a_plan(**nothing)
    outcome = wattmix(capsys, "split", "--plan", "24")
    assert outcome.code == 0
    assert "\nNo plan. batch: no GPU is left\nLoad of chat, batch: " in outcome.out


def test_the_plan_s_json_is_the_backend_s(capsys: Capture, study_db: Path) -> None:
    told = json.loads(wattmix(capsys, "split", "--db", study_db, "--plan", "2", "--format", "json").out)["plan"]
    store = Store.open(study_db)
    expected = json.loads(json.dumps(LocalBackend(store, Config()).split_plan(hours=2)))
    store.close()
    # an hour may have begun in between
    for hour in (*told["hours"], *expected["hours"]):
        del hour["start"]
    assert told == expected
    assert told["status"] == "optimal"


def test_export_prints_the_settings_and_nothing_else(capsys: Capture, study_db: Path) -> None:
    outcome = wattmix(capsys, "split", "--db", study_db, "--export", "litellm")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("# Weights for LiteLLM's proxy")
    weights = [one["litellm_params"]["weight"] for one in yaml.safe_load(outcome.out)["model_list"]]
    # chat: all of it to one pool; batch: split between two
    assert sum(weights) == 2000


def test_json_has_everything_that_was_asked_for(capsys: Capture, measured: Measured) -> None:
    options = ("--live", "--front", "--plan", "3", "--export", "gateway-api", "--format", "json")
    told = json.loads(wattmix(capsys, "split", *options).out)
    assert told.pop("front") == json.loads(json.dumps(FRONT))
    assert told.pop("plan") == json.loads(json.dumps(a_plan()))
    export = told.pop("export")
    assert export["format"] == "gateway-api"
    assert {one["kind"] for one in yaml.safe_load_all(export["text"])} == {"HTTPRoute"}
    assert told == json.loads(json.dumps(measured.split(measured.live_demand())))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--live", "--demand", EXAMPLE), "--demand and --live: only one of them is accepted"),
        (("--front", "--export", "litellm"), "--front and --export: only one of them is accepted"),
        (("--plan", "24", "--export", "litellm"), "--plan and --export: only one of them is accepted, unless --format"),
        (("--plan", "0"), "--plan: given 0; accepted: 1 to 168 hours"),
        (("--plan", "169", "--format", "json"), "--plan: given 169; accepted: 1 to 168 hours"),
        (("--plan", "day"), "Invalid value for '--plan'"),
        (("--export", "nginx"), "'nginx' is not one of"),
    ],
)
def test_options_that_do_not_go_together_are_told(
    capsys: Capture, study_db: Path, options: tuple[object, ...], told: str
) -> None:
    outcome = wattmix(capsys, "split", "--db", study_db, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert told in outcome.err


def test_there_is_nothing_to_export_where_no_mix_carries_the_demand(
    capsys: Capture, study_db: Path, tmp_path: Path
) -> None:
    (tmp_path / "d.toml").write_text(EXAMPLE.read_text(encoding="utf-8").replace("max_ms = 60", "max_ms = 0.5"))
    outcome = wattmix(capsys, "split", "--db", study_db, "--demand", "d.toml", "--export", "litellm")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: no mix carries this demand, so there are no weights: ")
