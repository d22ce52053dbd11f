"""Shared fixtures: the study's runs, a store with them, and the switch that turns "not installed" into a failure."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from app.backend.local import LocalBackend
from app.config import Config
from app.reference.tables import data_folder
from app.store.benchmarks import add_runs
from app.store.database import Store
from collectors.benchmark import facts_csv
from collectors.benchmark.run import BenchmarkRun
from tests.serving import serving

# CI's machines are slow and shared: no example fails for the time it takes, and each run there tries the same ones.
settings.register_profile("wattmix", deadline=None, derandomize=os.environ.get("WATTMIX_REQUIRE_ALL") == "1")
settings.load_profile("wattmix")

ROOT = Path(__file__).resolve().parent.parent
RAW_RUNS = ROOT.parent / "shared" / "benchmarks" / "aibc2025" / "raw"


# Every key, password and token that a test plants has this in it, and no test may end with it in what was printed.
PLANTED = re.compile("planted", re.IGNORECASE)


# Folders whose tests wait for processes and browsers: begun first, so that no worker is left with them at the end.
WAITING = ("e2e", "exactly_once", "agent_to_hub", "simulator", "invariants", "queueing", "hub", "commands")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits most first; otherwise in the order that chance gave."""
    folders = {name: place for place, name in enumerate(WAITING)}
    items.sort(key=lambda item: folders.get(item.path.relative_to(ROOT / "tests").parts[0], len(WAITING)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test whose stdout, stderr or log (every level, child processes too) holds a planted key fails as it ends."""
    report = yield
    told = [title for title, text in report.sections if call.when == "teardown" and PLANTED.search(text)]
    if told and report.outcome == "passed":
        report.outcome, report.longrepr = "failed", f"{item.nodeid}: a planted key is in {', '.join(told)}"
    return report


def need(present: bool, what: str, install: str) -> None:
    """Skip a test whose part is not installed; with WATTMIX_REQUIRE_ALL=1 (CI) fail instead."""
    if present:
        return
    message = f"{what} is not installed; install it with: {install}"
    if os.environ.get("WATTMIX_REQUIRE_ALL") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the user's settings or working folder."""
    for name in ("WATTMIX_DB", "WATTMIX_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def study_runs() -> list[BenchmarkRun]:
    """The 130 runs of the study, from the CSV that ships."""
    return list(facts_csv.read((data_folder() / "aibc2025_runs.csv").read_text(encoding="utf-8")))


@pytest.fixture(scope="session")
def raw_folder() -> Path:
    """The study's raw JSON files; they do not ship, so tests of them have a twin that needs none."""
    if not RAW_RUNS.is_dir():
        pytest.skip("the study's raw files are not beside this checkout")
    return RAW_RUNS


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty store: a copy of it opens in half the time that making one takes."""
    path = tmp_path_factory.mktemp("empty") / "store.duckdb"
    Store.open(path).close()
    return path


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Iterator[Store]:
    """An empty store."""
    opened = Store.open(Path(shutil.copy(empty_store, tmp_path / "store.duckdb")))
    yield opened
    opened.close()


@pytest.fixture
def backend(store: Store, study_runs: list[BenchmarkRun]) -> LocalBackend:
    """A backend over a store with the study's runs and no wattmix.toml."""
    add_runs(store, study_runs)
    return LocalBackend(store, Config())


@pytest.fixture
def served_backend(backend: LocalBackend) -> Iterator[LocalBackend]:
    """`backend`, as the pages of this process see it."""
    with serving(backend):
        yield backend


def chromium() -> str | None:
    """The system's Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)
