"""Answers of providers in the shape of the real ones, made by the tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.collectors.http.clocks import utc

Value = float | None


def uk_slot(
    start: str, forecast: Any, actual: Any = None, *, minutes: int = 30, regional: bool = False
) -> dict[str, Any]:
    begin = utc(start)
    end = begin + timedelta(minutes=minutes)
    intensity = {"forecast": forecast, "index": "low"} | ({} if regional else {"actual": actual})
    return {"from": f"{begin:%Y-%m-%dT%H:%MZ}", "to": f"{end:%Y-%m-%dT%H:%MZ}", "intensity": intensity}


def uk_region(slots: Sequence[dict[str, Any]], regionid: int = 13, postcode: str | None = "SW1") -> dict[str, Any]:
    return {"regionid": regionid, "shortname": "London", "postcode": postcode, "data": list(slots)}


def co2eq(start: str, measured: Sequence[Any], forecast: Sequence[Any], step_s: int = 900) -> dict[str, Any]:
    begin = int(utc(start).timestamp())
    seconds = [begin + step_s * number for number in range(len(measured))]
    return {"unix_seconds": seconds, "co2eq": list(measured), "co2eq_forecast": list(forecast), "deprecated": False}


def em_row(start: str, value: Any = 300, **changes: Any) -> dict[str, Any]:
    row = {
        "zone": "DE", "carbonIntensity": value, "datetime": f"{utc(start):%Y-%m-%dT%H:%M:%S.000Z}",
        "updatedAt": "2026-11-30T09:00:00.000Z", "createdAt": "2026-11-27T09:00:00.000Z",
        "emissionFactorType": "lifecycle", "isEstimated": False, "estimationMethod": None,
        "temporalGranularity": "hourly",
    } | changes  # fmt: skip
    return {name: word for name, word in row.items() if word != "absent"}


def moer(points: dict[str, Any], *, generated: str | None = None, **changes: Any) -> dict[str, Any]:
    meta = {
        "data_point_period_seconds": 300, "region": "CAISO_NORTH", "warnings": [], "signal_type": "co2_moer",
        "model": {"date": "2023-03-01"}, "units": "lbs_co2_per_mwh",
    } | changes  # fmt: skip
    if generated is not None:
        meta["generated_at"] = f"{utc(generated):%Y-%m-%dT%H:%M:%S+00:00}"
    data = [{"point_time": f"{utc(start):%Y-%m-%dT%H:%M:%S+00:00}", "value": value} for start, value in points.items()]
    return {"data": data, "meta": {name: word for name, word in meta.items() if word != "absent"}}
