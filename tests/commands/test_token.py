"""`wattmix token create|list|revoke`: the token on stdout once, and nowhere after that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from app.store.database import Store
from app.store.tokens import Grant, active_grants, digest
from collectors.samples import encode
from tests.batches import batch
from tests.commands.invoke import wattmix
from tests.hub_process import running

Capture = pytest.CaptureFixture[str]


@contextmanager
def opened(db: Path) -> Iterator[Store]:
    store = Store.open(db)
    yield store
    store.close()


def test_create_prints_the_token_alone_on_stdout(capsys: Capture, tmp_path: Path) -> None:
    db = tmp_path / "s.duckdb"
    outcome = wattmix(capsys, "token", "create", "rack 7", "--node", "node-7", "--db", db)
    assert outcome.code == 0
    assert outcome.err == "It is shown once. Put it into a file that only the agent can read.\n"
    with opened(db) as store:
        assert active_grants(store) == {digest(outcome.out.strip()): Grant("node", "node-7")}
    assert outcome.out.count("\n") == 1


def test_list_shows_all_but_the_secrets(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    db = tmp_path / "s.duckdb"
    made = wattmix(capsys, "token", "create", "[bold]rack[/bold]", "--db", db).out.strip()
    reader = wattmix(capsys, "token", "create", "grafana", "--scope", "read", "--db", db).out.strip()
    wattmix(capsys, "token", "revoke", made.split("_")[1], "--db", db)
    outcome = wattmix(capsys, "token", "list", "--db", db)
    assert outcome.code == 0
    lines = [[cell.strip() for cell in line.strip("│").split("│")] for line in outcome.out.splitlines() if "│" in line]
    assert [line[:4] for line in lines] == [
        [reader.split("_")[1], "grafana", "read", "any"],
        [made.split("_")[1], "[bold]rack[/bold]", "node", "any"],
    ]
    assert [bool(line[5]) for line in lines] == [False, True]
    assert not any(token.split("_", 2)[2] in outcome.out for token in (made, reader))


def test_revoking_an_unknown_token_is_told(capsys: Capture, tmp_path: Path) -> None:
    outcome = wattmix(capsys, "token", "revoke", "none", "--db", tmp_path / "s.duckdb")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: no token 'none'; `wattmix token list` shows them\n"


def test_an_unknown_scope_is_told(capsys: Capture, tmp_path: Path) -> None:
    outcome = wattmix(capsys, "token", "create", "a", "--scope", "admin", "--db", tmp_path / "s.duckdb")
    assert outcome.code == 2
    assert "node" in outcome.err and "read" in outcome.err


def test_with_a_hub_a_token_works_and_ends_at_once(capsys: Capture, tmp_path: Path) -> None:
    """The commands go through the hub that owns the store (law 7); it takes them over without a restart."""
    db = tmp_path / "s.duckdb"
    with running(["serve", "--db", str(db)], tmp_path) as hub:
        token = wattmix(capsys, "token", "create", "rack", "--db", db).out.strip()

        def send() -> int:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            url = f"{hub.address}/api/v1/ingest"
            return requests.post(url, data=encode(batch(1)), headers=headers, timeout=20).status_code

        assert send() == 200
        assert wattmix(capsys, "token", "revoke", token.split("_")[1], "--db", db).code == 0
        assert send() == 401
        listed = wattmix(capsys, "token", "list", "--db", db).out
        assert token.split("_")[1] in listed and token not in listed
