"""WattTime's token: fetched with user and password when first needed, and again when it is no longer taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from collectors.http.access import BasicLogin, OpenAccess, check_key
from collectors.http.client import Ask, Http
from collectors.http.fields import an_object, text
from collectors.http.problem import UnusableAnswer


class WattTimeLogin(OpenAccess):
    """The token lives for 30 minutes; a 401 and not our clock tells when that is over."""

    def __init__(self, http: Http, provider: str, base_url: str, user: str, password: str) -> None:
        self._http = http
        self._basic = BasicLogin(user, password)
        self._ask = Ask(provider, base_url, "/login", "login", access=self._basic)
        # The newest last; what answers late may still tell the one before.
        self._tokens: deque[str] = deque(maxlen=2)
        self.identity = self._basic.identity

    def headers(self) -> Mapping[str, str]:
        token = self._tokens[-1] if self._tokens else self._log_in()
        return {"Authorization": f"Bearer {token}"}

    def renew(self) -> bool:
        self._log_in()
        return True

    def secrets(self) -> tuple[str, ...]:
        return (*self._basic.secrets(), *self._tokens)

    def _log_in(self) -> str:
        token = self._http.get(self._ask, _read_token).value
        self._tokens.append(token)
        return token


def _read_token(data: Any, _: datetime) -> str:
    token = text(an_object(data, "the answer").get("token"), "`token`")
    try:
        return check_key(token)
    except ValueError:
        raise UnusableAnswer("`token` is no token") from None
