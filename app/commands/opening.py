"""How a command reaches its store: settings, path, and the hub that may own it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from app.backend.opening import open_backend
from app.backend.over_http import HubBackend
from app.backend.protocol import Backend
from app.config import Config, store_path


@contextmanager
def opened(db: Path | None, config: Config, config_file: Path | None) -> Iterator[Backend]:
    """The backend of the store; says so when a hub answers with its own settings instead of `config_file`'s."""
    with open_backend(store_path(db, config), config) as backend:
        if isinstance(backend, HubBackend) and config_file is not None:
            told = f"the hub at {backend.address} owns the store and answers with its own settings, not {config_file}"
            Console(stderr=True, soft_wrap=True).print(Text.assemble(("note:", "bold yellow"), f" {told}"))
        yield backend
