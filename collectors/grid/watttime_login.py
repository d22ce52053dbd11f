"""WattTime's token: fetched with user and password when first needed, and again when it is no longer taken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from collectors.grid.access import BasicLogin, OpenAccess, check_key
from collectors.grid.fields import an_object, text
from collectors.grid.http import Ask, Http
from collectors.grid.problem import UnusableAnswer


class WattTimeLogin(OpenAccess):
    """The token lives for 30 minutes; a 401 and not our clock tells when that is over."""

    def __init__(self, http: Http, provider: str, base_url: str, user: str, password: str) -> None:
        self._http = http
        self._basic = BasicLogin(user, password)
        self._ask = Ask(provider, base_url, "/login", "login", access=self._basic)
        self._token: str | None = None
        self.identity = self._basic.identity

    def headers(self) -> Mapping[str, str]:
        token = self._token or self._log_in()
        return {"Authorization": f"Bearer {token}"}

    def renew(self) -> bool:
        self._log_in()
        return True

    def secrets(self) -> tuple[str, ...]:
        return (*self._basic.secrets(), *((self._token,) if self._token else ()))

    def _log_in(self) -> str:
        self._token = self._http.get(self._ask, _read_token).value
        return self._token


def _read_token(data: Any, _: datetime) -> str:
    token = text(an_object(data, "the answer").get("token"), "`token`")
    try:
        return check_key(token)
    except ValueError:
        raise UnusableAnswer("`token` is no token") from None
