"""The Facts page: what is in force and since when, one fact added, a CSV in and out, and mistakes in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from app.answers.facts import take_over
from app.backend.local import LocalBackend
from app.config import Config
from app.store.database import Store
from app.store.facts import append_facts, read_facts
from tests.dashboard.test_views import open_page
from tests.facts.builders import fact, flat, rented, t
from tests.serving import serving

CONFIG = Config.model_validate(
    {"fleet": [{"name": "h100", "gpu": "*", "pue": 1.2, "zone": "FR", "price": rented(2.0)}]}
)
PUES = b"kind,subject,valid_from,source,pue\npue,h100,2026-03-01,report,1.1\n"


@pytest.fixture
def page_backend(store: Store) -> Iterator[LocalBackend]:
    take_over(store, CONFIG, t(3))
    append_facts(store, [
        fact("membership", "rack-7", {"fleet": "h100"}, t(1), t(3), "list"),
        fact("price", "home", rented(0.25, currency="EUR"), t(2), t(3), "contract 17"),
        fact("tariff", "home", flat(0.2, currency="EUR"), t(2), t(3), "bill"),
        fact("exchange_rate", "EUR", {"usd_per_unit": 1.08}, t(2), t(3), "ECB"),
    ])  # fmt: skip
    backend = LocalBackend(store, CONFIG)
    with serving(backend):
        yield backend


def press(app: AppTest, label: str) -> AppTest:
    return next(one for one in app.button if one.label == label).click().run()


def fill(app: AppTest, **values: str) -> None:
    for key, value in values.items():
        app.text_input(key=key).set_value(value)


def shown(app: AppTest, number: int = 0) -> dict[tuple[str, str], dict[str, object]]:
    rows = app.dataframe[number].value.to_dict("records")
    return {(row["subject"], row["what"]): row for row in rows}


def test_what_is_in_force_is_shown_with_since_when_and_from_where(page_backend: LocalBackend) -> None:
    app = open_page("facts")
    assert not app.exception
    rows = shown(app)
    price = rows["home", "price"]
    assert (price["value"], price["source"]) == ("rented, 0.25 EUR per GPU-hour", "contract 17")
    assert (price["valid from"], price["known at"]) == (t(2), t(3))
    assert rows["h100", "PUE"]["value"] == "PUE 1.2"
    assert rows["h100", "nodes"]["value"] == "1: rack-7"
    assert rows["home", "electricity now"]["value"] == "0.2 EUR/kWh, by its tariff"
    assert rows["EUR", "exchange rate"]["value"] == "1.08 USD for one"
    assert rows["* (all others)", "zone"]["value"] == "zone EU27"


def test_an_empty_store_says_what_to_do(store: Store) -> None:
    with serving(LocalBackend(store, Config())):
        app = open_page("facts")
    assert not app.exception
    assert app.info[0].value.startswith("Nothing is known yet: add a fact below")


def test_a_fact_is_added_and_nothing_before_it_changes(page_backend: LocalBackend) -> None:
    known = set(read_facts(page_backend.store))
    app = open_page("facts")
    fill(
        app, subject="h100", valid_from="2026-03-01T13:37+01:00", source="contract 18", price_rented_per_gpu_hour="2.5"
    )
    app = press(app, "Add")
    assert not app.exception and not app.error
    assert app.success[0].value == "1 added, 0 already known."
    [new] = set(read_facts(page_backend.store)) - known
    assert (new.kind, new.subject, new.valid_from, new.source) == ("price", "h100", t(3, 1, 12, 37), "contract 18")
    assert shown(app)["h100", "price"]["value"] == "rented, 2.5 USD per GPU-hour"


def test_the_form_has_the_fields_of_the_kind_and_plan(page_backend: LocalBackend) -> None:
    app = open_page("facts")
    app = app.selectbox(key="kind").set_value("tariff").run()
    app = app.selectbox(key="plan_tariff").set_value("time-of-use").run()
    assert not app.exception
    assert {"Currency", "Per kWh", "Time zone", "Rules"} <= {one.label for one in app.text_input}
    fill(app, subject="home", source="bill", **{
        "tariff_time-of-use_per_kwh": "0.18", "tariff_time-of-use_tz": "Europe/Madrid",
        "tariff_time-of-use_rules": "all 23:00-07:00 0.09", "tariff_time-of-use_currency": "EUR",
    })  # fmt: skip
    app = press(app, "Add")
    assert not app.error
    assert shown(app)["home", "tariff"]["value"] == (
        "0.18 EUR/kWh, and by the clock of Europe/Madrid: all 23:00-07:00 0.09"
    )


def test_a_fact_may_be_ended(page_backend: LocalBackend) -> None:
    app = open_page("facts")
    fill(app, subject="home", source="sold")
    app.checkbox(key="ends").check()
    app = press(app, "Add")
    assert not app.error
    assert ("home", "price") not in shown(app)


def test_mistakes_are_listed_and_nothing_is_added(page_backend: LocalBackend) -> None:
    known = set(read_facts(page_backend.store))
    app = open_page("facts")
    fill(app, subject="h100", valid_from="soon", source="x", price_rented_per_gpu_hour="free")
    app = press(app, "Add")
    assert not app.exception
    said = app.error[0].value.replace("\\", "")
    assert said.startswith("Nothing was added:")
    assert "`valid_from`: given 'soon'; accepted: a date (midnight in UTC)" in said
    assert "`per_gpu_hour`: given 'free'; accepted: a number" in said
    assert set(read_facts(page_backend.store)) == known


def test_a_name_that_nothing_knows_is_noted(page_backend: LocalBackend) -> None:
    app = open_page("facts")
    fill(app, subject="h10", source="x", price_rented_per_gpu_hour="1")
    app = press(app, "Add")
    assert app.warning[0].value == "Fleet 'h10': no node belongs to it, and wattmix.toml does not name it."


def test_a_csv_is_imported(page_backend: LocalBackend) -> None:
    app = open_page("facts")
    app = press(app.file_uploader(key="csv").upload("pues.csv", PUES, "text/csv").run(), "Import")
    assert not app.exception and not app.error
    assert app.success[0].value == "1 added, 0 already known."
    assert shown(app)["h100", "PUE"]["source"] == "report"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (PUES + b"pue,h100,2026-04-01,report,0.1\n", "pues.csv: line 3, column `pue`: given '0.1'; accepted: a number"),
        (b"\xff", "pues.csv: not UTF-8 text"),
    ],
)
def test_a_csv_with_mistakes_adds_nothing(page_backend: LocalBackend, content: bytes, words: str) -> None:
    known = set(read_facts(page_backend.store))
    app = open_page("facts")
    app = press(app.file_uploader(key="csv").upload("pues.csv", content, "text/csv").run(), "Import")
    assert not app.exception
    assert words in app.error[0].value.replace("\\", "")
    assert set(read_facts(page_backend.store)) == known


def test_the_history_has_all_that_was_ever_said(page_backend: LocalBackend) -> None:
    append_facts(page_backend.store, [fact("price", "h100", rented(3.0), t(3), t(4), "x")])
    app = open_page("facts", of="price")
    assert not app.exception
    rows = app.dataframe[1].value.to_dict("records")
    assert [(row["subject"], row["standing"]) for row in rows] == [
        ("h100", "in force"), ("home", "in force"), ("h100", "past"),
    ]  # fmt: skip
    app = app.selectbox(key="about").set_value("home").run()
    assert len(app.dataframe[1].value) == 1
    assert [one.proto.label for one in app.get("download_button")] == ["Template", "CSV"]


def test_a_new_fact_is_valid_from_today_unless_said_otherwise(page_backend: LocalBackend) -> None:
    assert open_page("facts").text_input(key="valid_from").value == f"{datetime.now(UTC):%Y-%m-%d}"
