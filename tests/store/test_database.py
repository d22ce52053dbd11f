"""The DuckDB file: one owner, refusals in words, and all of a write or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pytest

from app.backend.opening import open_backend
from app.config import Config
from app.errors import StoreBusy, StoreError
from app.store.database import Purpose, Store
from app.store.hub_file import HubFile, hub_file_path, write_hub_file

_HOLD = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


@contextmanager
def held_by_another_process(db: Path) -> Iterator[int]:
    """The pid of a process that has the file open and is no hub."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin
    assert holder.stdout
    try:
        assert holder.stdout.readline() == "held\n"
        yield holder.pid
    finally:
        holder.communicate()


def rows(store: Store) -> list[tuple[object, ...]]:
    return store.query("SELECT purpose FROM store_purpose ORDER BY purpose").rows()


def test_a_store_is_made_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folders" / "store.duckdb"
    Store.open(path).close()
    assert path.is_file()


@pytest.mark.parametrize("purpose", ["user", "demo"])
def test_the_purpose_is_set_once_and_for_all(tmp_path: Path, purpose: Purpose) -> None:
    for asked in (purpose, "demo", "user"):
        store = Store.open(tmp_path / "s.duckdb", purpose=asked)
        assert store.purpose == purpose
        store.close()


def test_a_failed_statement_takes_the_whole_block_with_it(store: Store) -> None:
    """DuckDB's COMMIT after an error answers as if all were well, and keeps nothing."""
    with pytest.raises(duckdb.ConstraintException), store.transaction() as connection:
        connection.execute("INSERT INTO store_purpose VALUES ('kept?')")
        connection.execute("INSERT INTO store_purpose VALUES (NULL)")
    assert rows(store) == [("user",)]


def test_an_error_that_the_block_swallows_is_never_taken_for_a_commit(store: Store) -> None:
    with pytest.raises(duckdb.Error), store.transaction() as connection:
        connection.execute("INSERT INTO store_purpose VALUES ('lost')")
        with suppress(duckdb.Error):
            connection.execute("INSERT INTO no_such_table VALUES (1)")
    assert rows(store) == [("user",)]


def test_any_exception_in_the_block_rolls_back_and_goes_on(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.transaction() as connection:
        connection.execute("INSERT INTO store_purpose VALUES ('lost')")
        raise KeyboardInterrupt
    assert rows(store) == [("user",)]


def test_after_a_failed_block_the_next_one_is_kept(store: Store, tmp_path: Path) -> None:
    with pytest.raises(duckdb.Error), store.transaction() as connection:
        connection.execute("not SQL")
    with store.transaction() as connection:
        connection.execute("INSERT INTO store_purpose VALUES ('kept')")
    assert rows(store) == [("kept",), ("user",)]
    store.close()
    again = Store.open(store.path)
    assert rows(again) == [("kept",), ("user",)]
    again.close()


def test_readers_see_a_write_only_when_it_is_whole(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute("INSERT INTO store_purpose VALUES ('half')")
        seen: list[object] = []
        reader = threading.Thread(target=lambda: seen.extend(rows(store)))
        reader.start()
        reader.join(30)
        assert seen == [("user",)]
    assert rows(store) == [("half",), ("user",)]


def test_writers_take_turns(store: Store) -> None:
    def write(number: int) -> None:
        with store.transaction() as connection:
            connection.execute("INSERT INTO store_purpose VALUES ($1)", [f"{number:02}"])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert rows(store) == [(f"{number:02}",) for number in range(20)] + [("user",)]


def test_a_store_that_another_process_holds_names_its_pid(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    Store.open(path).close()
    with held_by_another_process(path) as pid, pytest.raises(StoreBusy) as refused:
        Store.open(path)
    assert str(refused.value) == f"{path} is in use by the process with pid {pid}. Wait for it, or stop it."
    Store.open(path).close()


def test_a_stale_hub_file_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    """The hub file of a killed hub says nothing about who holds the store now."""
    path = tmp_path / "s.duckdb"
    Store.open(path).close()
    hub_file_path(path).write_text(json.dumps({"pid": 999_999_999, "address": "http://127.0.0.1:9"}))
    with held_by_another_process(path) as pid:
        with pytest.raises(StoreBusy, match=rf"pid {pid}\. Wait"):
            Store.open(path)
        with pytest.raises(StoreBusy, match=rf"pid {pid}\. Wait"), open_backend(path, Config()):
            pytest.fail("a backend over a store that no hub serves")


def test_a_stale_hub_file_does_not_keep_a_free_store_closed(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    write_hub_file(path, HubFile(os.getpid() + 1, "http://127.0.0.1:9"))
    with open_backend(path, Config()) as backend:
        assert backend.run_rows(model=None, gpu=None, assume="corrected") == []


def test_a_holder_that_is_the_hub_is_named_with_its_address(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    Store.open(path).close()
    with held_by_another_process(path) as pid:
        write_hub_file(path, HubFile(pid, "http://127.0.0.1:8501"))
        with pytest.raises(StoreBusy) as refused:
            Store.open(path)
    assert str(refused.value) == (
        f"{path} is served by the hub with pid {pid} at http://127.0.0.1:8501. Use that one, or stop it."
    )


@pytest.mark.parametrize("folder", ["plain", "blocks of locks"])
@pytest.mark.parametrize("content", [b"hello" * 1000, b"%PDF-1.7"])
def test_a_file_that_is_no_duckdb_file_is_refused_and_left_alone(tmp_path: Path, folder: str, content: bytes) -> None:
    path = tmp_path / folder / "s.duckdb"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError) as refused:
        Store.open(path)
    assert str(refused.value) == f"{path} is not a DuckDB file. Name another file with --db."
    assert type(refused.value) is StoreError
    assert path.read_bytes() == content


def test_a_folder_is_refused_as_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="DuckDB cannot open it"):
        Store.open(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/s\.duckdb: its folder cannot be made: .* Name another with --db\."):
        Store.open(tmp_path / "file" / "s.duckdb")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    folder = Path("/proc")  # where not even root may make a file
    if os.geteuid() != 0:
        folder = tmp_path / "read-only"
        folder.mkdir(mode=0o500)
    if not folder.is_dir():
        pytest.skip("no folder here that root cannot write")
    with pytest.raises(StoreError, match=r"store\.duckdb: DuckDB cannot open it: "):
        Store.open(folder / "store.duckdb")


def test_a_file_that_a_crash_left_empty_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    path.touch()
    Store.open(path).close()
    assert path.stat().st_size > 0
