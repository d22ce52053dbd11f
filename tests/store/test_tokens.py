"""A token is shown once, kept as a hash, and ends when it is revoked."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.errors import UnknownName
from app.store.database import Store
from app.store.tokens import Grant, active_grants, create_token, digest, list_tokens, revoke_token


def bytes_of(store: Store) -> bytes:
    """Everything the store has on disk, before and after a checkpoint."""
    folder, written = Path(store.path).parent, b""
    for _ in range(2):
        written += b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())
        store._connection.execute("CHECKPOINT")
    return written


def test_the_store_keeps_a_hash_and_never_the_token(store: Store) -> None:
    token = create_token(store, "rack 7", "node", "node-7")
    kept = bytes_of(store)
    assert hashlib.sha256(token.encode()).hexdigest().encode() in kept  # so the search sees what is there
    secret = token.split("_", 2)[2]
    for part in (token, secret, secret[:12], secret[-12:]):
        assert part.encode() not in kept
    assert token not in str(list_tokens(store))


def test_a_token_is_long_random_and_of_its_own(store: Store) -> None:
    tokens = {create_token(store, "same name", "node", None) for _ in range(20)}
    assert len(tokens) == 20
    assert all(re.fullmatch(r"wm_[0-9a-f]{8}_[A-Za-z0-9_-]{32}", token) for token in tokens)


def test_the_list_has_the_newest_first_and_no_secret(store: Store) -> None:
    tokens = [create_token(store, name, scope, node) for name, scope, node in
              (("a", "node", "n1"), ("b", "read", None))]  # fmt: skip
    rows = list_tokens(store)
    assert [(row["name"], row["scope"], row["node"], row["revoked_at"]) for row in rows] == [
        ("b", "read", None, None), ("a", "node", "n1", None),
    ]  # fmt: skip
    assert [row["token_id"] for row in rows] == [token.split("_")[1] for token in reversed(tokens)]
    assert all(set(row) == {"token_id", "name", "scope", "node", "created_at", "revoked_at"} for row in rows)
    assert abs((rows[0]["created_at"] - datetime.now(UTC)).total_seconds()) < 60


def test_grants_are_those_in_force(store: Store) -> None:
    bound, reader, ended = (
        create_token(store, "bound", "node", "n1"), create_token(store, "reader", "read", None),
        create_token(store, "ended", "node", None),
    )  # fmt: skip
    revoke_token(store, ended.split("_")[1])
    assert active_grants(store) == {digest(bound): Grant("node", "n1"), digest(reader): Grant("read", None)}


def test_a_revoked_token_stays_in_the_list_with_its_date(store: Store) -> None:
    token_id = create_token(store, "a", "node", None).split("_")[1]
    revoke_token(store, token_id)
    (row,) = list_tokens(store)
    assert row["revoked_at"] >= row["created_at"]


def test_revoking_again_keeps_the_first_date(store: Store) -> None:
    token_id = create_token(store, "a", "node", None).split("_")[1]
    revoke_token(store, token_id)
    first = list_tokens(store)
    revoke_token(store, token_id)
    assert list_tokens(store) == first


def test_revoking_what_is_not_there_is_told(store: Store) -> None:
    create_token(store, "a", "node", None)
    with pytest.raises(UnknownName, match=r"^no token 'a'; `wattmix token list` shows them$"):
        revoke_token(store, "a")
