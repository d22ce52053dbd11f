"""The backend that the pages of this process use: its hub's own."""

from __future__ import annotations

from app.backend.local import LocalBackend
from app.errors import HubError

_served: LocalBackend | None = None


def serve_from(backend: LocalBackend | None) -> None:
    """Make `backend` the one that pages of this process use; None ends it."""
    global _served
    _served = backend


def served() -> LocalBackend:
    """The backend of this process's hub. Raises HubError outside one."""
    if _served is None:
        raise HubError("the dashboard runs inside the hub: start it with `wattmix serve` or `wattmix demo`")
    return _served
