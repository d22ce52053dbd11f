"""Electricity Maps, v4 or v3 by base_url: the world, hourly or finer, lifecycle or direct, with a key.

A free key is for one zone, the latest hour and the last day; past ranges and forecasts are of paid plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from collectors.grid.electricity_maps_answer import NAME, read_intensity
from collectors.grid.http_provider import QUARTER_S, HttpProvider, latest_of
from collectors.grid.point import Basis
from collectors.grid.provider import IntensityAnswer, unknown_zone
from collectors.http.access import HeaderKey
from collectors.http.client import Http

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


class ElectricityMaps(HttpProvider):
    """zones: a zone of ours -> the provider's; a name without an entry is the same there. basis: what is asked for."""

    name = NAME

    def __init__(
        self,
        http: Http,
        key: str,
        *,
        base_url: str,
        zones: Mapping[str, str] | None = None,
        basis: Basis = "lifecycle",
    ) -> None:
        if basis not in ("lifecycle", "direct"):
            raise ValueError("basis is lifecycle or direct")
        super().__init__(http, base_url=base_url, zones=zones, access=HeaderKey(HEADER, key))
        self._basis: Basis = basis

    def latest(self, zone: str) -> IntensityAnswer:
        return self._get(zone, "latest", {}, latest=True)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        """The last day is asked of `history`, which every plan has; what is older of `past-range`."""
        oldest_free = self._http.utc_now() - _LAST_DAY

        def get(since: datetime, until: datetime) -> IntensityAnswer:
            if since >= oldest_free:
                return self._get(zone, "history", {})
            return self._get(zone, "past-range", {"start": _written(since), "end": _written(until)})

        return self._pieces(zone, start, end, _LONGEST, get)

    def forecast(self, zone: str) -> IntensityAnswer:
        return self._get(zone, "forecast", {"horizonHours": "24"})

    def _get(self, zone: str, what: str, more: Mapping[str, str], *, latest: bool = False) -> IntensityAnswer:
        theirs = self._theirs(zone)
        if not theirs or theirs.upper() in _IN_PARTS:
            parts = _IN_PARTS.get(theirs.upper(), "a zone such as DE")
            accepted = f"it has no live data as a whole: use {parts}, and map it in `zones`"
            raise unknown_zone(self.name, zone, accepted)
        params = {
            # Without this a place that is not found is taken from the address of who asks.
            "zone": theirs, "disableCallerLookup": "true", "emissionFactorType": self._basis, **more,
        }  # fmt: skip
        read = partial(_read, zone=zone, theirs=theirs, basis=self._basis)
        return self._asked(
            f"/carbon-intensity/{what}", f"zone {zone}, {what}", params, latest_of(read) if latest else read,
            fresh_s=QUARTER_S,
        )  # fmt: skip


def _read(data: Any, fetched_at: datetime, *, zone: str, theirs: str, basis: Basis) -> IntensityAnswer:
    return IntensityAnswer(read_intensity(data, zone=zone, theirs=theirs, basis=basis, fetched_at=fetched_at))


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
