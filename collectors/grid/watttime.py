"""WattTime v3: the marginal signal (MOER), five minutes, with a user and a password. It belongs in no total.

MOER is a model's: its date goes with each point, as a new model shifts history. A free account is for CAISO_NORTH.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from collectors.grid.http_provider import HttpProvider, latest_of
from collectors.grid.point import IntensityPoint, judged
from collectors.grid.provider import IntensityAnswer, unknown_zone
from collectors.grid.series import tidy
from collectors.grid.watttime_login import WattTimeLogin
from collectors.http.address import checked_base_url
from collectors.http.client import Http
from collectors.http.fields import a_list, an_object, check_same, moment, moment_or_none, text
from collectors.http.problem import UnusableAnswer
from collectors.http.status import printable

NAME = "watttime"
BASE_URL = "https://api.watttime.org"
SIGNAL, UNIT = "co2_moer", "lbs_co2_per_mwh"
G_PER_KWH_PER_LB_PER_MWH = 0.45359237  # 453.59237 g per lb, 1000 kWh per MWh
_LONGEST = timedelta(days=30)
_LONGEST_PERIOD_S = 86_400
_REGION = re.compile(r"[A-Z0-9_]{2,40}")
_FRESH_S = 300.0
_ZONES = "map it in `zones` to a region of WattTime such as CAISO_NORTH"


class WattTime(HttpProvider):
    """zones: a zone of ours -> a region of WattTime; a region's own name needs no entry."""

    name = NAME

    def __init__(
        self, http: Http, user: str, password: str, *, base_url: str, zones: Mapping[str, str] | None = None
    ) -> None:
        login = WattTimeLogin(http, self.name, checked_base_url(base_url), user, password)
        super().__init__(http, base_url=base_url, zones=zones, access=login)

    def latest(self, zone: str) -> IntensityAnswer:
        """The value for now, which WattTime tells as a forecast."""
        return self._get(zone, "/v3/forecast", "latest", {"horizon_hours": "0"}, latest=True)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        def get(since: datetime, until: datetime) -> IntensityAnswer:
            # Both ends are inclusive there.
            last = max(since, until - timedelta(seconds=1))
            return self._get(zone, "/v3/historical", "history", {"start": _written(since), "end": _written(last)})

        return self._pieces(zone, start, end, _LONGEST, get)

    def forecast(self, zone: str) -> IntensityAnswer:
        return self._get(zone, "/v3/forecast", "forecast", {"horizon_hours": "72"})

    def _get(
        self, zone: str, path: str, what: str, more: Mapping[str, str], *, latest: bool = False
    ) -> IntensityAnswer:
        region = self._theirs(zone)
        if not _REGION.fullmatch(region) or (zone not in self._zones and "_" not in region):
            raise unknown_zone(self.name, zone, _ZONES)
        params = {"region": region, "signal_type": SIGNAL, **more}
        read = partial(read_moer, zone=zone, region=region)
        return self._asked(path, f"zone {zone}, {what}", params, latest_of(read) if latest else read, fresh_s=_FRESH_S)


def read_moer(data: Any, fetched_at: datetime, *, zone: str, region: str) -> IntensityAnswer:
    """The points of an answer; one that tells `generated_at` is a forecast. Raises UnusableAnswer."""
    answer = an_object(data, "the answer")
    meta = an_object(answer.get("meta"), "`meta`")
    check_same(meta.get("region"), region, "region")
    check_same(meta.get("signal_type"), SIGNAL, "signal_type")
    if meta.get("units") != UNIT:
        raise UnusableAnswer(f"`units` is {str(meta.get('units'))[:40]!r}; {UNIT} is read")
    period = _period(meta)
    rows = a_list(answer.get("data"), "`data`")
    if not rows:
        raise UnusableAnswer("`data` is empty", "empty")
    issued_at = moment_or_none(meta.get("generated_at"), "`generated_at`")
    model = f"model {_model_date(meta)}"
    points = []
    for entry in rows:
        row = an_object(entry, "a row of `data`")
        start = moment(row.get("point_time"), "`point_time`")
        value, reason = judged(row.get("value"), G_PER_KWH_PER_LB_PER_MWH)
        points.append(
            IntensityPoint(
                zone=zone, start=start, end=start + period, g_per_kwh=value, basis="provider", kind="marginal",
                estimated=True, estimation_method=model, is_forecast=issued_at is not None, provider=NAME,
                fetched_at=fetched_at, issued_at=issued_at, reason=reason,
            )
        )  # fmt: skip
    return IntensityAnswer(tidy(points), notes=(f"MOER {model}", *_warnings(meta)))


def _period(meta: Mapping[str, Any]) -> timedelta:
    period_s = meta.get("data_point_period_seconds")
    if isinstance(period_s, bool) or not isinstance(period_s, int | float) or not 1 <= period_s <= _LONGEST_PERIOD_S:
        shown = "missing" if period_s is None else str(period_s)[:40]
        raise UnusableAnswer(f"`data_point_period_seconds` is {shown}; 1 to {_LONGEST_PERIOD_S} are read")
    return timedelta(seconds=period_s)


def _model_date(meta: Mapping[str, Any]) -> str:
    return printable(text(an_object(meta.get("model"), "`model`").get("date"), "`date` of the model"))


def _warnings(meta: Mapping[str, Any]) -> tuple[str, ...]:
    warnings = meta.get("warnings")
    said = [one.get("message") for one in warnings if isinstance(one, dict)] if isinstance(warnings, list) else []
    return tuple(printable(words) for words in said if isinstance(words, str) and words)


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
