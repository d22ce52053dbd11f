"""Electricity Maps, v4 or v3 by base_url: the world, hourly or finer, lifecycle or direct, with a key.

A free key is for one zone, the latest hour and the last day; past ranges and forecasts are of paid plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from collectors.grid.access import HeaderKey
from collectors.grid.electricity_maps_answer import read_intensity
from collectors.grid.http import Ask, Http
from collectors.grid.point import Basis, Kind
from collectors.grid.provider import (
    DAY_S,
    QUARTER_S,
    Capability,
    IntensityAnswer,
    ask_for,
    checked_base_url,
    history_of,
    unknown_zone,
)
from collectors.grid.series import chunks, newest

NAME = "electricity_maps"
BASE_URL = "https://api.electricitymaps.com/v4"
HEADER = "auth-token"
_LONGEST = timedelta(days=10)
_LAST_DAY = timedelta(hours=23)
# Countries that have no live data as a whole, with zones of theirs.
_IN_PARTS = {
    "US": "US-CAL-CISO or US-MIDA-PJM", "DK": "DK-DK1 or DK-DK2", "SE": "SE-SE1 to SE-SE4", "NO": "NO-NO1 to NO-NO5",
    "IT": "IT-NO or IT-SO", "CA": "CA-ON or CA-QC", "AU": "AU-NSW or AU-VIC", "JP": "JP-TK or JP-KN",
    "BR": "BR-CS or BR-NE", "IN": "IN-NO or IN-WE",
}  # fmt: skip


class ElectricityMaps:
    """zones: a zone of ours -> the provider's; a name without an entry is the same there. basis: what is asked for."""

    name = NAME
    needs_key = True
    kind: Kind = "average"
    capabilities: frozenset[Capability] = frozenset({"latest", "history", "forecast"})

    def __init__(
        self,
        http: Http,
        key: str,
        *,
        base_url: str = BASE_URL,
        zones: Mapping[str, str] | None = None,
        basis: Basis = "lifecycle",
    ) -> None:
        if basis not in ("lifecycle", "direct"):
            raise ValueError("basis is lifecycle or direct")
        self._http = http
        self._base_url = checked_base_url(base_url)
        self._access = HeaderKey(HEADER, key)
        self._zones = dict(zones or {})
        self.basis: Basis = basis

    def latest(self, zone: str) -> IntensityAnswer:
        return self._get(zone, "latest", {}, latest=True)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        """The last day is asked of `history`, which every plan has; what is older of `past-range`."""
        oldest_free = self._http.utc_now() - _LAST_DAY

        def get(since: datetime, until: datetime) -> IntensityAnswer:
            if since >= oldest_free:
                return self._get(zone, "history", {})
            return self._get(zone, "past-range", {"start": _written(since), "end": _written(until)})

        return history_of(chunks(start, end, _LONGEST), get, provider=self.name, zone=zone)

    def forecast(self, zone: str) -> IntensityAnswer:
        return self._get(zone, "forecast", {"horizonHours": "24"})

    def _get(self, zone: str, what: str, more: Mapping[str, str], *, latest: bool = False) -> IntensityAnswer:
        theirs = self._zones.get(zone, zone).strip()
        if not theirs or theirs.upper() in _IN_PARTS:
            parts = _IN_PARTS.get(theirs.upper(), "a zone such as DE")
            accepted = f"it has no live data as a whole: use {parts}, and map it in `zones`"
            raise unknown_zone(self.name, zone, accepted)
        params = {
            # Without this a place that is not found is taken from the address of who asks.
            "zone": theirs, "disableCallerLookup": "true", "emissionFactorType": self.basis, **more,
        }  # fmt: skip
        ask = Ask(
            self.name, self._base_url, f"/carbon-intensity/{what}", f"zone {zone}, {what}", params,
            access=self._access, fresh_s=QUARTER_S, stale_s=DAY_S,
        )  # fmt: skip
        return ask_for(self._http, ask, partial(_read, zone=zone, theirs=theirs, basis=self.basis, latest=latest))


def _read(data: Any, fetched_at: datetime, *, zone: str, theirs: str, basis: Basis, latest: bool) -> IntensityAnswer:
    points = read_intensity(data, zone=zone, theirs=theirs, basis=basis, fetched_at=fetched_at)
    return IntensityAnswer((newest(points, fetched_at),) if latest else points)


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
