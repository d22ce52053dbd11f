"""A report: rows in order, how well they are known, progress, and its JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app import __version__
from app.accounting.line import AccountLine
from app.reports.report import Report, build_report, report_from_json
from app.reports.request import Request, parse_request
from tests.reports.lines import NOW, Account, figure, line


def asked(kind: str = "fleet-day", first: str = "2026-02-01", after: str = "2026-02-04", **words: str) -> Request:
    return parse_request({"kind": kind, "from": first, "to": after, "tz": "Europe/Madrid", **words}, NOW)


def of(*lines: AccountLine, now: datetime = NOW) -> Report:
    return build_report(asked(), lambda periods, **_: lines, now)


def test_a_report_has_the_lines_of_every_period() -> None:
    account = Account()
    request = asked(boundary="site", basis="output")
    report = build_report(request, account, NOW)
    assert account.asked == request.periods()
    assert [row["period"] for row in report.rows] == ["2026-02-01", "2026-02-02", "2026-02-03"]
    assert {(row["boundary"], row["basis"], row["tz"]) for row in report.rows} == {("site", "output", "Europe/Madrid")}


def test_rows_are_in_the_order_of_time_fleet_and_model_and_what_belongs_to_none_is_last() -> None:
    first, second = asked().periods()[:2]
    made = [
        line(period=period, fleet=fleet, model=model)
        for period in (second, first) for fleet in (None, "b", "a") for model in (None, "y", "x")
    ]  # fmt: skip
    rows = of(*made).rows
    assert [(row["period"], row["fleet"], row["model"]) for row in rows] == [
        (period.label, fleet, model)
        for period in (first, second) for fleet in ("a", "b", None) for model in ("x", "y", None)
    ]  # fmt: skip


def test_a_year_of_days_is_asked_for_a_month_at_a_time_and_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    account = Account()
    report = build_report(asked(first="2025-01-01", after="2026-01-01"), account, NOW, lambda *done: told.append(done))
    assert len(report.rows) == len(account.asked) == 365
    assert told[0] == (31, 365)
    assert told[-1] == (365, 365)


def test_what_a_manifest_says_of_it() -> None:
    # mean coverage by GPU-hours: (48 x 0.995 + 12 x 0.5) / 60 = 0.896
    about = of(line(), line(gpu_hours=figure(12.0), coverage=0.5, method="simulated"), line(coverage=None)).about()
    assert about == {
        "kind": "fleet-day", "from": "2026-02-01", "to": "2026-02-04", "tz": "Europe/Madrid",
        "window_start_utc": "2026-01-31T23:00:00+00:00", "window_end_utc": "2026-02-03T23:00:00+00:00",
        "complete": True, "boundary": "it", "basis": "total", "known_at": "2026-02-04T05:00:00+00:00", "rows": 3,
        "coverage": {"lowest": 0.5, "mean": pytest.approx(0.896)}, "methods": ["measured", "simulated"],
        "simulated": True, "version": __version__,
    }  # fmt: skip


def test_a_report_of_nothing_says_so() -> None:
    about = of().about()
    assert (about["rows"], about["coverage"], about["methods"]) == (0, {"lowest": None, "mean": None}, [])
    assert about["simulated"] is False


def test_a_window_that_is_not_over_is_not_complete() -> None:
    end = datetime(2026, 2, 3, 23, tzinfo=UTC)
    assert of(now=end).is_complete
    assert not of(now=end - timedelta(microseconds=1)).is_complete


def test_json_and_back_is_the_same_report_and_the_same_text() -> None:
    report = of(line(cost=figure(0.1 + 0.2)), line(model=None, tokens_per_joule=figure(None)))
    sent = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert report_from_json(sent) == report
    assert report_from_json(sent).csv == report.csv
    assert report_from_json(sent).about() == report.about()


def test_hours_are_asked_for_a_month_at_a_time_too() -> None:
    told: list[tuple[int, int]] = []
    request = asked("hourly", "2026-01-01", "2026-03-01")
    build_report(request, Account(), NOW, lambda *done: told.append(done))
    assert told == [(744, 1416), (1416, 1416)]  # 31 x 24, 59 x 24


def test_two_reports_at_one_time_are_the_same_text() -> None:
    assert of(line(), line(model=None)).csv == of(line(model=None), line()).csv
    assert replace(of(line()), known_at=NOW).csv == of(line()).csv
