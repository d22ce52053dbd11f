"""Electricity Maps: one parser for every envelope of v3 and v4, and what a key may see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from collectors.grid.electricity_maps import ElectricityMaps
from collectors.grid.electricity_maps_answer import read_intensity
from collectors.grid.point import Basis, IntensityPoint
from collectors.http.client import Http
from collectors.http.problem import SourceProblem, UnusableAnswer
from tests.collectors.grid.shapes import em_row
from tests.collectors.http.clocks import NOW, Clock, utc
from tests.collectors.http.playing import Asked, Player, Reply, as_json

Sample = Callable[[str], Any]
HOUR = timedelta(hours=1)


def read(data: Any, theirs: str = "DE", basis: Basis = "lifecycle") -> tuple[IntensityPoint, ...]:
    return read_intensity(data, zone="here", theirs=theirs, basis=basis, fetched_at=NOW)


@pytest.fixture
def maps(http: Http, played: Player) -> ElectricityMaps:
    return ElectricityMaps(http, "planted-key", base_url=f"{played.url}/v4", zones={"Virginia": "US-MIDA-PJM"})


@pytest.mark.parametrize(
    ("name", "zone", "grams", "method"),
    [
        ("v4_carbon_intensity_latest", "DE", 312, None),
        ("v3_carbon_intensity_latest", "FR", 28, None),
        ("v4_carbon_intensity_latest_estimated", "SE-SE3", 21, "TIME_SLICER_AVERAGE"),
        ("v4_carbon_intensity_latest_null", "US-MIDW-MISO", None, None),
    ],
)
def test_the_latest_hour(sample: Sample, name: str, zone: str, grams: float | None, method: str | None) -> None:
    (point,) = read(sample(f"electricitymaps/{name}"), zone)
    assert (point.start, point.end) == (utc("10:00"), utc("11:00"))
    assert (point.g_per_kwh, point.estimated, point.estimation_method) == (grams, method is not None, method)
    assert (point.basis, point.revised_at) == ("lifecycle", utc("12:00"))
    assert point.reason == (None if grams is not None else "the provider has no value for this time")


def test_history_tells_which_hours_are_estimated(sample: Sample) -> None:
    points = read(sample("electricitymaps/v4_carbon_intensity_history"))
    assert [point.g_per_kwh for point in points] == [401, 388, 371, 350, 329, 312]
    assert [point.estimated for point in points] == [False] * 4 + [True] * 2
    assert points[5].estimation_method == "MODE_BREAKDOWN"
    assert points[0].revised_at == utc("07:00")


def test_a_past_range_keeps_its_gap(sample: Sample) -> None:
    points = read(sample("electricitymaps/v4_carbon_intensity_past_range"))
    assert [point.g_per_kwh for point in points] == [455, None, 447, 431]
    assert points[0].start == utc("2026-11-29T04:00:00+00:00")


def test_a_forecast_says_when_it_was_made(sample: Sample) -> None:
    points = read(sample("electricitymaps/v4_carbon_intensity_forecast"), basis="direct")
    assert [point.g_per_kwh for point in points] == [312, 298, 287, 291, 330, 378, 402]
    assert all(point.is_forecast and point.issued_at == utc("10:00") and point.basis == "direct" for point in points)
    assert all(point.revised_at is None for point in points)


def test_the_home_assistant_envelope(sample: Sample) -> None:
    (point,) = read(sample("electricitymaps/home_assistant"))
    assert (point.g_per_kwh, point.start, point.end - point.start) == (312, utc("10:00"), HOUR)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("v4_carbon_intensity_level_latest", "a row has no `carbonIntensity`"),
        ("v4_price_day_ahead_latest", "no `carbonIntensity`, `history`"),
        ("v3_zones", "no `carbonIntensity`, `history`"),
    ],
)
def test_an_answer_to_another_question_is_refused(sample: Sample, name: str, words: str) -> None:
    with pytest.raises(UnusableAnswer, match=words):
        read(sample(f"electricitymaps/{name}"))


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("error_401_zone", 401, "no_access"), ("error_401_endpoint", 401, "no_access"),
        ("error_404_no_recent_data", 404, "no_recent_data"), ("error_status_message", 404, "not_found"),
        ("error_status_message", 400, "refused"), ("error_404_no_recent_data", 200, "no_recent_data"),
        ("error_status_message", 200, "refused"),
    ],
)  # fmt: skip
def test_errors_of_the_samples(
    sample: Sample, maps: ElectricityMaps, played: Player, name: str, status: int, kind: str
) -> None:
    body = sample(f"electricitymaps/{name}")
    played.always(as_json(body, status))
    with pytest.raises(SourceProblem) as raised:
        maps.latest("DE")
    assert raised.value.kind == kind
    assert body.get("message", body.get("error")) in str(raised.value)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"status": "error", "message": "No recent data for zone DE"}, "no_recent_data"),
        ({"status": "no-data", "countryCode": "DE", "data": {}}, "no_recent_data"),
        ({"error": "no such thing"}, "refused"),
    ],
)
def test_an_error_with_http_200_is_an_error(maps: ElectricityMaps, played: Player, body: Any, kind: str) -> None:
    played.always(as_json(body))
    with pytest.raises(SourceProblem) as raised:
        maps.latest("DE")
    assert raised.value.kind == kind


def test_every_envelope_without_samples() -> None:
    row = em_row("10:00", 312)
    bare = {"carbonIntensity": 312, "datetime": row["datetime"]}
    for data in (
        row, {"zone": "DE", "history": [row]}, {"zone": "DE", "data": [row], "unit": "gCO2eq/kWh"},
        {"zone": "DE", "forecast": [bare]}, em_row("10:00", 312, temporalGranularity="absent"),
        {"history": [row]}, {"zone": "DE", "history": [bare], "temporalGranularity": "hourly"},
    ):  # fmt: skip
        (point,) = read(data)
        assert (point.g_per_kwh, point.start, point.end) == (312, utc("10:00"), utc("11:00"))


@pytest.mark.parametrize(
    ("granularity", "minutes"), [("5_minutes", 5), ("15_minutes", 15), ("hourly", 60), ("daily", 1440)]
)
def test_the_granularity_is_the_answers(granularity: str, minutes: int) -> None:
    (point,) = read(em_row("10:00", temporalGranularity=granularity))
    assert point.end - point.start == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("granularity", "end"), [("monthly", "2026-12-01"), ("quarterly", "2027-02-01"), ("yearly", "2027-11-01")]
)
def test_months_are_calendar_months(granularity: str, end: str) -> None:
    (point,) = read(em_row("2026-11-01T00:00:00+00:00", temporalGranularity=granularity))
    assert f"{point.end:%Y-%m-%d}" == end


def test_a_rows_own_granularity_counts_and_the_finer_wins() -> None:
    rows = [
        em_row("08:00", 300), em_row("09:00", 310),
        *(em_row(f"09:{minute:02}", 200 + minute, temporalGranularity="15_minutes") for minute in (0, 15)),
    ]  # fmt: skip
    points = read({"zone": "DE", "data": rows})
    assert [(f"{one.start:%H:%M}", f"{one.end:%H:%M}", one.g_per_kwh) for one in points] == [
        ("08:00", "09:00", 300), ("09:00", "09:15", 200), ("09:15", "09:30", 215), ("09:30", "10:00", 310),
    ]  # fmt: skip


def test_rows_closer_than_an_hour_without_granularity_do_not_overlap() -> None:
    rows = [em_row(f"09:{minute:02}", temporalGranularity="absent") for minute in (0, 5, 10)]
    assert {one.end - one.start for one in read({"zone": "DE", "history": rows})} == {timedelta(minutes=5)}


def test_a_revised_value_replaces_the_one_before() -> None:
    rows = [
        em_row("08:00", 361, updatedAt="2026-11-30T09:30:00Z"),
        em_row("08:00", 350, updatedAt="2026-11-30T08:30:00Z", isEstimated=True, estimationMethod="X"),
    ]
    (point,) = read({"zone": "DE", "history": rows})
    assert (point.g_per_kwh, point.estimated, point.revised_at) == (361, False, utc("09:30"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (em_row("10:00", zone="US-CAL-CISO"), "is about 'US-CAL-CISO', zone 'DE' was asked for"),
        (em_row("10:00", zone="absent"), "does not say its zone"),
        ({"zone": "DE", "history": [em_row("10:00", zone="FR")]}, "is about 'FR'"),
        (em_row("10:00", temporalGranularity="fortnightly"), "`temporalGranularity` is 'fortnightly'; 5_minutes"),
        (em_row("10:00", emissionFactorType="wishful"), "`emissionFactorType` is 'wishful'"),
        (em_row("10:00", unit="lb/MWh"), "the unit is 'lb/MWh'; gCO2eq/kWh is read"),
        (em_row("10:00", units={"carbonIntensity": "kg/kWh"}), "the unit is 'kg/kWh'"),
        (em_row("10:00") | {"datetime": "2026-11-30T10:00:00"}, "`datetime` '2026-11-30T10:00:00' has no time zone"),
        (em_row("10:00") | {"datetime": None}, "`datetime` is missing"),
        ([em_row("10:00")], "the answer is a list"),
        ({"zone": "DE", "history": 3}, "`history` is a number"),
        ({"zone": "DE", "history": ["x"]}, "a row of `history` is a text"),
    ],
)
def test_what_is_no_answer_is_refused_by_name(data: Any, words: str) -> None:
    with pytest.raises(UnusableAnswer) as raised:
        read(data)
    assert words in str(raised.value)
    assert raised.value.kind == "malformed"


def test_an_empty_list_is_named() -> None:
    with pytest.raises(UnusableAnswer, match="`history` is empty") as raised:
        read({"zone": "DE", "history": []})
    assert raised.value.kind == "empty"


@pytest.mark.parametrize("value", [-3, 3001, "300", True])
def test_an_absurd_value_is_a_gap_with_its_reason(value: Any) -> None:
    (point,) = read(em_row("10:00", value))
    assert point.g_per_kwh is None and point.reason


def test_zero_is_a_value_and_direct_may_be_larger_than_lifecycle() -> None:
    assert read(em_row("10:00", 0))[0].g_per_kwh == 0
    assert read(em_row("10:00", 506, emissionFactorType="direct"))[0].basis == "direct"


def test_what_is_sent(maps: ElectricityMaps, played: Player) -> None:
    played.always(as_json(em_row("10:00", 312, zone="US-MIDA-PJM")))
    answer = maps.latest("Virginia")
    assert [(point.zone, point.g_per_kwh) for point in answer.points] == [("Virginia", 312)]
    (asked,) = played.asked
    assert asked.path == "/v4/carbon-intensity/latest"
    assert asked.query == {"zone": "US-MIDA-PJM", "disableCallerLookup": "true", "emissionFactorType": "lifecycle"}
    assert asked.headers["auth-token"] == "planted-key"


def test_v3_is_another_base_url(http: Http, played: Player) -> None:
    played.always(as_json(em_row("10:00", 312, temporalGranularity="absent", emissionFactorType="direct")))
    old = ElectricityMaps(http, "planted-key", base_url=f"{played.url}/v3/", basis="direct")
    assert old.latest("DE").points[0].basis == "direct"
    assert (played.asked[0].path, played.asked[0].query["emissionFactorType"]) == (
        "/v3/carbon-intensity/latest",
        "direct",
    )


def test_the_last_day_is_asked_of_history_and_what_is_older_of_past_range(
    maps: ElectricityMaps, played: Player
) -> None:
    def play(asked: Asked) -> Reply:
        if asked.path.endswith("/history"):
            return as_json({"zone": "DE", "history": [em_row("08:00", 1), em_row("09:00", 2)]})
        return as_json({"zone": "DE", "data": [em_row(asked.query["start"].replace("Z", "+00:00"), 3)]})

    played.play = play
    assert [point.g_per_kwh for point in maps.history("DE", utc("09:00"), utc("10:00")).points] == [2]
    long = maps.history("DE", utc("2026-11-01T00:00:00+00:00"), utc("2026-11-25T00:00:00+00:00"))
    assert [f"{point.start:%m-%d}" for point in long.points] == ["11-01", "11-11", "11-21"]  # at most ten days each
    assert [asked.query.get("end") for asked in played.asked] == [
        None, "2026-11-11T00:00:00Z", "2026-11-21T00:00:00Z", "2026-11-25T00:00:00Z",
    ]  # fmt: skip


def test_a_plan_without_forecasts_says_so_and_leaves_latest_alone(maps: ElectricityMaps, played: Player) -> None:
    played.play = lambda asked: (
        as_json({"error": "Endpoint not available"}, 401)
        if asked.path.endswith("forecast")
        else as_json(em_row("10:00"))
    )
    with pytest.raises(SourceProblem, match="HTTP 401: Endpoint not available; check the key, and whether its plan"):
        maps.forecast("DE")
    assert maps.latest("DE").points[0].g_per_kwh == 300


@pytest.mark.parametrize(("zone", "words"), [("US", "US-CAL-CISO"), ("DK", "DK-DK1 or DK-DK2"), ("", "such as DE")])
def test_a_country_without_data_as_a_whole_is_not_asked_for(
    maps: ElectricityMaps, played: Player, zone: str, words: str
) -> None:
    with pytest.raises(SourceProblem, match=words) as raised:
        maps.latest(zone)
    assert raised.value.kind == "not_found"
    assert played.asked == []


def test_an_outage_shows_the_last_value_with_its_age(maps: ElectricityMaps, played: Player, clock: Clock) -> None:
    played.always(as_json(em_row("10:00", 312)))
    assert maps.latest("DE").age_s == 0
    played.always(Reply(b"<html>", 403, "text/html"))
    clock.go_on(7200)
    answer = maps.latest("DE")
    assert (answer.points[0].g_per_kwh, answer.age_s) == (312, 7200)
    assert answer.problem is not None and answer.problem.kind == "no_access"
