"""How a request shows who asks. Secrets are shown to the provider's own host only, and never in a repr."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets as randomness
from collections.abc import Mapping
from typing import Protocol

_SALT = randomness.token_bytes(16)


class Access(Protocol):
    """identity: a hash that tells accounts apart, of no use to who reads it; it changes with every process."""

    @property
    def identity(self) -> str: ...

    def headers(self) -> Mapping[str, str]:
        """May log in first. Raises SourceProblem."""

    def renew(self) -> bool:
        """Called once after a 401: whether another try may do. Raises SourceProblem."""

    def secrets(self) -> tuple[str, ...]:
        """What may appear in no text."""


class OpenAccess:
    """No key."""

    identity = ""

    def headers(self) -> Mapping[str, str]:
        return {}

    def renew(self) -> bool:
        return False

    def secrets(self) -> tuple[str, ...]:
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class HeaderKey(OpenAccess):
    """A key in a header."""

    def __init__(self, name: str, key: str) -> None:
        self._name, self._key = name, check_key(key)
        self.identity = identity_of(key)

    def headers(self) -> Mapping[str, str]:
        return {self._name: self._key}

    def secrets(self) -> tuple[str, ...]:
        return (self._key,)


class BasicLogin(OpenAccess):
    """A user and a password."""

    def __init__(self, user: str, password: str) -> None:
        if not user or ":" in user:
            raise ValueError("a user's name, without a colon")
        self._user, self._password = check_key(user), check_key(password)
        self.identity = identity_of(user, password)

    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Basic {self._encoded()}"}

    def secrets(self) -> tuple[str, ...]:
        return self._password, self._encoded()

    def _encoded(self) -> str:
        return base64.b64encode(f"{self._user}:{self._password}".encode()).decode("ascii")


OPEN = OpenAccess()


def identity_of(*parts: str) -> str:
    return hmac.new(_SALT, "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:16]


def check_key(key: str) -> str:
    """`key`. Raises ValueError, without the key, for what cannot be one."""
    if not key or not key.isascii() or not key.isprintable() or key != key.strip():
        raise ValueError("a key is printable ASCII without spaces around it")
    return key
