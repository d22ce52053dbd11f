"""`wattmix grid` and what `wattmix doctor` says of providers: real requests to a real server, live, stale and none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.commands.checks import Check
from app.commands.grid_checks import grid_checks
from app.config import load_config
from collectors.http.client import Http
from collectors.http.transport import Bounds
from tests.commands.invoke import Outcome, wattmix
from tests.hub.grid_server import Grid
from tests.hub.grid_server import grid as grid
from tests.hub_process import running

Capture = pytest.CaptureFixture[str]
SECRET = "planted-key-1138"


@pytest.fixture
def settings(grid: Grid, tmp_path: Path) -> Path:
    path = tmp_path / "wattmix.toml"
    path.write_text(
        f'[[grid]]\nprovider = "energy_charts"\nzones = {{ DE = "de" }}\nbase_url = "{grid.address}"\n',
        encoding="utf-8",
    )
    return path


def shown(capsys: Capture, tmp_path: Path, *arguments: str) -> Outcome:
    return wattmix(capsys, "grid", "--db", tmp_path / "s.duckdb", *arguments)


def as_json(capsys: Capture, tmp_path: Path, zone: str = "DE") -> dict[str, Any]:
    outcome = shown(capsys, tmp_path, zone, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    return dict(json.loads(outcome.out))


def test_a_live_zone_is_shown_with_its_sources(capsys: Capture, settings: Path, tmp_path: Path) -> None:
    outcome = shown(capsys, tmp_path, "DE")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "DE now: 300 g/kWh average, basis not said, measured, live"
    assert lines[1].startswith("  Energy-Charts, Fraunhofer ISE: 20")
    assert lines[2] == "yearly average of 2025: 330 g/kWh average, lifecycle, default"
    assert "│ 100   │ average │ basis not said │ energy_charts │ –      │" in outcome.out
    answer = as_json(capsys, tmp_path)
    assert (answer["current"]["from"], answer["current"]["g_per_kwh"], answer["table"]["year"]) == ("live", 300, 2025)
    assert len(answer["hours"]) >= 6


def test_what_is_kept_is_shown_with_its_age(capsys: Capture, settings: Path, tmp_path: Path, grid: Grid) -> None:
    shown(capsys, tmp_path, "DE")
    grid.do = "500"
    lines = shown(capsys, tmp_path, "DE").out.splitlines()
    assert lines[0].startswith("DE now: 300 g/kWh average, basis not said, measured, cached, asked ")
    assert lines[2] == "  Energy-Charts: HTTP 500: not now"
    assert any(line.startswith("warning Energy-Charts: no answer for ") for line in lines)


def test_without_any_value_the_table_is_shown(capsys: Capture, settings: Path, tmp_path: Path, grid: Grid) -> None:
    grid.do = "html"
    lines = shown(capsys, tmp_path, "DE").out.splitlines()
    assert lines[0] == "DE now: 330 g/kWh average, lifecycle, default, table"
    assert "  Energy-Charts has never answered: HTTP 200 with an HTML page instead of JSON" in lines
    assert "no forecast" in lines
    # a zone that no provider is asked about
    asked = len(grid.paths)
    outcome = shown(capsys, tmp_path, "FR")
    assert outcome.out.startswith("FR now: ")
    assert "no provider of wattmix.toml is asked for the average of this zone" in outcome.out
    assert len(grid.paths) == asked


def test_a_zone_that_nobody_knows_is_an_error(capsys: Capture, tmp_path: Path) -> None:
    outcome = shown(capsys, tmp_path, "Atlantis")
    assert (outcome.code, outcome.out) == (2, "")
    assert "no grid intensity for zone 'Atlantis'" in outcome.err


def test_a_running_hub_answers_alike(capsys: Capture, settings: Path, tmp_path: Path, grid: Grid) -> None:
    """Design law 7; the hub itself asks the provider."""
    db = tmp_path / "s.duckdb"
    with running(["serve", "--db", str(db), "--config", str(settings)], tmp_path) as hub:
        for _ in range(200):
            answer = as_json(capsys, tmp_path)
            if answer["forecast"] and answer["current"]["from"] == "live":
                break
        assert hub.stop() == 0
    without = as_json(capsys, tmp_path)
    for one in (answer, without):
        assert (one["current"]["from"], one["current"]["g_per_kwh"]) == ("live", 300)
        assert one["sources"][0]["state"] == "ok"
    assert len(answer["hours"]) >= 24
    assert answer["hours"][:20] == without["hours"][:20]


# wattmix doctor


def checks(settings: Path) -> list[Check]:
    return list(grid_checks(load_config(settings), Http(bounds=Bounds(2, 0.2, 0.4))))


def test_doctor_asks_each_provider(settings: Path, grid: Grid) -> None:
    (check,) = checks(settings)
    assert check.level == "ok"
    assert check.what.startswith("grid provider Energy-Charts, zone DE: 300 g/kWh average, basis not said, measured")
    assert len(grid.paths) == 1


@pytest.mark.parametrize(
    ("do", "words"),
    [
        ("500", "HTTP 500: not now (zone DE, today at http://127.0.0.1:"),
        ("401", "HTTP 401: not now (zone DE, today at http://127.0.0.1:"),
        ("hang", "no answer within 0.2 s (zone DE, today at http://127.0.0.1:"),
        ("wrong type", "`unix_seconds` is a text, not a list (zone DE"),
    ],
)
def test_doctor_says_what_is_wrong_and_what_to_do(settings: Path, grid: Grid, do: str, words: str) -> None:
    grid.do = do
    (check,) = checks(settings)
    assert check.level == "problem"
    assert check.what.startswith(f"grid provider Energy-Charts, zone DE: {words}")
    assert check.remedy


def test_doctor_names_a_missing_key_and_never_a_key(
    settings: Path, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.write_text(
        '[[grid]]\nprovider = "electricity_maps"\nzones = { DE = "DE" }\nkey_env = "MAPS_TOKEN"\n'
        f'base_url = "{grid.address}"\n', encoding="utf-8",
    )  # fmt: skip
    monkeypatch.delenv("MAPS_TOKEN", raising=False)
    (check,) = checks(settings)
    assert check.what == "grid provider Electricity Maps is not asked: $MAPS_TOKEN is not set (key_env)"
    assert grid.paths == []
    monkeypatch.setenv("MAPS_TOKEN", SECRET)
    grid.do = "401"
    (check,) = checks(settings)
    assert check.what.startswith("grid provider Electricity Maps, zone DE: HTTP 401: not now")
    assert grid.headers[-1]["auth-token"] == SECRET
    assert SECRET not in f"{check}"


def test_doctor_says_nothing_of_grids_without_settings(tmp_path: Path) -> None:
    path = tmp_path / "wattmix.toml"
    path.write_text("", encoding="utf-8")
    assert checks(path) == []
