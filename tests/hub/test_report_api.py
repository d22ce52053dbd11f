"""The routes of reports: the same figures as the command's, schedules, runs and files, and who may."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from starlette.applications import Starlette

from app.backend.local import LocalBackend
from app.config import Config
from app.errors import DeliveryError
from app.hub.parts import HubParts
from app.reports.columns import NAMES
from app.reports.report import report_from_json
from app.store.database import Store
from tests.hub.asgi import Reply, ask
from tests.reports.lines import Account

ELSEWHERE = "192.0.2.7"
QUERY = {"kind": "fleet-day", "from": "2026-02-01", "to": "2026-02-04", "tz": "Europe/Madrid"}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    daily = {"name": "daily", "kind": "fleet-day", "cron": "0 6 * * *", "tz": "Europe/Madrid"}
    return Config.model_validate({"reports": {"folder": str(tmp_path / "out")}, "report": [daily]})


@pytest.fixture
def parts(store: Store, config: Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubParts]:
    """A hub whose account is made up."""
    account = Account()
    monkeypatch.setattr(LocalBackend, "account", lambda self, *given, **said: account(*given, **said))
    made = HubParts(store, config)
    yield made
    made.close()


@pytest.fixture
def hub(parts: HubParts) -> Starlette:
    return Starlette(routes=parts.api.routes())


def told(reply: Reply, status: int) -> str:
    assert reply.status == status, reply.text
    assert list(reply.json()) == ["error"]
    return str(reply.json()["error"])


def run_now(hub: Starlette, name: str = "daily", **said: Any) -> Reply:
    return ask(hub, "POST", f"/api/v1/reports/{name}/run", body=b"{}", content_type="application/json", **said)


def yesterday() -> str:
    """The file of a run by hand made now."""
    today = datetime.now(UTC).astimezone(ZoneInfo("Europe/Madrid")).date()
    return f"daily_{today - timedelta(days=1)}_{today}.csv"


def test_a_report_as_json_is_the_whole_report(hub: Starlette) -> None:
    answer = ask(hub, "GET", "/api/v1/report", query=QUERY | {"boundary": "site", "basis": "output"}).json()
    assert answer["columns"] == list(NAMES)
    assert [row["period"] for row in answer["rows"]] == ["2026-02-01", "2026-02-02", "2026-02-03"]
    assert {(row["boundary"], row["basis"]) for row in answer["rows"]} == {("site", "output")}
    assert report_from_json(answer).request.as_words() == {**QUERY, "boundary": "site", "basis": "output"}


def test_a_report_as_csv_is_the_same_report(hub: Starlette) -> None:
    reply = ask(hub, "GET", "/api/v1/report", query=QUERY | {"format": "csv"})
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    named = "fleet-day_Europe-Madrid_2026-02-01_2026-02-04.csv"
    assert reply.headers["content-disposition"] == f'attachment; filename="{named}"'
    rows = list(csv.DictReader(io.StringIO(reply.text, newline="")))
    as_json = ask(hub, "GET", "/api/v1/report", query=QUERY).json()["rows"]
    for cells, row in zip(rows, as_json, strict=True):
        shown = {name: "" if value is None else str(value) for name, value in row.items()}
        assert cells | {"known_at": ""} == shown | {"known_at": ""}


def test_without_dates_it_is_yesterday(hub: Starlette) -> None:
    [row] = ask(hub, "GET", "/api/v1/report", query={"kind": "fleet-day"}).json()["rows"]
    assert row["period"] == (datetime.now(UTC).date() - timedelta(days=1)).isoformat()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "`kind`: given ''; accepted: fleet-day, hourly"),
        ({"kind": "fleet-day", "tz": "Madrid"}, "`tz`: given 'Madrid'; accepted: an IANA time zone"),
        ({"kind": "fleet-day", "from": "soon"}, "`from`: given 'soon'; accepted: a date such as 2026-02-03"),
        ({"kind": "fleet-day", "format": "xlsx"}, "query `format`: given 'xlsx'; accepted: json, csv"),
        ({"kind": "fleet-day", "zone": "UTC"}, "query `zone`: no such parameter; accepted: basis, boundary, format"),
    ],
)
def test_a_mistake_is_told_with_what_is_accepted(hub: Starlette, query: dict[str, str], words: str) -> None:
    assert words in told(ask(hub, "GET", "/api/v1/report", query=query), 400)


def test_schedules_are_listed_with_what_became_of_them(hub: Starlette) -> None:
    [before] = ask(hub, "GET", "/api/v1/reports").json()["reports"]
    assert (before["name"], before["last_run"]) == ("daily", None)
    written = run_now(hub).json()
    [after] = ask(hub, "GET", "/api/v1/reports").json()["reports"]
    assert after["last_run"] == written
    assert (written["status"], written["file"], written["due_at"]) == ("written", yesterday(), None)


def test_a_file_and_its_manifest_come_as_they_were_written(hub: Starlette, tmp_path: Path) -> None:
    file = run_now(hub).json()["file"]
    for name, kind in ((file, "text/csv; charset=utf-8"), (f"{file}.manifest.json", "application/json")):
        reply = ask(hub, "GET", f"/api/v1/reports/daily/files/{name}")
        assert (reply.status, reply.headers["content-type"]) == (200, kind)
        assert reply.body == (tmp_path / "out" / name).read_bytes()
    assert json.loads(reply.body)["file"] == file


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("daily/files/../store.duckdb", "no such route: GET /api/v1/reports/daily/files/../store.duckdb"),
        ("daily/files/..%2Fstore.duckdb", "no file '..%2Fstore.duckdb' of the scheduled report 'daily'"),
        ("daily/files/%2e%2e/store.duckdb", "no such route: GET /api/v1/reports/daily/files/%2e%2e/store.duckdb"),
        ("../files/x", "no file 'x' of the scheduled report '..'"),
        ("daily/files/x.csv", "no file 'x.csv' of the scheduled report 'daily'"),
        ("daily/files/", "no such route: GET /api/v1/reports/daily/files/;"),
        ("other/files/x.csv", "no file 'x.csv' of the scheduled report 'other'"),
        ("daily/files/..", "no file '..' of the scheduled report 'daily'"),
    ],
)
def test_no_other_file_is_given(hub: Starlette, path: str, words: str) -> None:
    run_now(hub)
    assert told(ask(hub, "GET", f"/api/v1/reports/{path}"), 404).startswith(words)


def test_an_unknown_schedule_is_told(hub: Starlette) -> None:
    assert told(run_now(hub, "dayly"), 404) == "no scheduled report 'dayly'; there are: daily"


def test_a_run_that_fails_is_told_in_words(hub: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = DeliveryError("/r/daily.csv: cannot be written: No space left on device.")
    monkeypatch.setattr(LocalBackend, "account", lambda self, *given, **said: Account(problem)(*given, **said))
    assert told(run_now(hub), 503) == str(problem)
    [shown] = ask(hub, "GET", "/api/v1/reports").json()["reports"]
    assert (shown["last_run"]["status"], shown["last_run"]["error"]) == ("failed", str(problem))


def test_no_web_page_can_start_a_run(hub: Starlette) -> None:
    """A page elsewhere may send a form or plain text without asking first, JSON it may not."""
    for content_type in (None, "text/plain", "application/x-www-form-urlencoded"):
        reply = ask(hub, "POST", "/api/v1/reports/daily/run", body=b"{}", content_type=content_type)
        assert told(reply, 415) == "Content-Type: application/json is accepted"
    [shown] = ask(hub, "GET", "/api/v1/reports").json()["reports"]
    assert shown["last_run"] is None


def test_reading_needs_a_token_from_elsewhere_and_a_run_is_for_this_machine_only(
    hub: Starlette, parts: HubParts
) -> None:
    token = parts.backend.create_token("grafana", "read", None)
    run_now(hub)
    reads: list[tuple[str, dict[str, str]]] = [
        ("/api/v1/report", QUERY), ("/api/v1/reports", {}), (f"/api/v1/reports/daily/files/{yesterday()}", {}),
    ]  # fmt: skip
    for path, query in reads:
        assert told(ask(hub, "GET", path, query=query, client=ELSEWHERE), 401).startswith("a token is needed: ")
        assert ask(hub, "GET", path, query=query, client=ELSEWHERE, token=token).status == 200
    assert told(run_now(hub, client=ELSEWHERE, token=token), 403).startswith("this is done on the hub's own machine")
    node_token = parts.backend.create_token("rack", "node", None)
    told(ask(hub, "GET", "/api/v1/reports", client=ELSEWHERE, token=node_token), 403)
