"""`wattmix facts import|list|template`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.facts.cells import COLUMNS
from tests.commands.invoke import wattmix
from tests.hub_process import running

Capture = pytest.CaptureFixture[str]
PRICES = "kind,subject,valid_from,source,plan,per_gpu_hour\nprice,h100,2026-03-01,contract 17,rented,2.5\n"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "s.duckdb"


def written(folder: Path, text: str, name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_template_is_imported_as_it_is(capsys: Capture, tmp_path: Path, db: Path) -> None:
    template = wattmix(capsys, "facts", "template")
    assert template.out.splitlines()[0].split(",") == list(COLUMNS)
    outcome = wattmix(capsys, "facts", "import", written(tmp_path, template.out), "--db", db)
    assert (outcome.code, outcome.out) == (0, "15 facts imported, 0 already known.\n")
    assert "note: node 'rack1-node7' was not seen yet: its fleet counts once it is" in outcome.err
    again = wattmix(capsys, "facts", "import", written(tmp_path, template.out), "--db", db)
    assert again.out == "0 facts imported, 15 already known.\n"


def test_what_was_imported_is_listed(
    capsys: Capture, tmp_path: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wattmix(capsys, "facts", "import", written(tmp_path, PRICES), "--db", db)
    shown = wattmix(capsys, "facts", "list", "--db", db).out
    for words in ("price", "h100", "2026-03-01 00:00", "rented, 2.5 USD per GPU-hour", "in force", "contract 17"):
        assert words in shown
    [row] = json.loads(wattmix(capsys, "facts", "list", "--format", "json", "--db", db).out)["facts"]
    assert (row["kind"], row["subject"], row["value"]["per_gpu_hour"]) == ("price", "h100", 2.5)
    text = wattmix(capsys, "facts", "list", "--format", "csv", "--db", db).out
    outcome = wattmix(capsys, "facts", "import", written(tmp_path, text), "--db", tmp_path / "other.duckdb")
    assert outcome.out == "1 facts imported, 0 already known.\n"


def test_the_list_is_of_a_kind_a_subject_a_moment_and_a_knowledge(capsys: Capture, tmp_path: Path, db: Path) -> None:
    wattmix(capsys, "facts", "import", written(tmp_path, PRICES), "--db", db)

    def listed(*options: str) -> int:
        answer = wattmix(capsys, "facts", "list", "--format", "json", "--db", db, *options)
        return len(json.loads(answer.out)["facts"])

    assert listed("--kind", "price", "--subject", "h100") == 1
    assert listed("--kind", "pue") == listed("--subject", "other") == 0
    assert listed("--at", "2026-02-28T23:59Z") == 0
    assert listed("--at", "2026-03-01") == 1
    assert listed("--known-at", "2026-03-01") == 0  # it was imported now


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kind", "prise"], "no facts of kind 'prise'; there are: membership, price,"),
        (["--at", "noon"], "--at: given 'noon'; accepted: a date (midnight in UTC) or a moment with its time zone"),
        (["--known-at", "2026-03-01T12:00"], "--known-at: given '2026-03-01T12:00'; accepted: a date"),
    ],
)
def test_a_mistake_in_an_option_is_told(capsys: Capture, db: Path, options: list[str], words: str) -> None:
    outcome = wattmix(capsys, "facts", "list", "--db", db, *options)
    assert outcome.code == 2
    assert words in outcome.err


def test_a_file_with_mistakes_is_told_and_leaves_nothing(capsys: Capture, tmp_path: Path, db: Path) -> None:
    file = written(tmp_path, PRICES + "price,h100,2026-04-01,,rented,x\n")
    outcome = wattmix(capsys, "facts", "import", file, "--db", db)
    assert outcome.code == 2
    assert f"{file}: line 3, column `source`: given ''" in outcome.err
    assert f"{file}: line 3, column `per_gpu_hour`: given 'x'; accepted: a number" in outcome.err
    assert json.loads(wattmix(capsys, "facts", "list", "--format", "json", "--db", db).out)["facts"] == []


def test_a_file_that_cannot_be_read_is_told(capsys: Capture, tmp_path: Path, db: Path) -> None:
    assert "no.csv: cannot be read: No such file" in wattmix(capsys, "facts", "import", "no.csv", "--db", db).err
    (tmp_path / "latin.csv").write_bytes("kind\né".encode("latin-1"))
    outcome = wattmix(capsys, "facts", "import", tmp_path / "latin.csv", "--db", db)
    assert (outcome.code, outcome.err.strip()) == (2, f"error: {tmp_path / 'latin.csv'}: not UTF-8 text")


def test_a_command_takes_over_the_settings(capsys: Capture, tmp_path: Path, db: Path) -> None:
    settings = "[[fleet]]\nname = 'h100'\ngpu = 'H100 PCIe'\nprice = {plan = 'rented', per_gpu_hour = 2.0}\n"
    config = written(tmp_path, settings, "w.toml")
    for _ in range(2):
        answer = wattmix(capsys, "facts", "list", "--format", "json", "--kind", "price", "--db", db, "--config", config)
        [row] = json.loads(answer.out)["facts"]
        assert (row["valid_from"], row["source"]) == ("1970-01-01T00:00:00+00:00", "wattmix.toml")


def test_with_a_hub_the_same_is_done_by_it(capsys: Capture, tmp_path: Path, db: Path) -> None:
    with running(["serve", "--db", str(db)], tmp_path):
        file = written(tmp_path, PRICES)
        assert wattmix(capsys, "facts", "import", file, "--db", db).out == "1 facts imported, 0 already known.\n"
        bad = written(tmp_path, PRICES + "price,h100,2026-04-01,,rented,x\n", "bad.csv")
        assert f"{bad}: line 3, column `source`" in wattmix(capsys, "facts", "import", bad, "--db", db).err
        by_hub = json.loads(wattmix(capsys, "facts", "list", "--format", "json", "--at", "2026-03-02", "--db", db).out)
        text_by_hub = wattmix(capsys, "facts", "list", "--format", "csv", "--db", db).out
        unknown = wattmix(capsys, "facts", "list", "--kind", "prise", "--db", db)
        assert unknown.code == 2 and "no facts of kind 'prise'" in unknown.err
    by_itself = json.loads(wattmix(capsys, "facts", "list", "--format", "json", "--at", "2026-03-02", "--db", db).out)
    assert by_hub["facts"] == by_itself["facts"]
    assert text_by_hub == wattmix(capsys, "facts", "list", "--format", "csv", "--db", db).out
