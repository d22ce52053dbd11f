"""A company's own Carbon Aware SDK WebAPI: what it says depends on the source that it was set up with.

So whether its numbers are average or marginal must be told in the settings; its basis is the provider's.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from collectors.grid.http_provider import DAY_S, HOUR_S, HttpProvider
from collectors.grid.point import FORECAST, Basis, IntensityPoint, Kind, judged
from collectors.grid.provider import IntensityAnswer, newest_of
from collectors.grid.series import tidy
from collectors.http.client import Http
from collectors.http.fields import a_list, an_object, check_same, moment, moment_or_none
from collectors.http.problem import UnusableAnswer

NAME = "carbon_aware_sdk"
_LONGEST = timedelta(days=10)
_LATEST = timedelta(hours=3)
_FRESH_S = 300.0
_LONGEST_DURATION = timedelta(days=1)
_TIME_SPAN = re.compile(r"(?:(\d{1,3})\.)?(\d{1,2}):(\d{2}):(\d{2})(?:\.\d{1,7})?")


class CarbonAwareSdk(HttpProvider):
    """zones: a zone of ours -> a location of the SDK such as eastus; a name without an entry is the same there."""

    name = NAME

    def __init__(
        self,
        http: Http,
        *,
        base_url: str,
        kind: Kind,
        basis: Basis = "provider",
        zones: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(http, base_url=base_url, zones=zones)
        self._kind: Kind = kind
        self._basis: Basis = basis

    def latest(self, zone: str) -> IntensityAnswer:
        now = self._http.utc_now()
        # To the five minutes, so that a question soon after is the same one.
        until = datetime.fromtimestamp((now.timestamp() // _FRESH_S + 1) * _FRESH_S, UTC)
        answer = self._emissions(zone, until - _LATEST, until, "latest")
        return newest_of(answer, now, provider=self.name, zone=zone)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        def get(since: datetime, until: datetime) -> IntensityAnswer:
            return self._emissions(zone, since, until, "history")

        return self._pieces(zone, start, end, _LONGEST, get)

    def forecast(self, zone: str) -> IntensityAnswer:
        path, params = "/emissions/forecasts/current", {"location": self._theirs(zone)}
        return self._get(zone, path, "forecast", params, read_forecasts, stale_s=HOUR_S)

    def _emissions(self, zone: str, start: datetime, end: datetime, what: str) -> IntensityAnswer:
        params = {"location": self._theirs(zone), "time": _written(start), "toTime": _written(end)}
        return self._get(zone, "/emissions/bylocation", what, params, read_emissions)

    def _get(
        self,
        zone: str,
        path: str,
        what: str,
        params: Mapping[str, str],
        read: Callable[..., tuple[IntensityPoint, ...]],
        stale_s: float = DAY_S,
    ) -> IntensityAnswer:
        def read_answer(data: Any, fetched_at: datetime) -> IntensityAnswer:
            of = Of(zone, params["location"], fetched_at, self._basis, self._kind)
            return IntensityAnswer(read(data, of))

        return self._asked(path, f"zone {zone}, {what}", params, read_answer, fresh_s=_FRESH_S, stale_s=stale_s)


@dataclass(frozen=True)
class Of:
    """What the points of an answer have in common. location: what was asked for."""

    zone: str
    location: str
    fetched_at: datetime
    basis: Basis
    kind: Kind


def read_emissions(data: Any, of: Of) -> tuple[IntensityPoint, ...]:
    """The rows of `/emissions/bylocation`. Raises UnusableAnswer."""
    points = []
    for entry in a_list(data, "the answer"):
        row = an_object(entry, "a row")
        check_same(row.get("location"), of.location, "location")
        points.append(_point(row, "time", "rating", of))
    return _some(points, "the answer")


def read_forecasts(data: Any, of: Of) -> tuple[IntensityPoint, ...]:
    """The points of `/emissions/forecasts/current`. Raises UnusableAnswer."""
    points = []
    for entry in a_list(data, "the answer"):
        forecast = an_object(entry, "a forecast")
        check_same(forecast.get("location"), of.location, "location")
        issued_at = moment_or_none(forecast.get("generatedAt"), "`generatedAt`")
        for one in a_list(forecast.get("forecastData"), "`forecastData`"):
            row = an_object(one, "a row of `forecastData`")
            check_same(row.get("location", of.location), of.location, "location")
            point = _point(row, "timestamp", "value", of)
            points.append(
                dataclasses.replace(
                    point, estimated=True, estimation_method=FORECAST, is_forecast=True, issued_at=issued_at
                )
            )
    return _some(points, "`forecastData`")


def _some(points: list[IntensityPoint], what: str) -> tuple[IntensityPoint, ...]:
    if not points:
        raise UnusableAnswer(f"{what} is empty", "empty")
    return tidy(points)


def _point(row: Mapping[str, Any], time: str, rating: str, of: Of) -> IntensityPoint:
    """time, rating: how the row calls them."""
    value, reason = judged(row.get(rating))
    start = moment(row.get(time), f"`{time}`")
    return IntensityPoint(
        zone=of.zone, start=start, end=start + duration_of(row.get("duration")), g_per_kwh=value, basis=of.basis,
        kind=of.kind, estimated=False, estimation_method=None, is_forecast=False, provider=NAME,
        fetched_at=of.fetched_at, reason=reason,
    )  # fmt: skip


def duration_of(value: object) -> timedelta:
    """Minutes, or .NET's TimeSpan `[d.]hh:mm:ss[.fffffff]`. Raises UnusableAnswer."""
    length: timedelta | None = None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1440:
        length = timedelta(minutes=value)
    elif isinstance(value, str) and (span := _TIME_SPAN.fullmatch(value)):
        days, hours, minutes, seconds = (int(part or 0) for part in span.groups())
        length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if length is None or not timedelta(0) < length <= _LONGEST_DURATION:
        raise UnusableAnswer(f"`duration` is {str(value)[:40]!r}; minutes, or hh:mm:ss of at most a day, are read")
    return length


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
