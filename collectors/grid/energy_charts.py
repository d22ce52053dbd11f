"""Energy-Charts (Fraunhofer ISE): European countries, quarter hours, measured and then forecast, no key.

It does not say whether its factors are lifecycle or direct. A question is for local days, an answer in seconds since
1970: only the latter are used, so days of 92 or 100 quarter hours need no care.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from collectors.grid.http_provider import QUARTER_S, HttpProvider
from collectors.grid.point import FORECAST, IntensityPoint, judged
from collectors.grid.provider import IntensityAnswer, newest_of, unknown_zone
from collectors.grid.series import step_of, tidy
from collectors.http.fields import a_list, an_object, epoch
from collectors.http.problem import SourceProblem, UnusableAnswer

NAME = "energy_charts"
BASE_URL = "https://api.energy-charts.info"
_QUARTER_HOUR = timedelta(minutes=15)
_LONGEST, _DAY = timedelta(days=30), timedelta(days=1)
_COUNTRY = re.compile(r"[a-z]{2,3}")
_ZONES = "use a country's code such as DE, and map other names in `zones`"


class EnergyCharts(HttpProvider):
    """zones: a zone of ours -> a country's code; a code of two or three letters needs no entry."""

    name = NAME

    def latest(self, zone: str) -> IntensityAnswer:
        return newest_of(self._get(zone, {}), self._http.utc_now(), provider=self.name, zone=zone)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        def get(since: datetime, until: datetime) -> IntensityAnswer:
            # A local day is never more than a day from the UTC day of the same name.
            return self._get(zone, {"start": _day(since - _DAY), "end": _day(until + _DAY)})

        return self._pieces(zone, start, end, _LONGEST, get)

    def forecast(self, zone: str) -> IntensityAnswer:
        answer, now = self._get(zone, {}), self._http.utc_now()
        ahead = tuple(point for point in answer.points if point.is_forecast and point.end > now)
        if not ahead:
            raise SourceProblem(
                "empty", "the answer holds no forecast", provider=self.name, where=f"zone {zone}, forecast"
            )
        return dataclasses.replace(answer, points=ahead)

    def _get(self, zone: str, days: Mapping[str, str]) -> IntensityAnswer:
        country = self._theirs(zone).lower()
        if not _COUNTRY.fullmatch(country):
            raise unknown_zone(self.name, zone, _ZONES)
        about = f"zone {zone}, {'history' if days else 'today'}"
        params = {"country": country, **days}
        return self._asked("/co2eq", about, params, partial(read_co2eq, zone=zone), fresh_s=QUARTER_S)


def read_co2eq(data: Any, fetched_at: datetime, *, zone: str) -> IntensityAnswer:
    """The quarter hours of an answer: measured, else forecast, else a gap. Raises UnusableAnswer."""
    answer = an_object(data, "the answer")
    starts = _starts(answer)
    measured = _column(answer, "co2eq", len(starts))
    forecast = _column(answer, "co2eq_forecast", len(starts))
    step = step_of(starts, _QUARTER_HOUR)
    points = []
    for start, actual, expected in zip(starts, measured, forecast, strict=True):
        value, reason = judged(actual)
        is_forecast = value is None and expected is not None
        if is_forecast:
            value, reason = judged(expected)
        points.append(
            IntensityPoint(
                zone=zone, start=start, end=start + step, g_per_kwh=value, basis="provider", kind="average",
                estimated=is_forecast, estimation_method=FORECAST if is_forecast else None, is_forecast=is_forecast,
                provider=NAME, fetched_at=fetched_at, reason=reason,
            )
        )  # fmt: skip
    return IntensityAnswer(tidy(points), notes=_deprecation(answer))


def _starts(answer: Mapping[str, Any]) -> list[datetime]:
    """`unix_seconds` as times. Raises UnusableAnswer."""
    starts = [epoch(second, "`unix_seconds`") for second in a_list(answer.get("unix_seconds"), "`unix_seconds`")]
    if not starts:
        raise UnusableAnswer("`unix_seconds` is empty", "empty")
    return starts


def _deprecation(answer: Mapping[str, Any]) -> tuple[str, ...]:
    return ("the provider marks this interface as deprecated",) if answer.get("deprecated") is True else ()


def _column(answer: Mapping[str, Any], name: str, count: int) -> list[Any]:
    column = a_list(answer.get(name), f"`{name}`")
    if len(column) != count:
        raise UnusableAnswer(f"`{name}` has {len(column)} values for {count} times")
    return column


def _day(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%d")
