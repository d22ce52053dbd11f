"""A company's own Carbon Aware SDK WebAPI: what it says depends on the source that it was set up with.

So whether its numbers are average or marginal must be told in the settings; its basis is the provider's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from collectors.grid.fields import a_list, an_object, check_same, moment, moment_or_none
from collectors.grid.http import Ask, Http
from collectors.grid.point import FORECAST, Basis, IntensityPoint, Kind, judged
from collectors.grid.problem import UnusableAnswer
from collectors.grid.provider import (
    DAY_S,
    HOUR_S,
    Capability,
    IntensityAnswer,
    ask_for,
    checked_base_url,
    history_of,
    newest_of,
)
from collectors.grid.series import chunks, tidy

NAME = "carbon_aware_sdk"
_LONGEST = timedelta(days=10)
_LATEST = timedelta(hours=3)
_FRESH_S = 300.0
_LONGEST_DURATION = timedelta(days=1)
_TIME_SPAN = re.compile(r"(?:(\d{1,3})\.)?(\d{1,2}):(\d{2}):(\d{2})(?:\.\d{1,7})?")


class CarbonAwareSdk:
    """zones: a zone of ours -> a location of the SDK such as eastus; a name without an entry is the same there."""

    name = NAME
    needs_key = False
    capabilities: frozenset[Capability] = frozenset({"latest", "history", "forecast"})

    def __init__(
        self,
        http: Http,
        *,
        base_url: str,
        kind: Kind,
        basis: Basis = "provider",
        zones: Mapping[str, str] | None = None,
    ) -> None:
        self._http = http
        self._base_url = checked_base_url(base_url)
        self._zones = dict(zones or {})
        self.kind: Kind = kind
        self.basis: Basis = basis

    def latest(self, zone: str) -> IntensityAnswer:
        now = self._http.utc_now()
        # To the five minutes, so that a question soon after is the same one.
        until = datetime.fromtimestamp((now.timestamp() // _FRESH_S + 1) * _FRESH_S, UTC)
        answer = self._emissions(zone, until - _LATEST, until, "latest")
        return newest_of(answer, now, provider=self.name, zone=zone)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        def get(since: datetime, until: datetime) -> IntensityAnswer:
            return self._emissions(zone, since, until, "history")

        return history_of(chunks(start, end, _LONGEST), get, provider=self.name, zone=zone)

    def forecast(self, zone: str) -> IntensityAnswer:
        location = self._location(zone)
        ask = self._ask("/emissions/forecasts/current", f"zone {zone}, forecast", {"location": location}, HOUR_S)
        return ask_for(self._http, ask, partial(self._read_forecasts, zone=zone, location=location))

    def _emissions(self, zone: str, start: datetime, end: datetime, what: str) -> IntensityAnswer:
        location = self._location(zone)
        params = {"location": location, "time": _written(start), "toTime": _written(end)}
        ask = self._ask("/emissions/bylocation", f"zone {zone}, {what}", params, DAY_S)
        return ask_for(self._http, ask, partial(self._read_emissions, zone=zone, location=location))

    def _ask(self, path: str, about: str, params: Mapping[str, str], stale_s: float) -> Ask:
        return Ask(self.name, self._base_url, path, about, params, fresh_s=_FRESH_S, stale_s=stale_s)

    def _location(self, zone: str) -> str:
        return self._zones.get(zone, zone)

    def _read_emissions(self, data: Any, fetched_at: datetime, *, zone: str, location: str) -> IntensityAnswer:
        return IntensityAnswer(
            read_emissions(data, zone=zone, location=location, fetched_at=fetched_at, basis=self.basis, kind=self.kind)
        )

    def _read_forecasts(self, data: Any, fetched_at: datetime, *, zone: str, location: str) -> IntensityAnswer:
        return IntensityAnswer(
            read_forecasts(data, zone=zone, location=location, fetched_at=fetched_at, basis=self.basis, kind=self.kind)
        )


def read_emissions(
    data: Any, *, zone: str, location: str, fetched_at: datetime, basis: Basis, kind: Kind
) -> tuple[IntensityPoint, ...]:
    """The rows of `/emissions/bylocation`. Raises UnusableAnswer."""
    points = []
    for entry in a_list(data, "the answer"):
        row = an_object(entry, "a row")
        check_same(row.get("location"), location, "location")
        value, reason = judged(row.get("rating"))
        start = moment(row.get("time"), "`time`")
        points.append(
            IntensityPoint(
                zone=zone, start=start, end=start + duration_of(row.get("duration")), g_per_kwh=value, basis=basis,
                kind=kind, estimated=False, estimation_method=None, is_forecast=False, provider=NAME,
                fetched_at=fetched_at, reason=reason,
            )
        )  # fmt: skip
    return tidy(points)


def read_forecasts(
    data: Any, *, zone: str, location: str, fetched_at: datetime, basis: Basis, kind: Kind
) -> tuple[IntensityPoint, ...]:
    """The points of `/emissions/forecasts/current`. Raises UnusableAnswer."""
    points = []
    for entry in a_list(data, "the answer"):
        forecast = an_object(entry, "a forecast")
        check_same(forecast.get("location"), location, "location")
        issued_at = moment_or_none(forecast.get("generatedAt"), "`generatedAt`")
        for one in a_list(forecast.get("forecastData"), "`forecastData`"):
            row = an_object(one, "a row of `forecastData`")
            check_same(row.get("location", location), location, "location")
            value, reason = judged(row.get("value"))
            start = moment(row.get("timestamp"), "`timestamp`")
            points.append(
                IntensityPoint(
                    zone=zone, start=start, end=start + duration_of(row.get("duration")), g_per_kwh=value, basis=basis,
                    kind=kind, estimated=True, estimation_method=FORECAST, is_forecast=True, provider=NAME,
                    fetched_at=fetched_at, issued_at=issued_at, reason=reason,
                )
            )  # fmt: skip
    if not points:
        raise UnusableAnswer("`forecastData` is empty", "empty")
    return tidy(points)


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
