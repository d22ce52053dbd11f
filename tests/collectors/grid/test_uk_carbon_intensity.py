"""NESO: half hours of Great Britain, measured or forecast, in whichever envelope."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from collectors.grid.point import IntensityPoint
from collectors.grid.uk_carbon_intensity import UkCarbonIntensity, read_intensity
from collectors.http.client import Http
from collectors.http.problem import SourceProblem, UnusableAnswer
from tests.collectors.grid.shapes import uk_region, uk_slot
from tests.collectors.http.clocks import NOW, Clock, utc
from tests.collectors.http.playing import Asked, Player, Reply, as_json

Sample = Callable[[str], Any]


def read(data: Any, place: str = "GB") -> tuple[IntensityPoint, ...]:
    return read_intensity(data, zone="here", fetched_at=NOW, place=place)


def told(points: tuple[IntensityPoint, ...]) -> list[tuple[str, float | None, bool]]:
    return [(f"{point.start:%H:%M}", point.g_per_kwh, point.is_forecast) for point in points]


@pytest.fixture
def uk(http: Http, played: Player) -> UkCarbonIntensity:
    return UkCarbonIntensity(http, base_url=played.url, zones={"London": "SW1", "Wales": "07", "Odd": "1/../2"})


def test_a_measured_half_hour(sample: Sample) -> None:
    (point,) = read(sample("uk_carbon_intensity/intensity"))
    assert (point.start, point.end) == (utc("10:00"), utc("10:30"))
    assert (point.g_per_kwh, point.basis, point.kind) == (138, "direct", "average")
    assert not point.estimated and not point.is_forecast and point.zone == "here"


def test_where_nothing_is_measured_yet_the_forecast_stands_in_and_says_so(sample: Sample) -> None:
    points = read(sample("uk_carbon_intensity/intensity_null_actual"))
    assert told(points) == [("09:00", 149, False), ("09:30", 143, False), ("10:00", 141, True)]
    assert (points[2].estimated, points[2].estimation_method) == (True, "forecast")


def test_the_same_without_samples() -> None:
    assert told(read({"data": [uk_slot("09:30", 146, 143), uk_slot("10:00", 141)]})) == [
        ("09:30", 143, False), ("10:00", 141, True),
    ]  # fmt: skip
    assert told(read({"data": [uk_slot("10:00", 0, 0)]})) == [("10:00", 0, False)]


def test_a_forecast_of_a_day(sample: Sample) -> None:
    points = read(sample("uk_carbon_intensity/intensity_fw24h"))
    assert [point.g_per_kwh for point in points] == [141, 137, 128, 96, 58, 33]
    assert all(point.is_forecast for point in points)


def test_a_local_day_in_summer_begins_the_day_before(sample: Sample) -> None:
    points = read(sample("uk_carbon_intensity/intensity_date_bst"))
    assert [point.start.isoformat() for point in points] == ["2026-05-19T23:00:00+00:00", "2026-05-19T23:30:00+00:00"]
    assert [point.g_per_kwh for point in points] == [91, 89]


@pytest.mark.parametrize(
    ("name", "place", "grams"),
    [
        ("regional", "1", [0]), ("regional", "13", [167]), ("regional", "GB", [141]),
        ("regional_postcode", "SW1", [167]), ("regional_postcode", "13", [167]),
        ("regional_fw48h_postcode", "SW1", [167, 163]),
    ],
)  # fmt: skip
def test_regional_envelopes(sample: Sample, name: str, place: str, grams: list[float]) -> None:
    points = read(sample(f"uk_carbon_intensity/{name}"), place)
    assert [point.g_per_kwh for point in points] == grams
    assert all(point.is_forecast for point in points)


def test_regional_envelopes_without_samples() -> None:
    slots = [uk_slot("10:00", 167, regional=True), uk_slot("10:30", 163, regional=True)]
    for data in ([uk_region(slots)], uk_region(slots)):  # a list at one path, an object at another
        assert told(read({"data": data}, "SW1")) == [("10:00", 167, True), ("10:30", 163, True)]
    regions = [uk_region([]) | uk_slot("10:00", 0, regional=True) | {"regionid": 1}]
    assert told(read({"data": [{**uk_slot("10:00", 9), "regions": regions}]}, "1")) == [("10:00", 0, True)]


@pytest.mark.parametrize("name", ["intensity_stats", "intensity_factors", "generation"])
def test_an_answer_to_another_question_is_refused(sample: Sample, name: str) -> None:
    with pytest.raises(UnusableAnswer, match="`intensity`"):
        read(sample(f"uk_carbon_intensity/{name}"))


@pytest.mark.parametrize("name", ["error_400", "error_500"])
def test_an_error_is_no_data(sample: Sample, name: str, uk: UkCarbonIntensity, played: Player) -> None:
    body = sample(f"uk_carbon_intensity/{name}")
    played.always(as_json(body, int(name[-3:])))
    with pytest.raises(SourceProblem, match=body["error"]["message"]):
        uk.latest("GB")


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        ({"data": []}, "empty", "no half hours"),
        ([], "malformed", "the answer is a list"),
        ({}, "malformed", "`data` is missing"),
        ({"data": [3]}, "malformed", "an entry of `data` is a number"),
        ({"data": [uk_slot("10:00", 1) | {"from": "2026-11-30T10:00"}]}, "malformed", "has no time zone"),
        ({"data": [uk_slot("10:00", 1) | {"from": "yesterday"}]}, "malformed", "is not a time"),
        ({"data": [uk_slot("10:00", 1, minutes=-30)]}, "malformed", "ends at"),
        ({"data": [{"from": "x", "to": "y", "intensity": {"max": 3}}]}, "malformed", "neither `actual` nor"),
        ({"data": [uk_region([uk_slot("10:00", 1)])]}, "malformed", "is about 'London', region GB"),
    ],
)
def test_what_is_no_answer_is_refused_by_name(data: Any, kind: str, words: str) -> None:
    with pytest.raises(UnusableAnswer, match=words) as raised:
        read(data)
    assert raised.value.kind == kind


@pytest.mark.parametrize(
    ("forecast", "actual", "grams", "words"),
    [
        (None, None, None, "no value"), (-4, None, None, "not within"), (9000, None, None, "not within"),
        (None, 9000, None, "9000 g/kWh is not within"), (140, 9000, 140, None), ("140", None, None, "not a number"),
    ],
)  # fmt: skip
def test_an_absurd_value_is_a_gap_or_gives_way_to_the_forecast(
    forecast: Any, actual: Any, grams: float | None, words: str | None
) -> None:
    (point,) = read({"data": [uk_slot("10:00", forecast, actual)]})
    assert point.g_per_kwh == grams
    if words is None:
        assert point.reason is None
    else:
        assert point.reason is not None and words in point.reason


def test_latest_of_the_country_and_of_a_region(uk: UkCarbonIntensity, played: Player) -> None:
    played.always(as_json({"data": [uk_slot("10:00", 141, 138)]}))
    assert uk.latest("GB").points[0].g_per_kwh == 138
    played.always(as_json({"data": [uk_region([uk_slot("10:00", 167, regional=True)])]}))
    assert uk.latest("London").points[0].zone == "London"
    played.always(as_json({"data": [uk_region([uk_slot("10:00", 90, regional=True)], 7, None)]}))
    assert uk.latest("Wales").points[0].g_per_kwh == 90
    assert [asked.path for asked in played.asked] == ["/intensity", "/regional/postcode/SW1", "/regional/regionid/7"]


def test_history_is_asked_in_fortnights_whose_inclusive_ends_count_once(uk: UkCarbonIntensity, played: Player) -> None:
    start = utc("2026-11-01T00:10:00+00:00")

    def play(asked: Asked) -> Reply:
        since, until = (utc(word.replace("Z", ":00+00:00")) for word in asked.path.split("/")[2:4])
        slots = []
        while since <= until:  # both ends, as the real one does
            slots.append(uk_slot(since.isoformat(), 100, 90))
            since += timedelta(minutes=30)
        return as_json({"data": slots})

    played.play = play
    answer = uk.history("GB", start, start + timedelta(days=20))
    assert len(answer.points) == 20 * 48
    assert answer.points[0].start == utc("2026-11-01T00:30:00+00:00")
    assert all(point.end - point.start == timedelta(minutes=30) for point in answer.points)
    assert [asked.path for asked in played.asked] == [
        "/intensity/2026-11-01T00:00Z/2026-11-15T00:10Z", "/intensity/2026-11-15T00:00Z/2026-11-21T00:10Z",
    ]  # fmt: skip


def test_a_forecast_is_asked_once_per_half_hour(uk: UkCarbonIntensity, played: Player, clock: Clock) -> None:
    played.always(as_json({"data": [uk_slot("10:00", 141), uk_slot("10:30", 137)]}))
    assert told(uk.forecast("GB").points) == [("10:00", 141, True), ("10:30", 137, True)]
    clock.go_on(600)
    uk.forecast("GB")
    assert [asked.path for asked in played.asked] == ["/intensity/2026-11-30T10:00Z/fw48h"]


def test_an_empty_list_with_http_200_is_named_and_a_gap_in_history_is_noted(
    uk: UkCarbonIntensity, played: Player
) -> None:
    played.always(as_json({"data": []}))
    with pytest.raises(SourceProblem, match=r"uk_carbon_intensity, zone GB, latest .*`data` holds no half hours"):
        uk.latest("GB")
    slots = [uk_slot("2026-11-20T00:00:00+00:00", 1, 2)]
    played.play = lambda asked: as_json({"data": [] if "11-01T" in asked.path.split("/")[2] else slots})
    answer = uk.history("GB", utc("2026-11-01T00:00:00+00:00"), utc("2026-11-21T00:00:00+00:00"))
    assert len(answer.points) == 1
    assert answer.notes[0].startswith("nothing from 2026-11-01 00:00Z to 2026-11-15 00:00Z")


@pytest.mark.parametrize("zone", ["FR", "Odd", ""])
def test_a_zone_that_it_does_not_have_is_not_asked_for(uk: UkCarbonIntensity, played: Player, zone: str) -> None:
    with pytest.raises(SourceProblem, match="first part of a postcode") as raised:
        uk.latest(zone)
    assert raised.value.kind == "not_found"
    assert played.asked == []
