"""What all providers that are asked on the network have: an address, an account, zones in their spelling."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from collectors.grid.provider import Capability, IntensityAnswer, history_of
from collectors.grid.series import chunks, newest
from collectors.http.access import OPEN, Access
from collectors.http.address import checked_base_url
from collectors.http.client import Ask, Http

QUARTER_S, HOUR_S, DAY_S = 900.0, 3600.0, 86_400.0
Reader = Callable[[Any, datetime], IntensityAnswer]


class HttpProvider:
    """zones: a zone of ours -> the provider's spelling; a name without an entry is the same there."""

    name: str
    capabilities: frozenset[Capability] = frozenset({"latest", "history", "forecast"})

    def __init__(
        self, http: Http, *, base_url: str, zones: Mapping[str, str] | None = None, access: Access = OPEN
    ) -> None:
        self._http = http
        self._base_url = checked_base_url(base_url)
        self._zones = dict(zones or {})
        self._access = access

    def _theirs(self, zone: str) -> str:
        return self._zones.get(zone, zone).strip()

    def _asked(
        self, path: str, about: str, params: Mapping[str, str], read: Reader, *, fresh_s: float, stale_s: float = DAY_S
    ) -> IntensityAnswer:
        """What `read` makes of the answer, with its age and the problem, if any. Raises SourceProblem."""
        ask = Ask(self.name, self._base_url, path, about, params, self._access, fresh_s, stale_s)
        fetched = self._http.get(ask, read)
        return dataclasses.replace(fetched.value, age_s=fetched.age_s, problem=fetched.problem)

    def _pieces(
        self,
        zone: str,
        start: datetime,
        end: datetime,
        longest: timedelta,
        get: Callable[[datetime, datetime], IntensityAnswer],
    ) -> IntensityAnswer:
        return history_of(chunks(start, end, longest), get, provider=self.name, zone=zone)


def latest_of(read: Reader) -> Reader:
    """`read`, then only what is best known about now; an answer without that is no good."""

    def read_latest(data: Any, fetched_at: datetime) -> IntensityAnswer:
        answer = read(data, fetched_at)
        return dataclasses.replace(answer, points=(newest(answer.points, fetched_at),))

    return read_latest
