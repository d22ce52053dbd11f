"""Who may write and who may read: node tokens, and the machine itself."""

from __future__ import annotations

import ipaddress

from starlette.requests import Request

from app.errors import Forbidden, NotAllowed
from app.store.database import Store
from app.store.tokens import Grant, Scope, active_grants, digest


class Gate:
    """Checks the bearer token of a request. Requests of this very machine need none (design section 7)."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._grants: dict[str, Grant] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take over tokens that were made or revoked."""
        self._grants = active_grants(self._store)

    def grant(self, request: Request, scope: Scope) -> Grant:
        """What the request may do. Raises NotAllowed: 401 without a valid token, 403 for one of another scope."""
        token = _bearer(request)
        if token is None:
            if is_local(request):
                return Grant(scope, None)
            raise NotAllowed(
                "a token is needed: Authorization: Bearer TOKEN (make one with: wattmix token create NAME)"
            )
        found = self._grants.get(digest(token))
        if found is None:
            raise NotAllowed("the token is unknown or revoked; make another with: wattmix token create NAME")
        if found.scope != scope:
            raise Forbidden(f"a {found.scope} token may not do this; a {scope} token may")
        return found

    @staticmethod
    def check_node(grant: Grant, node: str) -> None:
        if grant.node is not None and grant.node != node:
            raise Forbidden(f"this token may write for node {grant.node!r} only, not for {node!r}")


def is_local(request: Request) -> bool:
    """Whether the request comes from this machine."""
    host = request.client.host if request.client else ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bearer(request: Request) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None
