"""`wattmix report`: the CSV on stdout or in a folder, the same whether the store is free or a hub owns it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.backend.local import LocalBackend
from app.reports.columns import NAMES
from app.store.database import Store
from app.store.rollup import roll_up
from tests.batches import DAY, HOUR, SECOND, Clock, batch, put, seconds, writing
from tests.commands.invoke import wattmix
from tests.hub_process import running
from tests.reports.lines import Account

Capture = pytest.CaptureFixture[str]
# Two days ago, so that its minutes are kept; the samples are of half an hour from 04:00 UTC on.
THAT_DAY = datetime.now(UTC).date() - timedelta(days=2)
BEGIN = datetime.combine(THAT_DAY, time(4), UTC)
BEGIN_US = int(BEGIN.timestamp()) * SECOND
WINDOW = ("--from", THAT_DAY, "--to", THAT_DAY + timedelta(days=1))


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which one GPU drew 300 W for half an hour."""
    store = Store.open(tmp_path_factory.mktemp("db") / "s.duckdb")
    with writing(store, Clock(BEGIN_US + HOUR)) as taking:
        put(taking, batch(1, rows=seconds(BEGIN_US, 1800)))
    while roll_up(store, BEGIN_US + HOUR, oldest_raw_us=BEGIN_US - DAY, oldest_minute_us=BEGIN_US - 30 * DAY):
        pass
    store.close()
    return store.path


def report(capsys: Capture, db: Path, kind: str, *arguments: object) -> tuple[list[dict[str, str]], str]:
    outcome = wattmix(capsys, "report", kind, "--db", db, *arguments)
    assert outcome.code == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out, newline=""), strict=True)), outcome.err


def test_a_day_of_a_gpu_has_its_hours_and_its_energy(capsys: Capture, db: Path) -> None:
    [row], told = report(capsys, db, "fleet-day", *WINDOW)
    assert tuple(row) == NAMES
    assert (row["period"], row["tz"], row["fleet"], row["model"]) == (THAT_DAY.isoformat(), "UTC", "", "")
    assert float(row["gpu_hours"]) == pytest.approx(0.5)
    assert float(row["energy_kwh"]) == pytest.approx(0.15)  # 300 W x 0.5 h
    assert "fleet: no fleet claims these GPUs" in row["missing"]
    assert "note: " not in told


def test_a_day_is_the_zones_own(capsys: Capture, db: Path) -> None:
    """04:00 UTC is the evening of the day before in Los Angeles, and the afternoon of the same day in Auckland."""
    before = THAT_DAY - timedelta(days=1)
    [row], _ = report(capsys, db, "fleet-day", "--from", before, *WINDOW[2:], "--tz", "America/Los_Angeles")
    assert row["period"] == before.isoformat()
    [row], _ = report(capsys, db, "hourly", *WINDOW, "--tz", "Pacific/Auckland")
    assert row["period"] == BEGIN.astimezone(ZoneInfo("Pacific/Auckland")).isoformat(timespec="minutes")


def test_quarter_hour_zones_split_the_energy_at_their_own_hours(capsys: Capture, db: Path) -> None:
    # Kathmandu is at +05:45: 04:00 to 04:30 UTC is 09:45 to 10:15 there
    rows, _ = report(capsys, db, "hourly", *WINDOW, "--tz", "Asia/Kathmandu")
    assert [(row["period"], pytest.approx(float(row["gpu_hours"]))) for row in rows] == [
        (f"{THAT_DAY}T09:00+05:45", 0.25), (f"{THAT_DAY}T10:00+05:45", 0.25),
    ]  # fmt: skip


def test_a_folder_gets_the_file_and_its_manifest_and_stdout_its_name(capsys: Capture, db: Path, tmp_path: Path) -> None:
    outcome = wattmix(
        capsys, "report", "fleet-day", "--db", db, *WINDOW, "--out", tmp_path / "out", "--boundary", "site"
    )
    file = tmp_path / "out" / f"fleet-day_UTC_{THAT_DAY}_{THAT_DAY + timedelta(days=1)}.csv"
    assert (outcome.code, outcome.out) == (0, f"{file}\n")
    manifest = json.loads((tmp_path / "out" / f"{file.name}.manifest.json").read_text())
    assert manifest["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (manifest["rows"], manifest["boundary"], manifest["tz"], manifest["complete"]) == (1, "site", "UTC", True)


def test_without_dates_it_is_yesterday(capsys: Capture, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account()
    monkeypatch.setattr(LocalBackend, "account", lambda self, *given, **said: account(*given, **said))
    [row], _ = report(capsys, db, "fleet-day")
    assert row["period"] == (datetime.now(UTC).date() - timedelta(days=1)).isoformat()


def test_what_to_know_of_the_figures_is_told_beside_them(
    capsys: Capture, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, told = report(capsys, db, "fleet-day", "--from", "2026-01-01", "--to", "2026-01-02")
    assert told == "note: no GPU and no engine was seen in this window\n"
    account = Account()
    monkeypatch.setattr(LocalBackend, "account", lambda self, *given, **said: account(*given, **said))
    tomorrow = (datetime.now(UTC).date() + timedelta(days=1)).isoformat()
    _, told = report(capsys, db, "fleet-day", "--to", tomorrow)
    assert "note: the window is not over: what was known at " in told
    assert "note: energy was measured 99.5% of the time in the line with the least coverage\n" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--from", "03.02.2026"], "`from`: given '03.02.2026'; accepted: a date such as 2026-02-03"),
        (["--from", "2026-02-03", "--to", "2026-02-03"], "hold no day: `to` is the day after the last one"),
        (["--tz", "Madrid"], "`tz`: given 'Madrid'; accepted: an IANA time zone such as Europe/Madrid"),
        (["--boundary", "rack"], "`boundary`: given 'rack'; accepted: gpu, it, site"),
        (["--basis", "all"], "`basis`: given 'all'; accepted: total, computed, output"),
        (["--from", "2020-01-01"], "days; accepted: 400 for hourly"),
    ],
)
def test_a_mistake_is_told_with_exit_code_2(capsys: Capture, db: Path, arguments: list[str], told: str) -> None:
    outcome = wattmix(capsys, "report", "hourly", "--db", db, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert told in outcome.err


def test_a_folder_that_cannot_be_written_is_told(capsys: Capture, db: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    outcome = wattmix(capsys, "report", "fleet-day", "--db", db, *WINDOW, "--out", tmp_path / "taken")
    assert (outcome.code, outcome.out) == (2, "")
    assert "cannot be written: " in outcome.err


def test_a_report_of_an_earlier_knowledge_is_the_same_bytes(capsys: Capture, db: Path, tmp_path: Path) -> None:
    """A price that becomes known afterwards, of the time before, changes today's report and not the one as of then."""
    db = Path(shutil.copy(db, tmp_path / "own.duckdb"))
    first = wattmix(capsys, "report", "fleet-day", "--db", db, *WINDOW)
    [row] = csv.DictReader(io.StringIO(first.out, newline=""))
    price = tmp_path / "prices.csv"
    table = "kind,subject,valid_from,source,plan,per_gpu_hour,fleet\n"
    price.write_text(
        f"{table}price,lab,1970-01-02,a contract,rented,4.00,\nmembership,node-7,1970-01-02,a list,,,lab\n"
    )
    assert wattmix(capsys, "facts", "import", price, "--db", db).code == 0
    [now] = report(capsys, db, "fleet-day", *WINDOW)[0]
    assert (now["fleet"], now["cost"]) == ("lab", "2.0")  # half an hour at $4
    again = wattmix(capsys, "report", "fleet-day", "--db", db, *WINDOW, "--known-at", row["known_at"])
    assert again.out == first.out
    told = wattmix(capsys, "report", "fleet-day", "--db", db, *WINDOW, "--known-at", "2999-01-01T00:00Z")
    assert (told.code, "accepted: a moment that has passed" in told.err) == (2, True)


def without_known_at(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: cell for name, cell in row.items() if name != "known_at"} for row in rows]


def test_a_running_hub_gives_the_same(capsys: Capture, db: Path, tmp_path: Path) -> None:
    asked = (*WINDOW, "--tz", "Asia/Kathmandu", "--basis", "output")
    kinds = ("fleet-day", "hourly")
    free = [without_known_at(report(capsys, db, kind, *asked)[0]) for kind in kinds]
    with running(["serve", "--db", str(db)], tmp_path):
        owned = [without_known_at(report(capsys, db, kind, *asked)[0]) for kind in kinds]
        refused = wattmix(capsys, "report", "hourly", "--db", db, "--tz", "Madrid")
        outcome = wattmix(capsys, "report", "hourly", "--db", db, *WINDOW, "--out", tmp_path / "out")
    assert owned == free
    assert [len(rows) for rows in free] == [1, 2]
    assert refused.code == 2
    assert Path(outcome.out.strip()).parent == tmp_path / "out"
