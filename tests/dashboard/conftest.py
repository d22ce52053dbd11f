"""Backends that pages of accounts are drawn from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.backend.local import LocalBackend
from app.store.database import Store
from tests.dashboard.accounts import CONFIG, fill
from tests.serving import serving


@pytest.fixture
def page_backend(store: Store) -> Iterator[LocalBackend]:
    """An empty store, served."""
    with serving(LocalBackend(store, CONFIG)) as backend:
        yield backend


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBackend]:
    """The day of `fill`, for tests that only read: 30 and 60 first tokens up to 10 ms, an SLO of 50 ms for 99%."""
    store = Store.open(tmp_path_factory.mktemp("day") / "s.duckdb")
    fill(store)
    yield LocalBackend(store, CONFIG)
    store.close()
