"""Values of grid intensity, for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from collectors.grid.point import IntensityPoint

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def value(start: datetime, minutes: float, g_per_kwh: float | None, **more: Any) -> IntensityPoint:
    """A value of DE by Electricity Maps, measured and known since it was over unless said otherwise."""
    end = start + timedelta(minutes=minutes)
    said: dict[str, Any] = {
        "zone": "DE", "start": start, "end": end, "g_per_kwh": g_per_kwh, "basis": "lifecycle", "kind": "average",
        "estimated": False, "estimation_method": None, "is_forecast": False, "provider": "electricity_maps",
        "fetched_at": end, "reason": None if g_per_kwh is not None else "the provider has no value for this time",
    }  # fmt: skip
    return IntensityPoint(**said | more)


def to_come(start: datetime, minutes: float, g_per_kwh: float, known_at: datetime, **more: Any) -> IntensityPoint:
    said = {"estimated": True, "estimation_method": "forecast", "is_forecast": True, "fetched_at": known_at}
    return value(start, minutes, g_per_kwh, **said | more)


def hour_of(number: int, is_forecast: bool) -> IntensityPoint:
    """One of the hours around now: numbers 0 and 1 are the last two, 2 and 3 the next."""
    start = NOW + timedelta(hours=number - 2)
    return to_come(start, 60, 100 + number, NOW) if is_forecast else value(start, 60, 100 + number)
