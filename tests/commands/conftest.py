"""A store file with the study's runs, for commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store.benchmarks import add_runs
from app.store.database import Store
from collectors.benchmark.run import BenchmarkRun


@pytest.fixture
def study_db(tmp_path: Path, study_runs: list[BenchmarkRun]) -> Path:
    store = Store.open(tmp_path / "study.duckdb")
    add_runs(store, study_runs)
    store.close()
    return store.path
