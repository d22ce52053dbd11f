"""[[grid]] of wattmix.toml: providers, zones and keys, and that no key is ever told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.config import Config, load_config
from app.errors import ConfigError
from app.grid_settings import GridSettings
from app.validation import describe
from collectors.grid.provider import Absent
from collectors.grid.registry import PROVIDERS
from collectors.http.client import Http
from tests.conftest import ROOT

SECRET = "planted-key-0815"


def settings(**said: Any) -> GridSettings:
    return GridSettings.model_validate({"provider": "electricity_maps", "zones": {"DE": "DE"}} | said)


def reason(made: GridSettings) -> str:
    absent = made.make(Http())
    assert isinstance(absent, Absent)
    return absent.reason


def written(folder: Path, *entries: str) -> Path:
    path = folder / "wattmix.toml"
    path.write_text("\n".join(f"[[grid]]\n{entry}" for entry in entries), encoding="utf-8")
    return path


def test_a_key_comes_from_the_environment_a_file_or_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(f"{SECRET}\n", encoding="utf-8")
    monkeypatch.setenv("TOKEN", SECRET)
    for said in ({"key_env": "TOKEN"}, {"key_file": str(tmp_path / "key")}, {"key": SECRET}):
        made = settings(**said)
        provider = made.make(Http())
        assert not isinstance(provider, Absent)
        assert provider.name == "electricity_maps"
        assert SECRET not in f"{made!r} {made} {provider!r} {vars(provider)!r}"


def test_what_lacks_its_key_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BLANK", "  ")
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    (tmp_path / "odd").write_bytes(b"\xff\xfe")
    assert reason(settings()) == "it needs a `key` (a token of Electricity Maps)"
    assert reason(settings(key_env="NO_SUCH")) == "$NO_SUCH is not set (key_env)"
    assert reason(settings(key_env="BLANK")) == "$BLANK is not set (key_env)"
    assert reason(settings(key_file=str(tmp_path / "none"))).endswith(
        "cannot be read (key_file): No such file or directory"
    )
    assert reason(settings(key_file=str(tmp_path / "empty"))).endswith("is empty (key_file)")
    assert reason(settings(key_file=str(tmp_path / "odd"))).endswith("is not UTF-8 text (key_file)")
    said = reason(settings(key=f"{SECRET}\x07"))
    assert said.startswith("its settings are not usable: a key is printable ASCII")
    assert SECRET not in said


@pytest.mark.parametrize("name", list(PROVIDERS))
def test_every_provider_can_be_named(name: str) -> None:
    made = settings(provider=name, user="u", key="k", kind="average", path="x.csv", base_url="http://127.0.0.1:9")
    assert not isinstance(made.make(Http()), Absent)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("provider = 'co2signal'\nzones = {DE = 'DE'}",
         "`grid[1].provider`: given 'co2signal'; accepted: one of uk_carbon_intensity, energy_charts, "),
        ("provider = 'energy_charts'", "`grid[1].zones`: the key is missing"),
        ("provider = 'energy_charts'\nzones = {}", "`grid[1].zones`: given {}; accepted: "),
        ("provider = 'energy_charts'\nzones = {DE = 'de'}\npoll_s = 5",
         "`grid[1].poll_s`: given 5; accepted: a number >= 60"),
        ("provider = 'energy_charts'\nzones = {DE = 'de'}\nbase_url = 'ftp://x'",
         "`grid[1].base_url`: given 'ftp://x'; accepted: base_url is http(s)://host"),
        ("provider = 'energy_charts'\nzones = {Atlantis = 'x'}",
         "`grid[1].zones.Atlantis`: no grid intensity for zone 'Atlantis'"),
        ("provider = 'energy_charts'\nzones = {DE = 'de', 'aws:eu-central-1' = 'de'}",
         "`grid[1].zones`: two of DE, aws:eu-central-1 are the same zone"),
        ("provider = 'energy_charts'\nzones = {DE = 'de'}\n[[grid]]\nprovider = 'energy_charts'\n"
         "zones = {'aws:eu-central-1' = 'de'}",
         "`grid`: accepted: zones that differ (DE appears twice for energy_charts)"),
        ("provider = 'energy_charts'\nzones = {DE = 'de', de = 'de'}",
         "zones that differ (de appears twice for energy_charts)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_key(tmp_path: Path, entry: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(written(tmp_path, entry))
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "entry",
    [
        {"key": SECRET, "key_env": "X"}, {"key": SECRET, "zones": {}}, {"key": [SECRET]}, {"key": {"x": SECRET}},
        {"key": SECRET, "kye": 1}, {"key": SECRET, "provider": 3},
        {"base_url": f"https://user:{SECRET}@host/v4?token={SECRET}"},
    ],
)  # fmt: skip
def test_no_key_is_told_when_something_is_wrong(entry: dict[str, Any]) -> None:
    given = {"provider": "electricity_maps", "zones": {"DE": "DE"}} | entry
    for content in ({"grid": [given]}, {"grid": given}, {"grid": [given, given]}):
        with pytest.raises(ValidationError) as refused:
            Config.model_validate(content)
        assert SECRET not in describe(refused.value, "wattmix.toml")


def test_zones_are_asked_by_the_names_that_fleets_factors_have(tmp_path: Path) -> None:
    entry = "provider = 'carbon_aware_sdk'\nzones = {'aws:eu-central-1' = 'germanywestcentral', fr = 'francecentral'}"
    (grid,) = load_config(written(tmp_path, entry)).grid
    assert grid.zones == {"DE": "germanywestcentral", "FR": "francecentral"}


def test_paths_are_taken_from_the_folder_of_the_file(tmp_path: Path) -> None:
    entry = "provider = 'csv_file'\nzones = {DE = 'DE'}\npath = 'grid.csv'\nkey_file = 'key'"
    (grid,) = load_config(written(tmp_path, entry)).grid
    assert (grid.path, grid.key_file) == (str(tmp_path / "grid.csv"), str(tmp_path / "key"))


def test_the_example_names_each_kind_of_key() -> None:
    grids = load_config(ROOT / "wattmix.example.toml").grid
    assert [grid.provider for grid in grids] == [
        "electricity_maps", "watttime", "electricity_maps", "carbon_aware_sdk", "csv_file",
    ]  # fmt: skip
