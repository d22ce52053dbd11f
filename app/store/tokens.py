"""Tokens of nodes and readers: the store keeps their hashes, never the tokens."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from app.errors import UnknownName
from app.store.database import Store

Scope = Literal["node", "read"]

# one row per token, the newest first
_LIST = "SELECT token_id, name, scope, node, created_at, revoked_at FROM token ORDER BY created_at DESC, token_id"
_REVOKE = "UPDATE token SET revoked_at = $2 WHERE token_id = $1 AND revoked_at IS NULL"
_ACTIVE = "SELECT sha256, scope, node FROM token WHERE revoked_at IS NULL"


@dataclass(frozen=True)
class Grant:
    """What a token allows. node: the only node it may write for; None for any."""

    scope: Scope
    node: str | None


def create_token(store: Store, name: str, scope: Scope, node: str | None) -> str:
    """Make a token and return it; it cannot be shown again. 192 random bits, so a plain hash keeps it safe."""
    token_id = secrets.token_hex(4)
    token = f"wm_{token_id}_{secrets.token_urlsafe(24)}"
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO token VALUES ($1, $2, $3, $4, $5, $6, NULL)",
            [token_id, name, scope, node, digest(token), datetime.now(UTC)],
        )
    return token


def list_tokens(store: Store) -> list[dict[str, Any]]:
    """Every token without its secret."""
    return list(store.query(_LIST).iter_rows(named=True))


def revoke_token(store: Store, token_id: str) -> None:
    """End a token from now on. Raises UnknownName."""
    if token_id not in {row["token_id"] for row in list_tokens(store)}:
        raise UnknownName(f"no token {token_id!r}; `wattmix token list` shows them")
    with store.transaction() as connection:
        connection.execute(
            "UPDATE token SET revoked_at = $2 WHERE token_id = $1 AND revoked_at IS NULL", [token_id, datetime.now(UTC)]
        )


def active_grants(store: Store) -> dict[str, Grant]:
    """Hash of each token that is in force -> what it allows."""
    return {sha256: Grant(scope, node) for sha256, scope, node in store.query(_ACTIVE).iter_rows()}


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
