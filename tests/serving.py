"""Pages of this process, drawn from a backend of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from app.backend.local import LocalBackend
from app.backend.served import serve_from

Served = TypeVar("Served", bound=LocalBackend)


@contextmanager
def serving(backend: Served) -> Iterator[Served]:
    """While it lasts, the pages see `backend`; afterwards none."""
    serve_from(backend)
    try:
        yield backend
    finally:
        serve_from(None)
