"""A report goes into its folder whole, with a manifest that tells it, or not at all and in words."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import time
from pathlib import Path

import pytest

from app.errors import DeliveryError
from app.reports import delivery
from app.reports.delivery import deliver
from app.reports.report import Report, build_report
from app.reports.request import parse_request
from tests.reports.lines import NOW, Account, line

FILE = "daily_2026-02-01_2026-02-04.csv"
WORDS = {"kind": "fleet-day", "from": "2026-02-01", "to": "2026-02-04", "tz": "Europe/Madrid"}


def report() -> Report:
    return build_report(parse_request(WORDS, NOW), Account(), NOW)


def test_the_file_is_the_reports_text_and_the_manifest_tells_it(tmp_path: Path) -> None:
    made = report()
    delivered = deliver(made, tmp_path / "new" / "folder", "daily")
    content = delivered.file.read_bytes()
    assert (delivered.file.name, delivered.rows) == (FILE, 3)
    assert content == made.csv.encode()
    assert len(list(csv.DictReader(io.StringIO(content.decode())))) == 3
    manifest = json.loads((delivered.file.parent / f"{FILE}.manifest.json").read_text(encoding="utf-8"))
    assert manifest == {"file": FILE, "sha256": hashlib.sha256(content).hexdigest(), "name": "daily", **made.about()}
    assert manifest["sha256"] == delivered.sha256


def test_nothing_else_is_left_and_others_may_read_it(tmp_path: Path) -> None:
    previous = os.umask(0o022)
    delivered = deliver(report(), tmp_path, "daily")
    os.umask(previous)
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE, f"{FILE}.manifest.json"]
    assert delivered.file.stat().st_mode & 0o777 == 0o644


def test_the_same_window_replaces_its_file(tmp_path: Path) -> None:
    deliver(report(), tmp_path, "daily")
    changed = build_report(parse_request(WORDS, NOW), lambda periods, **_: [line()], NOW)
    deliver(changed, tmp_path, "daily")
    assert (tmp_path / FILE).read_text() == changed.csv
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("what", ["a file", "in a file"])
def test_a_folder_that_is_none_is_told(tmp_path: Path, what: str) -> None:
    (tmp_path / "x").write_text("mine")
    folder = tmp_path / "x" if what == "a file" else tmp_path / "x" / "y"
    with pytest.raises(DeliveryError, match=r"cannot be written: .*Name a folder that can be written") as refused:
        deliver(report(), folder, "daily")
    assert str(folder) in str(refused.value)
    assert (tmp_path / "x").read_text() == "mine"


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(delivery.Path, "open", refused)
    with pytest.raises(DeliveryError, match=r"daily_2026-02-01_2026-02-04\.csv: cannot be written: Permission denied"):
        deliver(report(), tmp_path, "daily")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", [1, 2])
def test_a_full_disk_leaves_the_last_report_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """The first file is synced, or the manifest: whichever fails, neither gets its name."""
    deliver(report(), tmp_path, "daily")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    calls = iter(range(1, 10))

    def full(descriptor: int) -> None:
        if next(calls) == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(delivery.os, "fsync", full)
    changed = build_report(parse_request(WORDS, NOW), lambda periods, **_: [line()], NOW)
    with pytest.raises(DeliveryError, match=r"No space left on device\. Name a folder .* or make room in it"):
        deliver(changed, tmp_path, "daily")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_share_that_cannot_sync_folders_still_gets_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def no_folders(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 3:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(delivery.os, "fsync", no_folders)
    assert deliver(report(), tmp_path, "daily").file.is_file()
    assert len(synced) == 3


def test_what_a_crash_left_is_cleared_an_hour_later_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in (".a.csv.1.wattmix.tmp", ".b.csv.2.wattmix.tmp", ".c.csv.tmp"))
    for path in (old, new, other):
        path.write_text("half")
        os.utime(path, (time.time() - 4000, time.time() - 4000))
    os.utime(new)
    deliver(report(), tmp_path, "daily")
    assert (old.exists(), new.exists(), other.exists()) == (False, True, True)
