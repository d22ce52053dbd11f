"""The backend of a store's file: the store itself where it is free, else the hub that owns it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from app.answers.facts import take_over
from app.backend.local import LocalBackend
from app.backend.over_http import HubBackend
from app.backend.protocol import Backend
from app.config import Config
from app.errors import StoreBusy
from app.store.database import Store
from app.store.hub_file import read_hub_file


@contextmanager
def open_backend(db: Path, config: Config) -> Iterator[Backend]:
    """The store when it is free, else the hub that owns it. Raises StoreBusy when something else holds the file."""
    try:
        store = Store.open(db)
    except StoreBusy as busy:
        hub = read_hub_file(db)
        if hub is None or hub.pid != busy.pid:
            raise
        yield HubBackend(hub.address)
        return
    try:
        take_over(store, config, datetime.now(UTC))
        yield LocalBackend(store, config)
    finally:
        store.close()
