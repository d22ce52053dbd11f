"""The shared filters: what the address says is what is asked, and each filter explains itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from app.answers.query import STEPS, AccountQuery, parse_query
from app.backend.local import LocalBackend
from app.dashboard.filters import address_of, with_chart_step
from app.store.database import Store
from tests.answers.accounting import minutes_of, served, take
from tests.batches import MODEL, batch
from tests.dashboard.accounts import CONFIG
from tests.dashboard.test_views import TIMEOUT_S
from tests.serving import serving

PAGE = """
import streamlit as st
from app.dashboard.filters import account_filters
from app.dashboard.frame import show_error_of

def page():
    st.json(account_filters().as_words())

show_error_of(page)()
"""


@pytest.fixture
def page_backend(store: Store) -> Iterator[LocalBackend]:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    with serving(LocalBackend(store, CONFIG)) as backend:
        yield backend


def open_filters(**query: str) -> AppTest:
    app = AppTest.from_string(PAGE, default_timeout=TIMEOUT_S)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def asked(app: AppTest) -> dict[str, Any]:
    assert not app.exception
    found: dict[str, Any] = json.loads(app.json[0].value)
    return found


def test_without_an_address_it_is_the_last_day_of_everything(page_backend: LocalBackend) -> None:
    query = parse_query(asked(open_filters()), datetime.now(UTC))
    assert query.end - query.start == timedelta(days=1)
    assert datetime.now(UTC) - query.end < timedelta(minutes=2)
    assert query == AccountQuery(query.start, query.end)


def test_the_address_is_what_is_asked(page_backend: LocalBackend) -> None:
    app = open_filters(
        **{"range": "custom", "from": "2026-02-03", "to": "2026-02-05", "tz": "Europe/Madrid", "fleet": "h100",
           "llm": MODEL, "basis": "output", "boundary": "site", "view": "idle"}
    )  # fmt: skip
    assert asked(app) == {
        "from": "2026-02-02T23:00Z", "to": "2026-02-04T23:00Z", "tz": "Europe/Madrid", "by": "none", "fleet": "h100",
        "model": MODEL, "basis": "output", "boundary": "site", "view": "idle",
    }  # fmt: skip


def test_fleets_and_models_are_those_ever_seen(page_backend: LocalBackend) -> None:
    app = open_filters()
    options = {box.key: box.options for box in app.selectbox}
    assert options["fleet"] == ["all fleets", "h100"]
    assert options["llm"] == ["all models", MODEL]


def test_a_link_to_a_fleet_that_is_gone_asks_for_it_and_not_for_all(page_backend: LocalBackend) -> None:
    assert asked(open_filters(fleet="sold", llm="old/model"))["fleet"] == "sold"
    assert asked(open_filters(fleet="sold", llm="old/model"))["model"] == "old/model"


def test_choosing_changes_what_is_asked(page_backend: LocalBackend) -> None:
    app = open_filters()
    app = next(box for box in app.selectbox if box.key == "basis").set_value("computed").run()
    assert asked(app)["basis"] == "computed"


def test_days_in_the_wrong_order_are_told(page_backend: LocalBackend) -> None:
    app = open_filters(**{"range": "custom", "from": "2026-02-05", "to": "2026-02-05"})
    assert not app.exception
    assert "From 2026-02-05 up to 2026-02-05 no minute has passed" in app.error[0].value


def test_each_filter_is_explained(page_backend: LocalBackend) -> None:
    app = open_filters(range="custom")
    assert len(app.selectbox) == 7
    assert len(app.date_input) == 2
    assert all(one.help for one in (*app.selectbox, *app.date_input))


@pytest.mark.parametrize("hours", [1, 6, 24, 24 * 7, 24 * 90, 24 * 3000])
def test_a_chart_has_the_finest_step_that_is_not_too_many(hours: int) -> None:
    end = datetime(2026, 2, 3, 4, tzinfo=UTC)
    query = AccountQuery(end - timedelta(hours=hours), end)
    step = with_chart_step(query, "minute", 300).step
    assert step is not None
    assert query.points(step) <= 300 or step == "day"
    finer = STEPS[: STEPS.index(step)]
    assert all(query.points(one) > 300 for one in finer)
    assert with_chart_step(query, "hour").step in ("hour", "day")


def test_the_address_of_an_answer_is_read_back_as_the_same_query() -> None:
    start = datetime(2026, 2, 3, 4, tzinfo=UTC)
    query = AccountQuery(start, start + timedelta(hours=1), tz="Asia/Kathmandu", by="fleet", model="a b/c&d")
    path, _, words = address_of(query, "summary").partition("?")
    assert path == "/api/v1/summary"
    assert parse_query(dict(parse_qsl(words)), start + timedelta(days=1)) == query
