"""`wattmix serve` and `wattmix demo`: what they refuse before they serve, and what a demo may remove."""

from __future__ import annotations

import socket
from pathlib import Path

import duckdb
import pytest

from app.commands.serving import clear_demo_store
from app.errors import HubError
from app.hub.server import listen
from app.store.benchmarks import read_runs
from app.store.database import Store
from app.store.hub_file import hub_file_path
from tests.commands.invoke import wattmix

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "hub.example", "127.0.0.1.example"])
@pytest.mark.parametrize("given", ["option", "config"])
def test_a_wide_address_is_refused_without_insecure(capsys: Capture, tmp_path: Path, host: str, given: str) -> None:
    (tmp_path / "w.toml").write_text(f"[hub]\nhost = '{host}'\n")
    arguments = ["--host", host] if given == "option" else ["--config", tmp_path / "w.toml"]
    outcome = wattmix(capsys, "serve", "--db", tmp_path / "s.duckdb", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {host} can be reached from other machines")
    assert "--insecure" in outcome.err
    assert not hub_file_path(tmp_path / "s.duckdb").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_loopback_address_is_taken(host: str) -> None:
    with listen(host, 0, insecure=False) as listener:
        assert listener.getsockname()[0].startswith("127.")


def test_a_port_that_is_taken_is_told(capsys: Capture, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        outcome = wattmix(capsys, "serve", "--db", tmp_path / "s.duckdb", "--port", port)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"error: cannot listen on 127.0.0.1:{port}: Address already in use. Choose another with --port.\n"
    )
    assert not hub_file_path(tmp_path / "s.duckdb").exists()


def test_an_address_of_no_interface_is_told() -> None:
    with pytest.raises(HubError, match=r"cannot listen on 192\.0\.2\.7:0: "):
        listen("192.0.2.7", 0, insecure=True)


def test_a_host_name_that_does_not_resolve_is_told() -> None:
    with pytest.raises(HubError, match=r"cannot listen on nowhere\.invalid:0: "):
        listen("nowhere.invalid", 0, insecure=True)


def test_a_demo_removes_its_own_store(tmp_path: Path) -> None:
    path = tmp_path / "demo.duckdb"
    clear_demo_store(path)
    Store.open(path, purpose="demo").close()
    path.with_name("demo.duckdb.wal").write_bytes(b"")
    clear_demo_store(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["option", "environment"])
def test_a_demo_leaves_a_user_s_store_alone(
    capsys: Capture, study_db: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTMIX_DB", str(study_db) if given == "environment" else "")
    arguments = ["--db", study_db] if given == "option" else []
    outcome = wattmix(capsys, "demo", "--no-browser", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"error: {study_db} is not a demo store and is left alone. The demo makes its own: name another with --db.\n"
    )
    store = Store.open(study_db)
    assert (store.purpose, len(read_runs(store))) == ("user", 130)
    store.close()


def test_a_demo_leaves_a_file_that_is_no_store_alone(capsys: Capture, tmp_path: Path) -> None:
    path, content = tmp_path / "letters.txt", b"letters to a friend\n" * 100
    path.write_bytes(content)
    outcome = wattmix(capsys, "demo", "--no-browser", "--db", path)
    assert outcome.code == 2
    assert f"{path} " in outcome.err
    assert path.read_bytes() == content


def test_a_demo_leaves_a_duckdb_file_of_somebody_else_alone(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "sales.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE sales AS SELECT 7 AS x")
    assert wattmix(capsys, "demo", "--no-browser", "--db", path).code == 2
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT x FROM sales").fetchall() == [(7,)]


def test_a_demo_leaves_a_folder_alone(capsys: Capture, tmp_path: Path) -> None:
    outcome = wattmix(capsys, "demo", "--no-browser", "--db", tmp_path)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: the demo makes its own store and leaves {tmp_path} alone: ")
