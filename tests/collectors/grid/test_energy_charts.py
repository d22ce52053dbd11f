"""Energy-Charts: measured, else forecast, else a gap; only the seconds since 1970 tell the time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from collectors.grid.energy_charts import EnergyCharts, read_co2eq
from collectors.http.client import Http
from collectors.http.problem import SourceProblem, UnusableAnswer
from tests.collectors.grid.shapes import co2eq
from tests.collectors.http.clocks import NOW, Clock, utc
from tests.collectors.http.playing import Player, as_json

Sample = Callable[[str], Any]


@pytest.fixture
def charts(http: Http, played: Player) -> EnergyCharts:
    return EnergyCharts(http, base_url=played.url + "/", zones={"Frankfurt": "DE"})


def test_measured_then_a_hole_then_forecast(sample: Sample) -> None:
    points = read_co2eq(sample("energy_charts/co2eq_de"), NOW, zone="DE").points
    # 1795993200 s = 2026-11-29T23:00Z, the local midnight of Berlin
    assert points[0].start == datetime(2026, 11, 29, 23, tzinfo=UTC)
    assert [point.g_per_kwh for point in points] == [351.2, 349.8, 347.0, None, 345.1, 339.6, 334.0, 330.7]
    assert [point.is_forecast for point in points] == [False] * 5 + [True] * 3
    assert points[3].reason == "the provider has no value for this time"
    assert {(point.basis, point.kind) for point in points} == {("provider", "average")}
    assert all(point.end - point.start == timedelta(minutes=15) for point in points)


def test_the_same_without_samples() -> None:
    points = read_co2eq(co2eq("09:30", [351.2, None, 0, None], [None, None, None, 330.7]), NOW, zone="DE").points
    assert [(point.g_per_kwh, point.estimated) for point in points] == [
        (351.2, False), (None, False), (0, False), (330.7, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "count"), [("2026-03-28T23:00:00+00:00", 92), ("2026-10-24T22:00:00+00:00", 100)]
)  # the days on which Berlin's clocks are put forward and back
def test_days_of_23_and_25_hours_are_as_long_as_their_seconds(first: str, count: int) -> None:
    points = read_co2eq(co2eq(first, [300] * count, [None] * count), NOW, zone="DE").points
    assert len(points) == count
    assert points[-1].end - points[0].start == timedelta(minutes=15 * count)


def test_a_missing_quarter_hour_is_not_covered_by_the_one_before() -> None:
    data = co2eq("09:00", [1, 2, 3], [None] * 3)
    data["unix_seconds"][2] += 900
    assert [f"{point.start:%H:%M}-{point.end:%H:%M}" for point in read_co2eq(data, NOW, zone="DE").points] == [
        "09:00-09:15", "09:15-09:30", "09:45-10:00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"unix_seconds": []}, "empty", "`unix_seconds` is empty"),
        ({"unix_seconds": [1795993200000, 1795993200000]}, "malformed", "not seconds since 1970"),
        ({"unix_seconds": ["1795993200", True]}, "malformed", "not seconds since 1970"),
        ({"co2eq": [1]}, "malformed", "`co2eq` has 1 values for 2 times"),
        ({"co2eq_forecast": None}, "malformed", "`co2eq_forecast` is missing"),
        ({"unix_seconds": {}}, "malformed", "`unix_seconds` is an object"),
    ],
)
def test_what_is_no_answer_is_refused_by_name(change: dict[str, Any], kind: str, words: str) -> None:
    with pytest.raises(UnusableAnswer, match=words) as raised:
        read_co2eq(co2eq("09:00", [1, 2], [None, None]) | change, NOW, zone="DE")
    assert raised.value.kind == kind


def test_absurd_values_are_gaps_and_a_deprecation_is_told() -> None:
    data = co2eq("09:00", [-5, 4000, "x"], [None, 300, None]) | {"deprecated": True}
    answer = read_co2eq(data, NOW, zone="DE")
    assert [point.g_per_kwh for point in answer.points] == [None, 300, None]
    assert "not within" in (answer.points[0].reason or "")
    assert answer.notes == ("the provider marks this interface as deprecated",)


def test_latest_and_forecast_are_one_question(charts: EnergyCharts, played: Player) -> None:
    played.always(as_json(co2eq("09:30", [10, 20, None, None, None], [None, None, 30, 40, 50])))
    latest = charts.latest("Frankfurt").points
    assert [(point.zone, point.g_per_kwh, point.is_forecast) for point in latest] == [("Frankfurt", 30, True)]
    assert [point.g_per_kwh for point in charts.forecast("Frankfurt").points] == [30, 40, 50]
    assert [asked.query for asked in played.asked] == [{"country": "de"}]


def test_history_asks_for_wider_local_days_and_keeps_what_was_asked_for(charts: EnergyCharts, played: Player) -> None:
    played.always(as_json(co2eq("2026-11-28T23:00:00+00:00", [200] * 192, [None] * 192)))
    answer = charts.history("DE", utc("2026-11-29T10:00:00+00:00"), utc("2026-11-29T12:00:00+00:00"))
    assert (len(answer.points), answer.points[0].start) == (8, utc("2026-11-29T10:00:00+00:00"))
    assert played.asked[0].query == {"country": "de", "start": "2026-11-28", "end": "2026-11-30"}
    with pytest.raises(SourceProblem, match="nothing of the time that was asked for") as raised:
        charts.history("DE", utc("2026-10-01T00:00:00+00:00"), utc("2026-10-02T00:00:00+00:00"))
    assert raised.value.kind == "empty"


def test_what_ended_long_ago_is_not_the_latest(charts: EnergyCharts, played: Player, clock: Clock) -> None:
    played.always(as_json(co2eq("2026-11-25T00:00:00+00:00", [200], [None])))
    with pytest.raises(SourceProblem, match="more than a day ago") as raised:
        charts.latest("DE")
    assert raised.value.kind == "no_recent_data"
    with pytest.raises(SourceProblem, match="holds no forecast"):
        charts.forecast("DE")


@pytest.mark.parametrize("zone", ["US-CA", "D", "d&x"])
def test_a_zone_that_is_no_country_is_not_asked_for(charts: EnergyCharts, played: Player, zone: str) -> None:
    with pytest.raises(SourceProblem, match="a country's code such as DE"):
        charts.latest(zone)
    assert played.asked == []
