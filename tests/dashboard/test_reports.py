"""The Reports page: what is scheduled and what became of it, a run at once, and a report of any window."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from streamlit.testing.v1 import AppTest

from app.backend.local import LocalBackend
from app.config import Config
from app.errors import DeliveryError
from app.store.database import Store
from app.store.reports import ReportRun, add_runs, latest_runs, register
from tests.dashboard.test_views import open_page
from tests.reports.lines import Account
from tests.serving import serving

DUE = datetime(2026, 2, 4, 5, tzinfo=UTC)
FILE = "daily_2026-02-03_2026-02-04.csv"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    made = Account()
    monkeypatch.setattr(LocalBackend, "account", lambda self, *given, **said: made(*given, **said))
    return made


@pytest.fixture
def page_backend(store: Store, tmp_path: Path, account: Account) -> Iterator[LocalBackend]:
    reports = [
        {"name": "daily", "kind": "fleet-day", "cron": "0 6 * * *", "tz": "Europe/Madrid"},
        {
            "name": "hours",
            "kind": "hourly",
            "cron": "5 * * * *",
            "window": "hour",
            "boundary": "site",
            "basis": "output",
        },
    ]
    backend = LocalBackend(store, Config.model_validate({"reports": {"folder": str(tmp_path)}, "report": reports}))
    register(store, ["daily", "hours"], DUE - timedelta(days=1))
    with serving(backend):
        yield backend


def run(**said: Any) -> ReportRun:
    known = {"schedule": "daily", "due_at": DUE, "status": "written", "window_from": DUE - timedelta(hours=30),
             "window_to": DUE - timedelta(hours=6), "attempts": 1, "ran_at": DUE + timedelta(minutes=2)}  # fmt: skip
    return ReportRun(**known | said)


def written(folder: Path, **said: Any) -> ReportRun:
    (folder / FILE).write_text("period\n")
    (folder / f"{FILE}.manifest.json").write_text("{}")
    return run(folder=str(folder), file=FILE, rows=12, coverage=0.998, **said)


def texts(app: AppTest) -> str:
    return "\n".join(one.value for one in [*app.markdown, *app.caption])


def downloads(app: AppTest) -> list[str]:
    return [one.proto.label for one in app.get("download_button")]


def press(app: AppTest, label: str, number: int = 0) -> AppTest:
    return [one for one in app.button if one.label == label][number].click().run()


def test_without_a_schedule_the_page_says_what_to_put_into_wattmix_toml(store: Store) -> None:
    with serving(LocalBackend(store, Config())):
        app = open_page("reports")
    assert not app.exception
    assert app.info[0].value.startswith("No report is scheduled yet. Put one into `wattmix.toml`")
    assert "[[report]]" in app.code[0].value
    assert [one.label for one in app.button] == ["Make the report"]


def test_the_example_on_the_page_is_accepted() -> None:
    import tomllib

    from app.dashboard.views.reports import _EXAMPLE

    [report] = Config.model_validate(tomllib.loads(_EXAMPLE)).report
    assert (report.name, report.kind, report.window) == ("daily", "fleet-day", "day")


def test_each_schedule_is_shown_in_words_with_its_zone_and_its_next_run(page_backend: LocalBackend) -> None:
    app = open_page("reports")
    assert not app.exception
    said = texts(app)
    assert (
        r"At 06:00 every day (Europe/Madrid; `0 6 * * *`), on the last complete day. Boundary it, basis total." in said
    )
    assert (
        "At minute 5 of every hour (UTC; `5 * * * *`), on the last complete hour. Boundary site, basis output." in said
    )
    assert said.count("Last run: none yet") == 2
    assert "2026-02-03 06:00 CET" not in said  # registered at that very moment: the first is a day later
    assert "2026-02-04 06:00 CET" in said


def test_the_last_run_is_shown_with_its_local_time_rows_and_coverage(
    page_backend: LocalBackend, tmp_path: Path
) -> None:
    add_runs(page_backend.store, [written(tmp_path)])
    app = open_page("reports")
    assert not app.exception
    said = texts(app)
    assert ":green-badge[written]" in said
    assert "2026-02-04 06:02 CET: 12 rows, coverage 99.8%" in said
    assert "2026-02-05 06:00 CET" in said
    assert downloads(app) == ["CSV", "Manifest"]
    [row] = app.dataframe[0].value.to_dict("records")
    assert (row["due"], row["status"], row["from"], row["file"]) == (
        "2026-02-04 06:00 CET", "written", "2026-02-03 00:00 CET", FILE,
    )  # fmt: skip


def test_a_run_that_failed_says_why(page_backend: LocalBackend) -> None:
    add_runs(page_backend.store, [run(status="retrying", attempts=3, error="/r: cannot be written: No space left")])
    app = open_page("reports")
    assert not app.exception
    assert ":orange-badge[retrying]" in texts(app)
    assert "2026-02-04 06:02 CET, attempt 3: /r: cannot be written: No space left" in texts(app)
    assert downloads(app) == []


def test_a_file_that_is_no_longer_there_is_said(page_backend: LocalBackend, tmp_path: Path) -> None:
    add_runs(page_backend.store, [written(tmp_path)])
    (tmp_path / FILE).unlink()
    app = open_page("reports")
    assert not app.exception
    assert "CSV: no longer there" in texts(app)
    assert downloads(app) == ["Manifest"]


def test_run_now_writes_the_report_of_the_moment(page_backend: LocalBackend, tmp_path: Path) -> None:
    app = press(open_page("reports"), "Run now")
    assert not app.exception
    today = datetime.now(UTC).astimezone(ZoneInfo("Europe/Madrid")).date()
    file = f"daily_{today - timedelta(days=1)}_{today}.csv"
    assert app.success[0].value.replace("\\", "") == f"{file}: 1 rows, in {tmp_path}"
    assert (tmp_path / file).is_file()
    [made] = latest_runs(page_backend.store, "daily", 10)
    assert (made.status, made.due_at, made.file) == ("written", None, file)
    assert downloads(app) == ["CSV", "Manifest"]
    assert app.dataframe[0].value.to_dict("records")[0]["due"] == "by hand"


def test_run_now_that_fails_is_told_in_words(page_backend: LocalBackend, account: Account) -> None:
    account.problem = DeliveryError("/r: cannot be written: No space left on device.")
    app = press(open_page("reports"), "Run now")
    assert not app.exception
    assert app.error[0].value == str(account.problem)
    assert latest_runs(page_backend.store, "daily", 10)[0].status == "failed"


def test_a_report_of_any_window_is_shown_and_can_be_downloaded(page_backend: LocalBackend) -> None:
    app = open_page("reports")
    app.date_input(key="from").set_value(date(2026, 3, 28))
    app.date_input(key="to").set_value(date(2026, 3, 30))
    app.selectbox(key="kind").set_value("hourly")
    app.selectbox(key="boundary").set_value("site")
    app = press(app, "Make the report")
    assert not app.exception
    rows = app.dataframe[-1].value.to_dict("records")
    assert len(rows) == 47  # 24 hours, and 23 on the day on which Madrid's clocks change
    assert {(row["tz"], row["boundary"]) for row in rows} == {("Europe/Madrid", "site")}
    assert "47 rows. Coverage 99.5% on average, 99.5% at the least. Methods: measured." in texts(app)
    assert downloads(app) == ["CSV"]


def test_a_window_that_cannot_be_is_told_in_words(page_backend: LocalBackend) -> None:
    app = open_page("reports")
    app.date_input(key="from").set_value(date(2026, 3, 28))
    app.date_input(key="to").set_value(date(2026, 3, 28))
    app = press(app, "Make the report")
    assert not app.exception
    assert "hold no day: `to` is the day after the last one" in app.error[0].value


def test_a_window_in_which_nothing_was_seen_is_said(store: Store) -> None:
    with serving(LocalBackend(store, Config())):
        app = press(open_page("reports"), "Make the report")
    assert not app.exception
    assert app.info[-1].value == "No GPU and no engine was seen in this window."
