"""The Carbon Aware SDK: durations in two spellings, and numbers of whatever source stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from collectors.grid.carbon_aware_sdk import CarbonAwareSdk, Of, duration_of, read_emissions, read_forecasts
from collectors.http.client import Http
from collectors.http.problem import SourceProblem, UnusableAnswer
from tests.collectors.http.clocks import NOW, utc
from tests.collectors.http.playing import Player, Reply, as_json

Sample = Callable[[str], Any]
ASKED = Of("here", "eastus", NOW, "provider", "marginal")


@pytest.fixture
def sdk(http: Http, played: Player) -> CarbonAwareSdk:
    return CarbonAwareSdk(http, base_url=played.url, kind="marginal", zones={"US-VA": "eastus"})


def row(start: str, rating: Any = 412.6, duration: Any = "00:05:00", location: str = "eastus") -> dict[str, Any]:
    return {"location": location, "time": utc(start).isoformat(), "rating": rating, "duration": duration}


def forecast(*values: float) -> list[dict[str, Any]]:
    starts = [utc("10:05") + timedelta(minutes=10 * number) for number in range(len(values))]
    rows = [
        {"location": "eastus", "timestamp": start.isoformat(), "duration": 10, "value": value}
        for start, value in zip(starts, values, strict=True)
    ]
    return [{"generatedAt": "2026-11-30T10:00:00+00:00", "location": "eastus", "forecastData": rows}]


def test_emissions_of_the_sample(sample: Sample) -> None:
    (point,) = read_emissions(sample("carbon_aware_sdk/emissions_bylocation"), ASKED)
    assert (point.start, point.end, point.g_per_kwh) == (utc("10:00"), utc("10:05"), 412.6)
    assert (point.kind, point.zone, point.is_forecast) == ("marginal", "here", False)


def test_forecasts_of_the_sample(sample: Sample) -> None:
    points = read_forecasts(sample("carbon_aware_sdk/forecasts_current"), ASKED)
    assert [(point.start, point.end, point.g_per_kwh) for point in points] == [
        (utc("10:05"), utc("10:15"), 401.5), (utc("10:15"), utc("10:25"), 359.23),
    ]  # fmt: skip
    assert all(point.is_forecast and point.issued_at == utc("10:00") for point in points)


@pytest.mark.parametrize(
    ("written", "minutes"), [("00:05:00", 5), ("01:00:00", 60), ("1.00:00:00", 1440), ("00:05:00.0000000", 5), (10, 10)]
)
def test_a_duration_is_a_time_span_or_minutes(written: Any, minutes: float) -> None:
    assert duration_of(written) == timedelta(minutes=minutes)


@pytest.mark.parametrize("written", ["00:00:00", 0, -5, True, None, "5", "2.00:00:00", 10**9, "PT5M", []])
def test_anything_else_is_no_duration(written: Any) -> None:
    with pytest.raises(UnusableAnswer, match="`duration` is"):
        duration_of(written)


def test_another_location_is_refused() -> None:
    with pytest.raises(UnusableAnswer, match="is about 'westus', location 'eastus' was asked for"):
        read_emissions([row("10:00", location="westus")], ASKED)


def test_the_latest_of_the_last_hours(sdk: CarbonAwareSdk, played: Player) -> None:
    played.always(as_json([row("10:00", 400), row("10:05", 390), row("10:05", 390), row("09:00", None, "01:00:00")]))
    (point,) = sdk.latest("US-VA").points
    assert (point.zone, point.g_per_kwh, point.start) == ("US-VA", 390, utc("10:05"))
    assert played.asked[0].query == {
        "location": "eastus", "time": "2026-11-30T07:10:00Z", "toTime": "2026-11-30T10:10:00Z",
    }  # fmt: skip
    sdk.latest("US-VA")
    assert len(played.asked) == 1


def test_history_leaves_out_what_was_not_asked_for(sdk: CarbonAwareSdk, played: Player) -> None:
    played.always(as_json([row("09:55"), row("10:00", 0), row("10:05")]))
    assert [point.g_per_kwh for point in sdk.history("US-VA", utc("10:00"), utc("10:05")).points] == [0]


def test_forecasts(sdk: CarbonAwareSdk, played: Player) -> None:
    played.always(as_json(forecast(401.5, 359.23)))
    assert [point.g_per_kwh for point in sdk.forecast("US-VA").points] == [401.5, 359.23]
    assert played.asked[0].path == "/emissions/forecasts/current"


@pytest.mark.parametrize("reply", [Reply(b"", 204), as_json([])])
def test_no_data_is_named(sdk: CarbonAwareSdk, played: Player, reply: Reply) -> None:
    played.always(reply)
    for get in (sdk.latest, sdk.forecast):
        with pytest.raises(SourceProblem) as raised:
            get("US-VA")
        assert raised.value.kind == "empty"
    with pytest.raises(UnusableAnswer, match="`forecastData` is empty"):
        read_forecasts(forecast(), ASKED)
    with pytest.raises(UnusableAnswer, match="the answer is empty"):
        read_emissions([], ASKED)
