"""The routes of facts: what is known, an import all or none, and who may."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette

from app.answers.facts import facts_as_csv
from app.config import Config
from app.hub.parts import HubParts
from app.store.database import Store
from app.store.facts import read_facts
from tests.facts.builders import rented
from tests.hub.asgi import Reply, ask

ELSEWHERE = "192.0.2.7"
PUES = b"kind,subject,valid_from,source,pue\npue,h100,2026-03-01,report,1.1\n"
CONFIG = Config.model_validate({"fleet": [{"name": "h100", "gpu": "*", "pue": 1.2, "price": rented(2.0)}]})


@pytest.fixture
def parts(store: Store) -> Iterator[HubParts]:
    made = HubParts(store, CONFIG)
    yield made
    made.close()


@pytest.fixture
def hub(parts: HubParts) -> Starlette:
    return Starlette(routes=parts.api.routes())


def told(reply: Reply, status: int) -> str:
    assert reply.status == status, reply.text
    assert list(reply.json()) == ["error"]
    return str(reply.json()["error"])


def post(hub: Starlette, body: bytes = PUES, **said: str) -> Reply:
    given = {"content_type": "text/csv", **said}
    return ask(hub, "POST", "/api/v1/facts", body=body, **given)  # type: ignore[arg-type]


def test_a_hub_takes_over_its_settings_when_it_starts(hub: Starlette) -> None:
    answer = ask(hub, "GET", "/api/v1/facts").json()
    assert {(one["kind"], one["subject"], one["source"]) for one in answer["facts"]} == {
        ("price", "h100", "wattmix.toml"), ("pue", "*", "wattmix.toml"), ("pue", "h100", "wattmix.toml"),
        ("zone", "*", "wattmix.toml"), ("embodied", "*", "wattmix.toml"),
    }  # fmt: skip
    assert {one["standing"] for one in answer["facts"]} == {"in force"}


def test_an_import_is_in_force_at_once(hub: Starlette, parts: HubParts) -> None:
    assert post(hub).json() == {"new": 1, "known": 0, "notes": []}
    assert post(hub).json() == {"new": 0, "known": 1, "notes": []}
    query = {"kind": "pue", "subject": "h100", "at": "2026-03-02T00:00:00+01:00"}
    [found] = ask(hub, "GET", "/api/v1/facts", query=query).json()["facts"]
    assert (found["value"], found["source"]) == ({"pue": 1.1}, "report")
    [before] = ask(hub, "GET", "/api/v1/facts", query=query | {"at": "2026-02-28"}).json()["facts"]
    assert before["value"] == {"pue": 1.2}


def test_what_was_known_earlier_can_be_asked(hub: Starlette) -> None:
    post(hub)
    query = {"known_at": "2026-01-01T00:00:00Z"}
    assert ask(hub, "GET", "/api/v1/facts", query=query).json() == {
        "known_at": "2026-01-01T00:00:00+00:00", "facts": [],
    }  # fmt: skip


def test_the_csv_is_the_form_of_an_import(hub: Starlette, parts: HubParts) -> None:
    post(hub)
    reply = ask(hub, "GET", "/api/v1/facts", query={"format": "csv", "kind": "pue"})
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    assert reply.headers["content-disposition"] == 'attachment; filename="facts.csv"'
    assert reply.text == facts_as_csv(ask(hub, "GET", "/api/v1/facts", query={"kind": "pue"}).json())
    assert post(hub, reply.body).json() == {"new": 0, "known": 3, "notes": []}


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"kind": "prise"}, 404, "no facts of kind 'prise'; there are: membership, price,"),
        ({"at": "noon"}, 400, "query `at`: given 'noon'; accepted: a date (midnight in UTC) or a moment with"),
        (
            {"known_at": "2999-01-01T00:00Z"},
            400,
            "query `known_at`: given '2999-01-01T00:00Z'; accepted: a moment that",
        ),
        ({"format": "xlsx"}, 400, "query `format`: given 'xlsx'; accepted: json, csv"),
        ({"fleet": "h100"}, 400, "query `fleet`: no such parameter; accepted: at, format, kind, known_at, subject"),
    ],
)
def test_a_mistake_in_a_question_is_told(hub: Starlette, query: dict[str, str], status: int, words: str) -> None:
    assert words in told(ask(hub, "GET", "/api/v1/facts", query=query), status)


def test_a_bad_body_is_told_under_the_name_of_its_file_and_leaves_nothing(hub: Starlette, store: Store) -> None:
    known = read_facts(store)
    body = PUES + b"pue,h100,2026-04-01,report,0.1\n"
    assert told(post(hub, body), 422) == "body: line 3, column `pue`: given '0.1'; accepted: a number >= 1"
    named = ask(hub, "POST", "/api/v1/facts", query={"file": "a b.csv"}, body=body, content_type="text/csv")
    assert told(named, 422).startswith("a b.csv: line 3, column `pue`")
    assert told(post(hub, b"\xff"), 422) == "body: not UTF-8 text"
    newline = ask(hub, "POST", "/api/v1/facts", query={"file": "a\nb"}, body=PUES, content_type="text/csv")
    assert "query `file`" in told(newline, 400)
    assert read_facts(store) == known


def test_reading_needs_a_token_from_elsewhere_and_an_import_is_for_this_machine_only(
    hub: Starlette, parts: HubParts
) -> None:
    token = parts.backend.create_token("grafana", "read", None)
    told(ask(hub, "GET", "/api/v1/facts", client=ELSEWHERE), 401)
    assert ask(hub, "GET", "/api/v1/facts", client=ELSEWHERE, token=token).status == 200
    told(ask(hub, "POST", "/api/v1/facts", body=PUES, content_type="text/csv", client=ELSEWHERE, token=token), 403)


def test_no_web_page_can_send_facts(hub: Starlette) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded"):
        assert told(post(hub, content_type=content_type), 415) == "Content-Type: text/csv is accepted"
