"""Runs of schedules: where they go, what is recorded of one by hand, what is shown, which files are given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.config import Config
from app.errors import DeliveryError, UnknownName
from app.reports.runs import find_schedule, folder_for, run_by_hand, schedules_as_json, written_file
from app.store.database import Store
from app.store.reports import ReportRun, add_runs, latest_runs, register
from tests.reports.lines import NOW, Account

FILE = "daily_2026-02-03_2026-02-04.csv"


def config(folder: Path | None = None, **said: Any) -> Config:
    daily = {"name": "daily", "kind": "fleet-day", "cron": "0 6 * * *", "tz": "Europe/Madrid"}
    reports = {"folder": str(folder)} if folder else {}
    return Config.model_validate({"reports": reports, "report": [daily | said]})


def test_files_go_to_the_schedules_folder_else_the_settings_else_beside_the_store() -> None:
    store = Path("/data/wattmix.duckdb")
    [own] = config(Path("/r"), out="/own").report
    assert folder_for(own, config(Path("/r")), store) == Path("/own")
    [plain] = config().report
    assert folder_for(plain, config(Path("/r")), store) == Path("/r")
    assert folder_for(plain, config(), store) == Path("/data/wattmix.duckdb.reports")


def test_a_run_by_hand_writes_what_the_schedule_would_make_now_and_is_recorded(store: Store, tmp_path: Path) -> None:
    answer = run_by_hand(store, config(tmp_path), "daily", Account(), NOW)
    assert (answer["status"], answer["file"], answer["due_at"], answer["rows"]) == ("written", FILE, None, 1)
    assert (tmp_path / FILE).is_file()
    [run] = latest_runs(store, "daily", 10)
    assert (run.due_at, run.ran_at, run.sha256) == (None, NOW, answer["sha256"])


@pytest.mark.parametrize("problem", [DeliveryError("the disk is full"), RuntimeError("a bug")], ids=repr)
def test_a_run_by_hand_that_fails_is_told_and_recorded(store: Store, tmp_path: Path, problem: Exception) -> None:
    with pytest.raises(type(problem), match=str(problem)):
        run_by_hand(store, config(tmp_path), "daily", Account(problem), NOW)
    [run] = latest_runs(store, "daily", 10)
    assert (run.status, run.error, run.file) == ("failed", str(problem), None)


def test_an_unknown_schedule_is_told_with_those_there_are() -> None:
    assert find_schedule(config(), "daily").name == "daily"
    with pytest.raises(UnknownName, match="no scheduled report 'dayly'; there are: daily"):
        find_schedule(config(), "dayly")
    with pytest.raises(UnknownName, match=r"there are: none yet \(\[\[report\]\] of wattmix\.toml\)"):
        find_schedule(Config(), "daily")


def test_every_schedule_is_shown_with_its_runs_and_its_next_due_time(store: Store, tmp_path: Path) -> None:
    settings = config(tmp_path)
    register(store, ["daily"], NOW - timedelta(days=3))
    [before] = schedules_as_json(store, settings, NOW)
    assert (before["last_run"], before["runs"]) == (None, [])
    assert before["next_due"] == "2026-02-02T05:00:00+00:00"  # 06:00 in Madrid; the hub will make up for it
    due = datetime(2026, 2, 4, 5, tzinfo=UTC)
    waiting = ReportRun("daily", due + timedelta(days=1), "waiting", due, due)
    add_runs(store, [ReportRun("daily", due, "written", due, due, 1, NOW, NOW, str(tmp_path), FILE, "ab", 3), waiting])
    [shown] = schedules_as_json(store, settings, NOW)
    assert {name: shown[name] for name in ("name", "kind", "cron", "cron_in_words", "tz", "window", "folder")} == {
        "name": "daily", "kind": "fleet-day", "cron": "0 6 * * *", "cron_in_words": "At 06:00 every day",
        "tz": "Europe/Madrid", "window": "day", "folder": str(tmp_path),
    }  # fmt: skip
    assert [run["status"] for run in shown["runs"]] == ["waiting", "written"]
    assert (shown["last_run"]["file"], shown["last_run"]["due_at"]) == (FILE, due.isoformat())
    assert shown["next_due"] == "2026-02-06T05:00:00+00:00"


def test_a_schedule_that_no_hub_has_seen_is_next_due_from_now_on(store: Store) -> None:
    [shown] = schedules_as_json(store, config(), NOW)
    assert (shown["next_due"], shown["last_run"]) == ("2026-02-05T05:00:00+00:00", None)  # NOW is 06:00 in Madrid


def test_only_files_that_a_schedule_wrote_are_given(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run_by_hand(store, config(folder), "daily", Account(), NOW)
    (folder / "secret.txt").write_text("mine")
    (tmp_path / "secret.txt").write_text("mine")
    assert written_file(store, "daily", FILE) == folder / FILE
    assert written_file(store, "daily", f"{FILE}.manifest.json") == folder / f"{FILE}.manifest.json"
    for name, file in (
        ("daily", "secret.txt"), ("daily", "../secret.txt"), ("daily", f"../out/{FILE}"), ("other", FILE),
        ("daily", ""), ("daily", ".manifest.json"), ("daily", f"{FILE}.manifest.json.manifest.json"),
        ("daily", str(folder / FILE)),
    ):  # fmt: skip
        with pytest.raises(UnknownName, match="no file"):
            written_file(store, name, file)
    (folder / FILE).unlink()
    with pytest.raises(UnknownName, match=f"no file '{FILE}' of the scheduled report 'daily'"):
        written_file(store, "daily", FILE)
