"""The one way to ask a provider, against a real server that behaves well and badly."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from datetime import timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from collectors.http.access import Access, BasicLogin, HeaderKey
from collectors.http.client import Ask, Http, scrubbed
from collectors.http.problem import SourceProblem, UnusableAnswer
from collectors.http.transport import MOST_UNDER_WAY, Bounds, NoReply, Transport
from tests.collectors.http.clocks import NOW, Clock
from tests.collectors.http.playing import Player, Reply, as_json, player

HTML = Reply(b"<html><head><title>403 ERROR</title></head>secret page</html>", 403, "text/html")
KEY = "planted-KEY/9+f?=&x"


def ask(played: Player, about: str = "zone DE, latest", **more: Any) -> Ask:
    return Ask("someone", played.url, "/v1/value", about, {"zone": about}, **more)


def value(http: Http, question: Ask) -> Any:
    return http.get(question, lambda data, _: data["value"]).value


def problem(http: Http, question: Ask) -> SourceProblem:
    with pytest.raises(SourceProblem) as raised:
        http.get(question, lambda data, _: data)
    return raised.value


def test_an_answer_is_read_with_its_moment(http: Http, played: Player) -> None:
    played.always(as_json({"value": 7}))
    fetched = http.get(ask(played), lambda data, moment: (data["value"], moment))
    assert fetched.value == (7, NOW)
    assert (fetched.age_s, fetched.problem) == (0.0, None)
    assert played.asked[0].headers["user-agent"] == "wattmix"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (as_json({"error": "Token unauthorized for zoneKey=FR"}, 401), "no_access", "HTTP 401: Token unauthorized for"),
        (as_json({"error": "Denied", "message": "No."}, 403), "no_access", "HTTP 403: Denied: No."),
        (HTML, "no_access", "HTTP 403: an HTML page instead of JSON"),
        (as_json({"status": "error", "message": "Zone 'US' does not exist."}, 404), "not_found", "'US' does not exist"),
        (as_json({"error": 'No recent data for zone "X"'}, 404), "no_recent_data", "No recent data"),
        (as_json({"error": {"code": "400 Bad", "message": "Wrong date."}}, 400), "refused", "Wrong date."),
        (as_json({"error": {"message": "Resource not found."}}, 500), "failed", "HTTP 500: Resource not found."),
        (Reply(b"oops", 500, "text/plain"), "failed", "HTTP 500"),
        (Reply(b"[1, 2", 502), "failed", "HTTP 502"),
        (as_json({}, 429), "rate_limited", "HTTP 429"),
        (Reply(b"", 200), "empty", "HTTP 200 with an empty body"),
        (Reply(b" \n", 200), "empty", "HTTP 200 with an empty body"),
        (Reply(b"", 204), "empty", "HTTP 204"),
        (Reply(b"[]", 200), "empty", "no data"),
        (Reply(b"{}", 200), "empty", "no data"),
        (Reply(b"null", 200), "empty", "no data"),
        (Reply(b"<html></html>", 200, "text/html"), "malformed", "an HTML page instead of JSON"),
        (Reply(b"\n<!doctype html>", 200), "malformed", "an HTML page instead of JSON"),
        (Reply(b"value=7", 200, "text/plain"), "malformed", "not JSON"),
        (Reply(b"[" * 5000, 200), "malformed", "not JSON"),
        (Reply(b"\xff\xfe\x00", 200), "malformed", "not JSON"),
        (Reply(b'{"value": 7}', 200, headers={"Content-Encoding": "gzip"}), "malformed", "compressed"),
        (Reply(b'"' + b"a" * 200_000 + b'"', 200), "malformed", "an answer of more than 0.0953674 MiB"),
        (Reply(b'{"value"', 200, cut=True), "unreachable", "cut before the answer was complete"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told_in_words(http: Http, played: Player, reply: Reply, kind: str, words: str) -> None:
    played.always(reply)
    told = problem(http, ask(played))
    assert told.kind == kind
    assert words in str(told)
    assert str(told).startswith(f"someone, zone DE, latest at {played.url}: ")
    assert told.advice and str(told).endswith(told.advice)
    assert "secret page" not in str(told)


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(b"{", trickle=True)])
def test_a_slow_answer_ends_in_time(http: Http, played: Player, reply: Reply) -> None:
    played.always(reply)
    begun = time.monotonic()
    told = problem(http, ask(played))
    assert told.kind == "timed_out"
    assert time.monotonic() - begun < 6.0  # bounds of 1 s and 2 s; the rest is room for a busy machine


def test_a_port_without_a_server_is_unreachable(http: Http, played: Player) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    told = problem(http, Ask("someone", f"http://127.0.0.1:{port}", "/v1", "zone DE, latest"))
    assert (told.kind, told.status) == ("unreachable", None)
    assert "no connection: refused" in str(told)


def test_a_connection_that_ends_without_an_answer_is_unreachable(http: Http) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rude:
        rude.settimeout(2)

        def hang_up() -> None:
            rude.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        told = problem(http, Ask("someone", f"http://127.0.0.1:{rude.getsockname()[1]}", "/v1", "zone DE, latest"))
    assert told.kind == "unreachable"


def test_a_fresh_answer_is_not_asked_for_again(http: Http, played: Player, clock: Clock) -> None:
    played.always(as_json({"value": 7}))
    question = ask(played, fresh_s=900)
    assert value(http, question) == 7
    played.always(as_json({"value": 8}))
    clock.go_on(899)
    fetched = http.get(question, lambda data, _: data["value"])
    assert (fetched.value, fetched.age_s, fetched.fetched_at) == (7, 899, NOW)
    clock.go_on(1)
    assert value(http, question) == 8
    assert len(played.asked) == 2


def test_the_cache_tells_zones_and_keys_apart(http: Http, played: Player) -> None:
    played.play = lambda asked: as_json({"value": [asked.query["zone"], asked.headers.get("auth-token")]})
    keys = [HeaderKey("auth-token", "first-key"), HeaderKey("auth-token", "other-key")]
    questions = [ask(played, zone, fresh_s=900, access=key) for zone in ("DE", "FR") for key in keys]
    assert [value(http, question) for question in questions * 2] == [
        ["DE", "first-key"], ["DE", "other-key"], ["FR", "first-key"], ["FR", "other-key"],
    ] * 2  # fmt: skip
    assert len(played.asked) == 4


def test_a_kept_answer_stands_in_with_its_age_and_the_problem(http: Http, played: Player, clock: Clock) -> None:
    played.always(as_json({"value": 7}))
    question = ask(played, fresh_s=60, stale_s=3600)
    value(http, question)
    played.always(as_json({}, 500))
    clock.go_on(600)
    fetched = http.get(question, lambda data, _: data["value"])
    assert (fetched.value, fetched.age_s) == (7, 600)
    assert fetched.problem is not None and fetched.problem.kind == "failed"
    clock.go_on(3001)
    assert problem(http, question).kind == "failed"


def test_an_answer_that_no_reader_takes_is_a_failure_and_does_not_replace_the_kept_one(
    http: Http, played: Player, clock: Clock
) -> None:
    def read(data: Any, _: object) -> Any:
        if "value" not in data:
            raise UnusableAnswer("no value in it")
        return data["value"]

    question = ask(played, fresh_s=60, stale_s=3600)
    played.always(as_json({"value": 7}))
    http.get(question, read)
    played.always(as_json({"odd": 1}))
    clock.go_on(100)
    fetched = http.get(question, read)
    assert fetched.value == 7
    assert fetched.problem is not None and "no value in it" in str(fetched.problem)
    assert len(played.asked) == 2
    http.get(question, read)
    assert len(played.asked) == 2  # left alone for 30 s


def test_after_failures_it_waits_30_s_doubling_to_an_hour_and_a_success_ends_that(
    http: Http, played: Player, clock: Clock
) -> None:
    played.always(as_json({}, 500))
    question = ask(played)
    for wait_s in (30, 60, 120, 240, 480, 960, 1920, 3600, 3600):
        problem(http, question)
        before = len(played.asked)
        clock.go_on(wait_s - 1)
        told = problem(http, question)
        assert len(played.asked) == before
        assert told.in_cool_down and told.retry_after_s == pytest.approx(1)
        assert "not asked again for 1 s" in str(told)
        clock.go_on(1)
    played.always(as_json({"value": 7}))
    assert value(http, question) == 7
    played.always(as_json({}, 500))
    assert not problem(http, question).in_cool_down
    clock.go_on(30)
    assert not problem(http, question).in_cool_down


@pytest.mark.parametrize(
    ("written", "wait_s"),
    [
        ("90", 90), ("5", 30), ("0", 30), ("soon", 30), ("-5", 30), ("999999", 86_400),
        (format_datetime(NOW + timedelta(seconds=120), usegmt=True), 120),
        (format_datetime(NOW - timedelta(seconds=120), usegmt=True), 30),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
    ],
)  # fmt: skip
def test_retry_after_is_respected_in_seconds_and_as_a_date(
    http: Http, played: Player, clock: Clock, written: str, wait_s: float
) -> None:
    played.always(as_json({}, 429, Retry_After=written))
    problem(http, ask(played))
    clock.go_on(wait_s - 1)
    assert problem(http, ask(played)).in_cool_down
    assert len(played.asked) == 1
    clock.go_on(1)
    assert not problem(http, ask(played)).in_cool_down


def test_a_zone_without_data_does_not_stop_other_zones_but_a_limit_does(http: Http, played: Player) -> None:
    played.always(as_json({"error": "no such zone"}, 404))
    problem(http, ask(played, "zone XX, latest"))
    played.always(as_json({"value": 7}))
    assert value(http, ask(played, "zone DE, latest")) == 7
    played.always(as_json({}, 429))
    problem(http, ask(played, "zone DE, latest"))
    assert problem(http, ask(played, "zone FR, latest")).in_cool_down


def test_a_redirect_is_followed_on_the_same_host_only(http: Http, played: Player) -> None:
    access = HeaderKey("auth-token", KEY)
    moved = Reply(b"", 302, headers={"Location": f"{played.url}/v2/value"})
    played.play = lambda asked: as_json({"value": 7}) if asked.path == "/v2/value" else moved
    assert value(http, ask(played, access=access)) == 7
    assert played.asked[-1].headers["auth-token"] == KEY
    with player() as other:
        other.always(as_json({"value": 8}))
        played.always(Reply(b"", 302, headers={"Location": f"{other.url}/v1/value?token={KEY}"}))
        told = problem(http, ask(played, "zone FR, latest", access=access))
        assert other.asked == []
    assert "redirects to http://127.0.0.1, which is not followed" in str(told)
    assert KEY not in str(told)


def test_redirects_in_a_circle_end(http: Http, played: Player) -> None:
    played.always(Reply(b"", 302, headers={"Location": "/v1/value"}))
    assert "more than 3 redirects" in str(problem(http, ask(played)))


def test_a_netrc_of_the_user_is_not_sent(
    http: Http, played: Player, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n", encoding="ascii")
    monkeypatch.setenv("NETRC", str(netrc))
    played.always(as_json({"value": 7}))
    value(http, ask(played))
    assert "authorization" not in played.asked[0].headers


def test_a_proxy_of_the_environment_is_not_for_this_machine(
    http: Http, played: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    played.always(as_json({"value": 7}))
    assert value(http, ask(played)) == 7


def everything_about(raised: BaseException, http: Http, question: Ask, records: list[logging.LogRecord]) -> str:
    """All that a page, a log or a debugger's first look would show."""
    chain: list[BaseException | None] = [raised, raised.__context__, raised.__cause__]
    shown = [repr(one) + str(one) for one in chain if one is not None]
    shown += [repr(vars(raised)), repr(question), repr(question.access), repr(question.key), repr(vars(http))]
    return "\n".join([*shown, *(f"{record.getMessage()} {record.args!r}" for record in records)])


@pytest.mark.parametrize(
    "access",
    [
        HeaderKey("auth-token", KEY),
        BasicLogin("someone", KEY),
    ],
)
def test_keys_appear_nowhere(
    http: Http, played: Player, caplog: pytest.LogCaptureFixture, clock: Clock, access: Access
) -> None:
    caplog.set_level(logging.DEBUG)
    hidden = [KEY, "planted-KEY", *access.secrets(), *access.headers().values()]

    def echo(asked: Any) -> Reply:
        words = f"{asked.query} {asked.headers} planted {KEY} {' '.join(access.secrets())}"
        return as_json({"error": words}, 403)

    question = ask(played, access=access, fresh_s=10, stale_s=20)
    played.always(as_json({"value": 7}))
    value(http, question)
    sent = [*played.asked[0].headers.values(), *played.asked[0].query.values()]
    assert any(word in hidden for word in sent)
    clock.go_on(100)
    replies = [
        Reply(hang=True),
        Reply(b"{", cut=True),
        Reply(b"", 302, headers={"Location": f"http://x.invalid/{KEY}"}),
    ]
    for number, play in enumerate([echo, *(lambda _, reply=reply: reply for reply in replies)]):
        played.play = play
        clock.go_on(5000)
        told = problem(http, ask(played, f"zone {number}, latest", access=access))
        shown = everything_about(told, http, question, caplog.records)
        assert not [word for word in hidden if word in shown]
    assert "[key]" in scrubbed(f"x {KEY} y", (KEY,))


@pytest.mark.parametrize("length", [150, 170, 185, 188])
def test_a_key_that_is_cut_with_a_providers_words_is_hidden_as_well(http: Http, played: Player, length: int) -> None:
    # 200 characters of what a provider says are shown; the key begins within them and may end behind.
    played.always(as_json({"error": "x" * length + KEY}, 403))
    told = problem(http, ask(played, access=HeaderKey("auth-token", KEY)))
    assert "x[k" in told.what
    assert KEY[:6] not in str(told)


def test_a_key_in_a_quotation_or_a_hosts_name_is_hidden() -> None:
    assert scrubbed(repr("a" + "plan\\ted\\key"), ("plan\\ted\\key",)) == "'a[key]'"
    assert scrubbed("it redirects to http://planted-key.invalid", ("Planted-KEY",)) == (
        "it redirects to http://[key].invalid"
    )
    for spelled in (KEY, quote(KEY), quote(KEY, safe=""), quote_plus(KEY), repr(KEY)[1:-1]):
        assert scrubbed(f"/v1?token={spelled} was asked", (KEY, "planted")) == "/v1?token=[key] was asked"
    assert scrubbed("plan to plant", ("planted-key",)) == "plan to plant"


def test_a_key_in_the_query_of_a_redirect_is_not_logged(
    http: Http, played: Player, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    moved = Reply(b"", 302, headers={"Location": "/v2/value?token=planted-key"})
    played.play = lambda asked: as_json({"value": 7}) if asked.path == "/v2/value" else moved
    assert value(http, ask(played, access=HeaderKey("auth-token", "planted-key"))) == 7
    assert played.asked[-1].query == {"token": "planted-key"}
    logged = [f"{record.getMessage()} {record.args!r}" for record in caplog.records]
    assert any("/v2/value" in line for line in logged)
    assert not any("planted" in line for line in logged)


def test_the_cache_tells_what_is_posted_apart(http: Http, played: Player) -> None:
    played.play = lambda asked: as_json({"value": json.loads(asked.body)["of"]})
    questions = [ask(played, fresh_s=900, body={"of": of}) for of in (1, 2)]
    assert [value(http, question) for question in questions * 2] == [1, 2, 1, 2]
    assert len(played.asked) == 2


def test_a_key_that_is_none_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match="printable ASCII") as raised:
        HeaderKey("auth-token", "planted\nkey")
    assert "planted" not in str(raised.value)


def test_words_of_a_provider_are_cut_and_printable() -> None:
    assert scrubbed("a\x1b[31mb\n" + "c" * 500, ()) == "a [31mb " + "c" * 192


def test_hanging_requests_do_not_pile_up(played: Player) -> None:
    played.always(Reply(hang=True))
    transport = Transport(bounds=Bounds(connect_s=1, read_s=3, total_s=0.02))
    for _ in range(MOST_UNDER_WAY):
        with pytest.raises(NoReply, match="no complete answer"):
            transport.ask(f"{played.url}/", {}, {})
    with pytest.raises(NoReply, match="8 earlier requests still wait"):
        transport.ask(f"{played.url}/", {}, {})
