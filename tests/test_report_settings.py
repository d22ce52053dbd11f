"""`[reports]` and `[[report]]` of wattmix.toml: what they mean, and what is said of a mistake."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from app import report_settings
from app.config import Config, load_config
from app.errors import ConfigError
from app.reference.tables import data_folder
from app.report_settings import ReportSchedule
from tests.conftest import ROOT


def written(folder: Path, text: str) -> Path:
    path = folder / "wattmix.toml"
    path.write_text(text, encoding="utf-8")
    return path


def report(**said: str) -> str:
    known = {"name": "daily", "kind": "fleet-day", "cron": "0 6 * * *"}
    return "[[report]]\n" + "".join(f"{name} = {value!r}\n" for name, value in (known | said).items())


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    [one] = load_config(written(tmp_path, report())).report
    assert one == ReportSchedule(name="daily", kind="fleet-day", cron="0 6 * * *")
    assert (one.tz, one.window, one.boundary, one.basis, one.out) == ("UTC", "day", "it", "total", None)
    assert (Config().report, Config().reports.folder) == ((), None)


def test_folders_are_taken_from_the_folder_of_the_file(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "[reports]\nfolder = 'out'\n" + report(out="daily") + report(name="b")))
    assert config.reports.folder == str(tmp_path / "out")
    assert [one.out for one in config.report] == [str(tmp_path / "daily"), None]
    assert load_config(written(tmp_path, report(out="/srv/x"))).report[0].out == "/srv/x"


def test_the_shipped_files_hold_schedules() -> None:
    demo = load_config(data_folder() / "demo.toml").report
    assert [(one.name, one.kind, one.cron, one.tz) for one in demo] == [
        ("daily", "fleet-day", "0 6 * * *", "Europe/Madrid"), ("hourly", "hourly", "5 * * * *", "Europe/Madrid"),
    ]  # fmt: skip
    assert [one.name for one in load_config(ROOT / "wattmix.example.toml").report] == ["daily"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[report]]\nname = 'a'\nkind = 'hourly'", "`report[1].cron`: the key is missing"),
        (report(kind="weekly"), "`report[1].kind`: given 'weekly'; accepted: 'fleet-day' or 'hourly'"),
        (report(cron="daily"), "`report[1].cron`: given 'daily'; accepted: five fields, minute hour day month weekday"),
        (report(cron="0 25 * * *"), "or '5 * * * *' (bad hour)"),
        (report(tz="Europe/Madird"), "accepted: an IANA time zone such as Europe/Madrid, America/New_York or UTC (did"),
        (report(window="year"), "`report[1].window`: given 'year'; accepted: 'hour', 'day', 'week' or 'month'"),
        (report(window="hour"), 'accepted: window = "hour" beside kind = "hourly" only'),
        (report(boundary="rack"), "`report[1].boundary`: given 'rack'; accepted: 'gpu', 'it' or 'site'"),
        (report(basis="all"), "`report[1].basis`: given 'all'; accepted: 'total', 'computed' or 'output'"),
        (report(colour="red"), "`report[1].colour`: no such key"),
        (report() + report(name="Daily"), "report names that differ (daily appears twice)"),
        ("[reports]\nfile = 'x'", "`reports.file`: no such key"),
    ],
)
def test_a_mistake_is_told_with_file_key_and_what_is_accepted(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert str(refused.value).startswith(f"{path}: `")
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a\\b", "ü", "a b", "a" * 65, "-x", "a\n"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"`report\[1\].name`: given .*; accepted: 1 to 64 letters, digits, dots"):
        load_config(written(tmp_path, report(name="X").replace("'X'", json.dumps(name))))


def test_a_gpu_node_without_the_hubs_packages_reads_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base install has no cronsim, and a slim image no time zones; the agent needs neither."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "cronsim" else found(name))
    monkeypatch.setattr(report_settings, "zone_names", frozenset)
    [one] = load_config(written(tmp_path, report(cron="whatever", tz="Europe/Madrid"))).report
    assert (one.cron, one.tz) == ("whatever", "Europe/Madrid")
