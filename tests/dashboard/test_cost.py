"""The Cost page: parts that sum to the bill, lines by what is chosen, the API's CSV, and what else could be paid."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from app.backend.local import LocalBackend
from tests.answers.accounting import minutes_of, served, take
from tests.batches import MODEL, batch
from tests.dashboard.accounts import asked, fill, frame, opened
from tests.dashboard.test_views import metric, open_page

PARTS = ("Working", "Slack", "Idle", "Unallocated")


@pytest.fixture(scope="module")
def day(filled: LocalBackend) -> AppTest:
    """The page of that day."""
    return opened("cost", filled)


def test_an_empty_store_says_how_to_begin(page_backend: LocalBackend) -> None:
    app = open_page("cost")
    assert not app.exception
    assert "`wattmix agent --hub http://" in app.info[0].value


def test_the_bill_is_the_summary_s_and_its_parts(filled: LocalBackend, day: AppTest) -> None:
    """$1 worked on the H100 and $0.14 on the 4090, $2 idle, $3 without an engine."""
    shown = {label: metric(day, label)[0] for label in ("Cost", "Used", "Idle", "Unallocated")}
    assert shown == {"Cost": "$6.14", "Used": "$1.14", "Idle": "$2.00", "Unallocated": "$3.00"}
    found = filled.summary(asked(day))["total"]["figures"]
    for label, name in (("Slack", "cost_slack"), ("Input", "cost_input"), ("Output", "cost_output")):
        assert metric(day, label)[0] == f"${found[name]['value']:,.2f}"
    assert metric(day, "$/Mtok input")[0] == f"${found['usd_per_mtok_input']['value']:,.3f}"


@pytest.mark.parametrize(
    ("by", "key", "names"),
    [
        ("fleet", "fleet", ["h100", "home"]),
        ("model", "model", [MODEL, "–"]),
        ("node", "node", ["desk-1", "node-7"]),
        ("gpu", "GPU", ["desk-1-0", "node-7-0", "node-7-1"]),
    ],
)
def test_lines_are_by_what_is_chosen_and_sum_to_the_bill(
    filled: LocalBackend, by: str, key: str, names: list[str]
) -> None:
    app = opened("cost", filled, by=by)
    assert asked(app).by == by
    rows = frame(app, "Slack")
    assert [row[key] for row in rows] == names
    assert sum(row["Cost"] for row in rows) == pytest.approx(6.14)
    for row in rows:
        assert sum(row[part] for part in PARTS) == pytest.approx(row["Cost"])


def test_the_formula_of_the_bill_names_the_parts(filled: LocalBackend, day: AppTest) -> None:
    (told,) = [one.value for one in day.markdown if one.value.startswith("**Cost**")]
    assert "= `$1.14 + $2.00 + $3.00` = \\$6.14" in told
    (told,) = [one.value for one in opened("cost", filled, view="idle").markdown if one.value.startswith("**Cost**")]
    assert "= `$2.00` = \\$2.00" in told


def test_a_hosted_price_of_the_same_model_is_held_against_its_part_of_the_bill(day: AppTest) -> None:
    """9,000 prompt tokens at $100 and 4,500 generated at $400: 0.9 + 1.8 = $2.70 / 0.0135 Mtok = $200 per Mtok.

    Own: $3.14 over 24 hours = $0.1308/h, which buys 654.2 hosted tokens an hour.
    """
    (row,) = frame(day, "hosted $/Mtok")
    assert (row["provider"], row["held against"]) == ("example-ai", MODEL)
    assert row["hosted $/Mtok"] == pytest.approx(200.0)
    assert row["own $/Mtok"] == pytest.approx(3.14 / 13_500 * 1e6)
    assert row["own against hosted"] == pytest.approx(3.14 / 2.70 - 1)
    assert row["own load"] == pytest.approx(13_500 / 24)
    assert row["break-even load"] == pytest.approx(3.14 / 24 / 200 * 1e6)


def test_without_a_hosted_price_the_page_says_how_to_add_one(page_backend: LocalBackend) -> None:
    take(page_backend.store, batch(1, rows=minutes_of(300), engine_rows=served()))
    app = opened("cost", page_backend)
    assert any("Add a fact of kind hosted_price" in one.value for one in app.markdown)


def test_renting_is_held_against_buying(day: AppTest) -> None:
    """The 4090 is owned: $1752 in 2 years, 200 W at $0.20; rented it was $0.25 an hour by the list.

    1752 / 24 = $73 a month; 0.25 - 0.04 = $0.21 saved an hour: 347.6 hours.
    """
    rows = {row["fleet"]: row for row in frame(day, "owning from")}
    assert rows["home"]["now"] == "owned"
    rent = rows["home"]["rent $/h"]
    assert rows["home"]["site W"] == pytest.approx(200.0)
    assert rows["home"]["owning from"] == pytest.approx(73 / (rent - 0.04))
    assert rows["h100"]["purchase"] == pytest.approx(27_000)
    assert "no exchange rate for EUR" in rows["h100"]["missing"]


def test_simulated_numbers_are_marked_as_such(page_backend: LocalBackend) -> None:
    """Law 10."""
    fill(page_backend.store, simulated=True)
    app = opened("cost", page_backend)
    assert any(":violet-badge[" in one.value for one in app.markdown)
    assert {row["method"] for row in frame(app, "Slack")} == {"simulated"}
