"""Accounts over HTTP are those of the store: a hub's backend gives what the store in this process does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.answers.latency import Wanted
from app.answers.query import AccountQuery
from app.backend.local import LocalBackend
from app.backend.over_http import HubBackend
from app.backend.protocol import Backend
from app.config import Config
from app.store.database import Store
from tests.answers.accounting import asked, minutes_of, served, take
from tests.batches import batch
from tests.hub_process import running

CONFIG = Config()
ASKED: dict[str, Callable[[Backend, AccountQuery], dict[str, Any]]] = {
    "summary": lambda backend, query: backend.summary(query),
    "series": lambda backend, query: backend.series(query),
    "latency": lambda backend, query: backend.latency(query),
    "one latency against a limit": lambda backend, query: backend.latency(query, Wanted(("ttft",), 0.1 + 0.2)),
    "carbon": lambda backend, query: backend.carbon(query),
    "power_load": lambda backend, query: backend.power_load(query),
}


def without_clock(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in ("generated_at", "known_at")}


def test_a_hub_backend_answers_as_the_store_does(tmp_path: Path) -> None:
    """Design law 7."""
    query = asked(by="fleet_model", step="15min", tz="Asia/Kathmandu", basis="output", boundary="site")
    store = Store.open(tmp_path / "s.duckdb")
    take(store, batch(1, rows=minutes_of(300), engine_rows=served(ttft_buckets=[1, 2, 0, 0])), config=CONFIG)
    local = {name: ask(LocalBackend(store, CONFIG), query) for name, ask in ASKED.items()}
    store.close()
    with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
        for name, ask in ASKED.items():
            assert without_clock(ask(HubBackend(hub.address), query)) == without_clock(local[name]), name
