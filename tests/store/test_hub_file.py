"""`<db>.hub.json` is a hint: it may be missing, torn or stale, and only its writer removes it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.store.hub_file import HubFile, hub_file_path, read_hub_file, remove_hub_file, write_hub_file


def test_what_is_written_reads_back_and_leaves_nothing_else(tmp_path: Path) -> None:
    db = tmp_path / "wattmix.duckdb"
    for pid in (1, 2):
        write_hub_file(db, HubFile(pid, "http://127.0.0.1:8501"))
        assert read_hub_file(db) == HubFile(pid, "http://127.0.0.1:8501")
    assert [path.name for path in tmp_path.iterdir()] == ["wattmix.duckdb.hub.json"]
    assert json.loads(hub_file_path(db).read_text()) == {"pid": 2, "address": "http://127.0.0.1:8501"}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"3", b"null", b"{}", b'{"pid": 1}', b"\xff\xfe",
        b'{"pid": "x", "address": ""}', b'{"pid": null, "address": 1}',
    ],
)  # fmt: skip
def test_a_hub_file_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    db = tmp_path / "s.duckdb"
    assert read_hub_file(db) is None
    hub_file_path(db).write_bytes(content)
    assert read_hub_file(db) is None
    remove_hub_file(db)


def test_a_hub_removes_its_own_file_only(tmp_path: Path) -> None:
    db = tmp_path / "s.duckdb"
    write_hub_file(db, HubFile(os.getpid() + 1, "http://127.0.0.1:1"))
    remove_hub_file(db)
    assert hub_file_path(db).exists()
    write_hub_file(db, HubFile(os.getpid(), "http://127.0.0.1:1"))
    remove_hub_file(db)
    remove_hub_file(db)
    assert not hub_file_path(db).exists()
