"""NESO's Carbon Intensity API: Great Britain and its regions, half hours, no key.

Direct factors with imports and losses; a region has forecasts only. `/intensity/date` is never asked: its days are
local ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from collectors.grid.http_provider import QUARTER_S, HttpProvider, latest_of
from collectors.grid.point import FORECAST, IntensityPoint, judged
from collectors.grid.provider import IntensityAnswer, unknown_zone
from collectors.grid.series import tidy
from collectors.http.fields import a_list, an_object, moment
from collectors.http.problem import UnusableAnswer

NAME = "uk_carbon_intensity"
BASE_URL = "https://api.carbonintensity.org.uk"
NATIONAL = "GB"
_LONGEST = timedelta(days=14)
_HALF_HOUR = timedelta(minutes=30)
_REGIONS = 17
_POSTCODE = re.compile(r"[A-Z]{1,2}[0-9][A-Z0-9]?")
_ZONES = "use GB, a region's number 1 to 17, or the first part of a postcode such as SW1, and map it in `zones`"


class UkCarbonIntensity(HttpProvider):
    """zones: a zone of ours -> GB, a region's number, or an outward postcode."""

    name = NAME

    def latest(self, zone: str) -> IntensityAnswer:
        place = self._place(zone)
        path = "/intensity" if place == NATIONAL else f"/regional/{_path_of(place)}"
        return self._get(zone, place, path, "latest", latest=True)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        place = self._place(zone)

        def get(since: datetime, until: datetime) -> IntensityAnswer:
            path = _with_place(f"/intensity/{_slot(since)}/{_written(until)}", place)
            return self._get(zone, place, path, "history")

        return self._pieces(zone, start, end, _LONGEST, get)

    def forecast(self, zone: str) -> IntensityAnswer:
        place = self._place(zone)
        return self._get(zone, place, _with_place(f"/intensity/{_slot(self._http.utc_now())}/fw48h", place), "forecast")

    def _get(self, zone: str, place: str, path: str, what: str, *, latest: bool = False) -> IntensityAnswer:
        read = partial(_read, zone=zone, place=place)
        return self._asked(path, f"zone {zone}, {what}", {}, latest_of(read) if latest else read, fresh_s=QUARTER_S)

    def _place(self, zone: str) -> str:
        place = self._zones.get(zone, zone if zone == NATIONAL else "").strip().upper()
        is_region = place.isascii() and place.isdigit() and 1 <= int(place) <= _REGIONS
        if place != NATIONAL and not is_region and not _POSTCODE.fullmatch(place):
            raise unknown_zone(self.name, zone, _ZONES)
        return str(int(place)) if is_region else place


def _read(data: Any, fetched_at: datetime, *, zone: str, place: str) -> IntensityAnswer:
    return IntensityAnswer(read_intensity(data, zone=zone, fetched_at=fetched_at, place=place))


def read_intensity(data: Any, *, zone: str, fetched_at: datetime, place: str = NATIONAL) -> tuple[IntensityPoint, ...]:
    """The half hours of an answer, of whichever envelope. Raises UnusableAnswer."""
    slots = list(_slots(an_object(data, "the answer").get("data"), place))
    if not slots:
        raise UnusableAnswer("`data` holds no half hours", "empty")
    return tidy(_point(slot, zone=zone, fetched_at=fetched_at) for slot in slots)


def _slots(data: object, place: str) -> Iterator[Mapping[str, Any]]:
    """`data` is a list or an object; a region's half hours are one level deeper, or beside those of all regions."""
    for entry in [data] if isinstance(data, dict) else a_list(data, "`data`"):
        row = an_object(entry, "an entry of `data`")
        if "regions" in row:
            for region in a_list(row["regions"], "`regions`"):
                if _is_of(an_object(region, "a region"), place):
                    yield {**region, "from": row.get("from"), "to": row.get("to")}
        elif "data" in row:
            if not _is_of(row, place):
                shown = str(row.get("shortname"))[:40]
                raise UnusableAnswer(f"the answer is about {shown!r}, region {place} was asked for")
            yield from (an_object(slot, "a half hour") for slot in a_list(row["data"], "`data` of a region"))
        else:
            yield row


def _is_of(region: Mapping[str, Any], place: str) -> bool:
    if place == NATIONAL:
        return region.get("shortname") == NATIONAL
    if place.isdigit():
        return region.get("regionid") == int(place)
    return str(region.get("postcode", "")).upper() == place


def _point(slot: Mapping[str, Any], *, zone: str, fetched_at: datetime) -> IntensityPoint:
    intensity = an_object(slot.get("intensity"), "`intensity`")
    if "forecast" not in intensity and "actual" not in intensity:
        raise UnusableAnswer("`intensity` has neither `actual` nor `forecast`")
    value, reason = judged(intensity.get("actual"))
    is_forecast = value is None
    if is_forecast:
        value, reason_of_forecast = judged(intensity.get("forecast"))
        # Of two numbers that are no good, the measured one's reason says more.
        reason = None if value is not None else (reason if intensity.get("actual") is not None else reason_of_forecast)
    start, end = moment(slot.get("from"), "`from`"), moment(slot.get("to"), "`to`")
    if end <= start:
        raise UnusableAnswer(f"a half hour from {start:%Y-%m-%d %H:%M}Z ends at {end:%Y-%m-%d %H:%M}Z")
    return IntensityPoint(
        zone=zone, start=start, end=end, g_per_kwh=value, basis="direct", kind="average",
        estimated=is_forecast, estimation_method=FORECAST if is_forecast else None, is_forecast=is_forecast,
        provider=NAME, fetched_at=fetched_at, reason=reason,
    )  # fmt: skip


def _path_of(place: str) -> str:
    return f"regionid/{place}" if place.isdigit() else f"postcode/{place}"


def _with_place(path: str, place: str) -> str:
    return path if place == NATIONAL else f"/regional{path}/{_path_of(place)}"


def _slot(instant: datetime) -> str:
    """The start of the half hour that holds `instant`; so within it the same question is asked."""
    utc = instant.astimezone(UTC)
    return _written(datetime.fromtimestamp(utc.timestamp() // _HALF_HOUR.total_seconds() * 1800, UTC))


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
