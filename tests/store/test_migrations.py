"""A store of an older schema is brought to today's and keeps what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store import schema
from app.store.benchmarks import add_runs, read_runs
from app.store.database import Store
from app.store.migrations import MIGRATIONS
from collectors.benchmark.run import BenchmarkRun
from tests.batches import T0, batch, count, put, writing


@pytest.fixture
def schema_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study_runs: list[BenchmarkRun]) -> Path:
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", MIGRATIONS[:1])
        patched.setattr(schema, "SCHEMA_VERSION", 1)
        store = Store.open(tmp_path / "old.duckdb", purpose="demo")
        add_runs(store, study_runs)
        assert store.query("SELECT max(version) AS v FROM schema_version")["v"][0] == 1
        assert store.query("FROM duckdb_tables() WHERE table_name = 'gpu_sample'").is_empty()
        store.close()
    return tmp_path / "old.duckdb"


def test_schema_1_becomes_todays_and_keeps_the_benchmark_runs(schema_1: Path, study_runs: list[BenchmarkRun]) -> None:
    for _ in range(2):
        store = Store.open(schema_1)
        versions = store.query("SELECT version FROM schema_version ORDER BY version")["version"].to_list()
        assert versions == list(range(1, len(MIGRATIONS) + 1))
        assert store.purpose == "demo"
        kept = read_runs(store)
        assert len(kept) == 130
        assert {run.run_id: run for run in kept} == {run.run_id: run for run in study_runs}
        store.close()


def test_a_migrated_store_takes_samples(schema_1: Path) -> None:
    store = Store.open(schema_1)
    with writing(store) as taking:
        put(taking, batch(1))
    assert (count(store, "gpu_sample"), count(store, "benchmark_run")) == (10, 130)
    store.close()


def test_schema_2_with_nodes_of_its_own_takes_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", MIGRATIONS[:2])
        patched.setattr(schema, "SCHEMA_VERSION", 2)
        store = Store.open(tmp_path / "old.duckdb")
        with store.transaction() as connection:
            connection.execute("INSERT INTO node VALUES (1, 'node-7', now())")
        store.close()
    store = Store.open(tmp_path / "old.duckdb")
    with writing(store) as taking:
        put(taking, batch(1, engine_rows=[{"t_us": T0 + 5_000_000, "generated_tokens": 3}]))
    assert store.query("SELECT node_id, name, simulated FROM node").rows() == [(1, "node-7", False)]
    assert store.query("SELECT node_id, engine_id FROM engine").rows() == [(1, 1)]
    store.close()
