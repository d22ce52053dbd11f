"""Real hub processes: they start, answer, own the store, stop, die and come back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from app.backend.over_http import HubBackend
from app.errors import HubError, WattmixError
from app.reference.tables import data_folder
from app.store.benchmarks import add_runs, read_runs
from app.store.database import Store
from app.store.hub_file import HubFile, hub_file_path, read_hub_file
from collectors.benchmark import facts_csv
from collectors.benchmark.run import BenchmarkRun
from tests.collectors.benchmark.results import result, without, write_result
from tests.collectors.benchmark.runs import RUN
from tests.commands.invoke import wattmix
from tests.hub_process import HubProcess, free_port, running

Capture = pytest.CaptureFixture[str]

STOP_S = 10.0


def study_store(path: Path) -> Path:
    store = Store.open(path)
    add_runs(store, list(facts_csv.read((data_folder() / "aibc2025_runs.csv").read_text(encoding="utf-8"))))
    store.close()
    return path


def runs_in(path: Path) -> list[BenchmarkRun]:
    store = Store.open(path)
    runs = read_runs(store)
    store.close()
    return runs


def stop(hub: HubProcess, number: int = signal.SIGTERM) -> tuple[int, float]:
    """(exit code, seconds it took to stop)."""
    began = time.monotonic()
    os.kill(hub.process.pid, number)
    return hub.process.wait(30), time.monotonic() - began


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HubProcess, Path, Path]]:
    """(a hub, the store it owns, a free store with the same runs), for tests that only read."""
    folder = tmp_path_factory.mktemp("hub")
    free = study_store(folder / "free.duckdb")
    owned = Path(shutil.copy(free, folder / "owned.duckdb"))
    with running(["serve", "--db", str(owned)], folder) as hub:
        yield hub, owned, free


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_hub_starts_answers_and_ends_with_0_on_a_signal(tmp_path: Path, number: int) -> None:
    db = tmp_path / "s.duckdb"
    with running(["serve", "--db", str(db)], tmp_path) as hub:
        health = requests.get(f"{hub.address}/healthz", timeout=10).json()
        assert (health["status"], health["pid"], health["demo"]) == ("ok", hub.process.pid, False)
        assert read_hub_file(db) == HubFile(hub.process.pid, hub.address)
        page = requests.get(f"{hub.address}/", timeout=10)
        assert page.status_code == 200
        assert "<html" in page.text
        code, seconds = stop(hub, number)
    assert code == 0
    assert seconds < STOP_S
    assert not hub_file_path(db).exists()
    Store.open(db).close()


def test_a_client_that_stalls_does_not_keep_a_hub_from_stopping(tmp_path: Path) -> None:
    db = tmp_path / "s.duckdb"
    with running(["serve", "--db", str(db)], tmp_path) as hub:
        host, _, port = hub.address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as stalled, requests.Session() as idle:
            stalled.sendall(
                b"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nContent-Length: 9999\r\n\r\nmodel,"
            )
            assert idle.get(f"{hub.address}/healthz", timeout=10).ok
            code, seconds = stop(hub)
    assert code == 0
    assert seconds < STOP_S
    assert runs_in(db) == []


def test_a_hub_answers_the_api_beside_the_dashboard(shared: tuple[HubProcess, Path, Path]) -> None:
    hub, _, _ = shared
    assert len(requests.get(f"{hub.address}/api/v1/runs", timeout=30).json()["runs"]) == 130
    missing = requests.get(f"{hub.address}/api/v1/nothing", timeout=10)
    assert (missing.status_code, list(missing.json())) == (404, ["error"])
    for page in ("/", "/split", "/benchmarks"):
        assert requests.get(f"{hub.address}{page}", timeout=10).status_code == 200


def test_a_hub_listens_on_the_loopback_address_only(shared: tuple[HubProcess, Path, Path]) -> None:
    hub, _, _ = shared
    port = int(hub.address.rpartition(":")[2])
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port), timeout=5):
        pytest.fail("the hub answers on another address than 127.0.0.1")


def test_a_second_hub_on_the_same_store_ends_with_2_and_names_the_first(shared: tuple[HubProcess, Path, Path]) -> None:
    hub, owned, _ = shared
    command = [sys.executable, "-m", "app", "serve", "--db", str(owned), "--port", str(free_port())]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == (
        f"error: {owned} is served by the hub with pid {hub.process.pid} at {hub.address}. Use that one, or stop it.\n"
    )
    assert requests.get(f"{hub.address}/healthz", timeout=10).ok
    assert read_hub_file(owned) == HubFile(hub.process.pid, hub.address)


# Law 7: a command answers the same whether the store is free or a hub owns it


DEMAND = data_folder() / "demand.example.toml"


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs"],
        ["runs", "--format", "csv"],
        ["runs", "--format", "json"],
        ["runs", "--format", "json", "--assume", "study", "--model", "phi-4"],
        ["runs", "--format", "csv", "--gpu", "RTX 4090"],
        ["runs", "--model", "gpt-5"],
        ["runs", "--gpu", "no such card"],
        ["split"],
        ["split", "--format", "json"],
        ["split", "--format", "json", "--demand", "infeasible.toml"],
        ["split", "--demand", "infeasible.toml"],
        ["split", "--demand", "zone.toml"],
        ["split", "--demand", "none.toml"],
    ],
    ids=" ".join,
)
def test_a_command_answers_the_same_when_a_hub_owns_the_store(
    shared: tuple[HubProcess, Path, Path], capsys: Capture, tmp_path: Path, arguments: list[str]
) -> None:
    _, owned, free = shared
    example = DEMAND.read_text(encoding="utf-8")
    (tmp_path / "infeasible.toml").write_text(example.replace("max_ms = 60", "max_ms = 0.5"))
    (tmp_path / "zone.toml").write_text(example.replace("EU27", "EU28"))
    of_free = wattmix(capsys, *arguments, "--db", free)
    assert wattmix(capsys, *arguments, "--db", owned) == of_free
    assert of_free.code == (2 if {"gpt-5", "no such card", "zone.toml", "none.toml"} & set(arguments) else 0)


def test_an_import_does_the_same_when_a_hub_owns_the_store(capsys: Capture, tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_result(results / "a.json", result(), result(request_rate="inf"))
    write_result(results / 'ü, "quoted".json', result(mean_e2el_ms=3.5, max_concurrency=7))
    write_result(results / "broken.json", without("duration"))
    free, owned = tmp_path / "free.duckdb", tmp_path / "owned.duckdb"
    of_free = [wattmix(capsys, "import", results, "--db", free) for _ in range(2)]
    assert [outcome.code for outcome in of_free] == [2, 2]
    assert of_free[0].out.startswith("3 runs imported, 0 already there; 2 of 3 files read.")
    with running(["serve", "--db", str(owned)], tmp_path) as hub:
        of_hub = [wattmix(capsys, "import", results, "--db", owned) for _ in range(2)]
        shown = wattmix(capsys, "runs", "--format", "json", "--db", owned)
        assert stop(hub)[0] == 0
    for one, other in zip(of_free, of_hub, strict=True):
        assert (other.code, other.err) == (one.code, one.err)
        assert other.out.replace("owned", "free") == one.out
    assert shown == wattmix(capsys, "runs", "--format", "json", "--db", free)
    assert runs_in(owned) == runs_in(free)


def test_a_proxy_of_the_environment_does_not_stand_between_a_command_and_its_hub(
    shared: tuple[HubProcess, Path, Path], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, owned, _ = shared
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert wattmix(capsys, "runs", "--format", "csv", "--db", owned).code == 0


def test_what_the_hub_refuses_is_told_with_its_words_and_status(shared: tuple[HubProcess, Path, Path]) -> None:
    hub, _, _ = shared
    with pytest.raises(WattmixError, match="no run of model 'gpt-5'; the store has: ") as refused:
        HubBackend(hub.address).run_rows(model="gpt-5")
    assert (refused.value.http_status, refused.value.exit_code) == (404, 2)


def test_a_hub_that_does_not_answer_is_told() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(HubError, match=rf"the hub at {address} did not answer"):
        HubBackend(address).run_rows()


# A hub that dies


def test_a_killed_hub_blocks_neither_the_next_hub_nor_a_command(capsys: Capture, tmp_path: Path) -> None:
    db = tmp_path / "s.duckdb"
    with running(["serve", "--db", str(db)], tmp_path) as first:
        added = HubBackend(first.address).add_runs([RUN])
        assert (added.new, added.known) == (1, 0)
        assert stop(first, signal.SIGKILL)[0] == -signal.SIGKILL
    assert read_hub_file(db) == HubFile(first.process.pid, first.address)
    shown = json.loads(wattmix(capsys, "runs", "--format", "json", "--db", db).out)["runs"]
    assert [row["run_id"] for row in shown] == [RUN.run_id]
    with running(["serve", "--db", str(db)], tmp_path) as second:
        assert read_hub_file(db) == HubFile(second.process.pid, second.address)
        assert len(requests.get(f"{second.address}/api/v1/runs", timeout=10).json()["runs"]) == 1
        assert stop(second)[0] == 0
    assert not hub_file_path(db).exists()
    assert runs_in(db) == [RUN]


# The demo


def test_a_demo_serves_the_study_and_makes_its_store_anew(capsys: Capture, tmp_path: Path) -> None:
    db = tmp_path / "demo.duckdb"
    for _ in range(2):
        with running(["demo", "--no-browser", "--no-simulation", "--db", str(db)], tmp_path) as hub:
            assert requests.get(f"{hub.address}/healthz", timeout=10).json()["demo"] is True
            assert len(requests.get(f"{hub.address}/api/v1/runs", timeout=30).json()["runs"]) == 130
            assert requests.get(f"{hub.address}/api/v1/study", timeout=30).status_code == 200
            assert HubBackend(hub.address).add_runs([RUN]).new == 1
            another = wattmix(capsys, "demo", "--no-browser", "--db", db)
            assert another.code == 2
            assert f"pid {hub.process.pid}" in another.err
            assert stop(hub)[0] == 0
        assert len(runs_in(db)) == 131
