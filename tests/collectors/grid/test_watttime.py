"""WattTime: marginal, in pounds per MWh, behind a login."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from collectors.grid.provider import IntensityAnswer
from collectors.grid.watttime import WattTime, read_moer
from collectors.http.client import Http
from collectors.http.problem import SourceProblem, UnusableAnswer
from tests.collectors.grid.shapes import moer
from tests.collectors.http.clocks import NOW, Clock, utc
from tests.collectors.http.playing import Asked, Player, Reply, as_json

Sample = Callable[[str], Any]
PASSWORD = "planted-password"


def read(data: Any) -> IntensityAnswer:
    return read_moer(data, NOW, zone="here", region="CAISO_NORTH")


class Service:
    """Plays the login and the data; tokens: those that are taken, newest last."""

    def __init__(self, played: Player, data: Callable[[Asked], Any]) -> None:
        self.tokens: list[str] = []
        self.logins: list[Asked] = []
        self.data = data
        played.play = self.play

    def play(self, asked: Asked) -> Reply:
        if asked.path == "/login":
            self.logins.append(asked)
            self.tokens.append(f"planted-token-{len(self.logins)}")
            return as_json({"token": self.tokens[-1]})
        if asked.headers.get("authorization") not in [f"Bearer {token}" for token in self.tokens]:
            return as_json({"error": "token expired"}, 401)
        answer = self.data(asked)
        return answer if isinstance(answer, Reply) else as_json(answer)


@pytest.fixture
def watttime(http: Http, played: Player) -> WattTime:
    return WattTime(http, "someone", PASSWORD, base_url=played.url, zones={"US-CA": "CAISO_NORTH"})


def test_history_of_the_sample(sample: Sample) -> None:
    answer = read(sample("watttime/v3_historical"))
    # 911 lb/MWh x 453.59237 g/lb / 1000 kWh/MWh = 413.22264907 g/kWh
    assert answer.points[0].g_per_kwh == pytest.approx(413.22264907)
    assert [point.g_per_kwh for point in answer.points[1:]] == pytest.approx(
        [411.99795, 410.90933, 410.90933], abs=1e-5
    )
    assert {(point.kind, point.basis, point.is_forecast) for point in answer.points} == {
        ("marginal", "provider", False)
    }
    assert all(point.end - point.start == timedelta(minutes=5) for point in answer.points)
    assert answer.notes == ("MOER model 2023-03-01", "Some data were excluded from the response (imputed).")


def test_a_forecast_of_the_sample_where_0_is_a_value(sample: Sample) -> None:
    points = read(sample("watttime/v3_forecast")).points
    # 870 x 0.45359237 = 394.6253619; 120.4 x 0.45359237 = 54.612521
    assert [points[0].g_per_kwh, points[4].g_per_kwh, points[5].g_per_kwh] == pytest.approx([394.6253619, 0, 54.612521])
    assert all(point.is_forecast and point.issued_at == utc("10:00") for point in points)
    assert {point.estimation_method for point in points} == {"model 2023-03-01"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("v3_signal_index", "`units` is 'percentile'; lbs_co2_per_mwh is read"),
        ("v3_region_from_loc", "`meta` is missing"),
        ("v3_forecast_historical", "`point_time` is missing"),
        ("login", "`meta` is missing"),
    ],
)
def test_an_answer_to_another_question_is_refused(sample: Sample, name: str, words: str) -> None:
    with pytest.raises(UnusableAnswer, match=words):
        read(sample(f"watttime/{name}"))


def test_the_token_of_the_sample_is_used(sample: Sample, watttime: WattTime, played: Player) -> None:
    login, data = sample("watttime/login"), sample("watttime/v3_forecast")
    played.play = lambda asked: as_json(login if asked.path == "/login" else data)
    assert watttime.latest("US-CA").points[0].start == utc("10:05")
    assert played.asked[1].headers["authorization"] == f"Bearer {login['token']}"


def test_a_region_that_the_plan_lacks(sample: Sample, watttime: WattTime, played: Player) -> None:
    refusal = as_json(sample("watttime/error_403"), 403)
    Service(played, lambda _: refusal)
    with pytest.raises(SourceProblem, match="HTTP 403: Permission denied: Insufficient permissions") as raised:
        watttime.latest("US-CA")
    assert raised.value.kind == "no_access"


def test_a_403_of_its_front_is_html_and_not_parsed(watttime: WattTime, played: Player) -> None:
    Service(played, lambda _: Reply(b"<HTML><H1>403 ERROR</H1> CloudFront</HTML>", 403, "text/html"))
    with pytest.raises(SourceProblem, match="HTTP 403: an HTML page instead of JSON"):
        watttime.latest("US-CA")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"units": "percentile", "signal_type": "co2_moer"}, "`units` is 'percentile'"),
        ({"units": "absent"}, "`units` is 'None'"),
        ({"signal_type": "health_damage"}, "is about 'health_damage', signal_type 'co2_moer'"),
        ({"region": "PJM_DC"}, "is about 'PJM_DC', region 'CAISO_NORTH' was asked for"),
        ({"data_point_period_seconds": "absent"}, "`data_point_period_seconds` is missing"),
        ({"data_point_period_seconds": "absent", "data_point_periods_second": 300}, "is missing"),
        ({"data_point_period_seconds": 1e-9}, "`data_point_period_seconds` is 1e-09"),
        ({"data_point_period_seconds": 0}, "`data_point_period_seconds` is 0"),
        ({"data_point_period_seconds": "300"}, "`data_point_period_seconds` is 300"),
        ({"model": None}, "`model` is missing"),
        ({"generated_at": "now"}, "`generated_at` 'now' is not a time"),
    ],
)
def test_what_is_no_answer_is_refused_by_name(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UnusableAnswer) as raised:
        read(moer({"10:00": 900}, **change))
    assert words in str(raised.value)


def test_the_period_is_the_answers_and_gaps_have_reasons() -> None:
    answer = read(moer({"10:00": None, "10:15": -1, "10:30": 9000, "10:45": 0}, data_point_period_seconds=900))
    assert [point.g_per_kwh for point in answer.points] == [None, None, None, 0]
    assert all(point.reason for point in answer.points[:3])
    assert answer.points[0].end == utc("10:15")
    with pytest.raises(UnusableAnswer, match="`data` is empty") as raised:
        read(moer({}))
    assert raised.value.kind == "empty"


def test_it_logs_in_once_and_again_when_the_token_is_no_longer_taken(
    watttime: WattTime, played: Player, clock: Clock
) -> None:
    service = Service(played, lambda _: moer({"10:05": 870}, generated="10:05"))
    (point,) = watttime.latest("US-CA").points
    assert (point.zone, point.is_forecast, point.g_per_kwh) == ("US-CA", True, pytest.approx(394.6253619))
    basic = base64.b64encode(f"someone:{PASSWORD}".encode()).decode()
    assert service.logins[0].headers["authorization"] == f"Basic {basic}"
    assert played.asked[-1].query == {"region": "CAISO_NORTH", "signal_type": "co2_moer", "horizon_hours": "0"}
    clock.go_on(300)
    watttime.latest("US-CA")
    assert len(service.logins) == 1
    service.tokens.clear()
    clock.go_on(300)
    watttime.latest("US-CA")
    assert len(service.logins) == 2
    assert played.asked[-1].headers["authorization"] == "Bearer planted-token-2"


def test_a_token_that_is_never_taken_is_renewed_once_and_no_more(watttime: WattTime, played: Player) -> None:
    service = Service(played, lambda _: as_json({"error": "no"}, 401))
    with pytest.raises(SourceProblem, match="HTTP 401") as raised:
        watttime.latest("US-CA")
    assert raised.value.kind == "no_access"
    assert (len(service.logins), len(played.asked)) == (2, 4)


def test_a_wrong_password_is_told_once_for_all_zones_and_shown_nowhere(
    watttime: WattTime, played: Player, http: Http, caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    caplog.set_level(logging.DEBUG)
    basic = base64.b64encode(f"someone:{PASSWORD}".encode()).decode()
    played.always(as_json({"error": f"bad password {PASSWORD} in {basic}"}, 401))
    for _ in range(3):
        with pytest.raises(SourceProblem, match=r"login at .*HTTP 401: bad password") as raised:
            watttime.latest("US-CA")
        shown = f"{raised.value!r} {raised.value} {vars(raised.value)} {raised.value.__context__!r} {vars(http)}"
        shown += " ".join(f"{record.getMessage()} {record.args}" for record in caplog.records)
        assert PASSWORD not in shown and basic not in shown
    assert len(played.asked) == 1
    clock.go_on(30)
    Service(played, lambda _: moer({"10:05": 870}, generated="10:05"))
    assert watttime.latest("US-CA").points


def test_a_token_is_shown_nowhere(watttime: WattTime, played: Player, http: Http, clock: Clock) -> None:
    service = Service(played, lambda asked: as_json({"error": f"cannot take {asked.headers['authorization']}"}, 403))
    with pytest.raises(SourceProblem) as raised:
        watttime.latest("US-CA")
    shown = f"{raised.value!r} {vars(raised.value)} {vars(http)} {vars(watttime)}"
    assert service.tokens[0] == "planted-token-1"
    assert "planted" not in shown
    assert "cannot take Bearer [key]" in shown


def test_the_token_before_is_shown_nowhere_either(watttime: WattTime, played: Player) -> None:
    tokens = iter(["first-planted", "second-planted"])

    def play(asked: Asked) -> Reply:
        if asked.path == "/login":
            return as_json({"token": next(tokens)})
        stale = asked.headers["authorization"] == "Bearer first-planted"
        return as_json({"error": "no longer first-planted"}, 401 if stale else 403)

    played.play = play
    with pytest.raises(SourceProblem, match=r"HTTP 403: no longer \[key\]"):
        watttime.latest("US-CA")


@pytest.mark.parametrize("body", [{"token": ""}, {"token": 3}, {"tokens": "x"}, {"token": "two\nlines"}])
def test_a_login_without_a_token_is_no_login(watttime: WattTime, played: Player, body: Any) -> None:
    played.always(as_json(body))
    with pytest.raises(SourceProblem, match=r"login at .*`token`") as raised:
        watttime.latest("US-CA")
    assert raised.value.kind == "malformed"


def test_history_is_asked_in_30_days_whose_inclusive_ends_count_once(watttime: WattTime, played: Player) -> None:
    def data(asked: Asked) -> Any:
        since, until = (utc(asked.query[name].replace("Z", "+00:00")) for name in ("start", "end"))
        assert until - since <= timedelta(days=30)
        ends = {
            since.isoformat(): 900.0,
            (until + timedelta(seconds=1)).isoformat(): 100.0,
        }  # both ends, and a bit more
        return moer(ends)

    Service(played, data)
    answer = watttime.history("US-CA", utc("2026-09-01T00:00:00+00:00"), utc("2026-11-01T00:00:00+00:00"))
    assert [f"{point.start:%m-%d}" for point in answer.points] == ["09-01", "10-01", "10-31"]
    assert [point.g_per_kwh for point in answer.points] == pytest.approx([900 * 0.45359237] * 3)


@pytest.mark.parametrize("zone", ["DE", "US-NY", "caiso north"])
def test_a_zone_without_region_is_not_asked_for(watttime: WattTime, played: Player, zone: str) -> None:
    with pytest.raises(SourceProblem, match="a region of WattTime such as CAISO_NORTH"):
        watttime.latest(zone)
    assert played.asked == []
