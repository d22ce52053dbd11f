"""The Overview page: its figures are the summary's of the address it gives, and each says how it came about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.answers.query import AccountQuery
from app.backend.local import LocalBackend
from app.dashboard.views.overview import CARDS
from app.store.benchmarks import add_runs
from app.store.database import Store
from collectors.benchmark.run import BenchmarkRun
from tests.answers.accounting import minutes_of, served, take
from tests.batches import MODEL, batch
from tests.dashboard.accounts import CONFIG, asked, fill, frame, open_day, opened, said
from tests.dashboard.test_views import metric, open_page


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, study_runs: list[BenchmarkRun]) -> Iterator[LocalBackend]:
    """The day of `fill` and the study's runs, for tests that only read."""
    store = Store.open(tmp_path_factory.mktemp("overview") / "s.duckdb")
    add_runs(store, study_runs)
    fill(store)
    yield LocalBackend(store, CONFIG)
    store.close()


@pytest.fixture(scope="module")
def day(filled: LocalBackend) -> AppTest:
    """The page of that day."""
    return opened("overview", filled)


def total(backend: LocalBackend, query: AccountQuery) -> dict[str, Any]:
    found: dict[str, Any] = backend.summary(query)["total"]["figures"]
    return found


def test_an_empty_store_says_how_to_begin(page_backend: LocalBackend) -> None:
    app = open_page("overview")
    assert not app.exception
    assert app.title[0].value == "Overview"
    assert "`wattmix agent --hub http://" in app.info[0].value
    assert len(app.metric) == len(app.dataframe) == 0


def test_a_range_without_anything_says_so(filled: LocalBackend) -> None:
    app = opened("overview", filled, **{"from": "2026-01-01", "to": "2026-01-02"})
    assert "No GPU and no engine was seen in this range" in app.info[0].value


def test_the_figures_are_those_of_the_summary(filled: LocalBackend, day: AppTest) -> None:
    """By hand: H100s $2 x 0.5 h + $4 x 0.5 h each, so $6.00; the 4090 1752 / 17520 = $0.10 and 0.2 kWh x $0.20.

    $6.14 / (30 + 60) x 150 tokens = 13,500 tokens: $454.815 per Mtok. Over the 24 hours of the day: $0.26/h.
    """
    assert metric(day, "$/Mtok")[0] == "$454.815"
    # 13,500 tokens / (0.15 + 0.05 + 0.05 + 0.2 kWh x 3.6e6) = 0.00833
    assert metric(day, "Tokens/J")[0] == "0.008"
    assert metric(day, "Spend, $/h")[0] == "$0.26"
    found = total(filled, asked(day))
    assert found["usd_per_mtok"]["value"] == pytest.approx(6.14 / 13_500 * 1e6)
    assert metric(day, "gCO2e/Mtok")[0] == f"{found['g_per_mtok']['value']:,.1f}"
    # 90 of 90 requests in time: the Wilson interval's lower end is 90 / (90 + 1.96^2) = 95.9%
    assert metric(day, "SLO met by at least")[0] == "95.9%"
    assert found["slo_attainment_high"]["value"] == 1.0


def test_a_figure_without_a_period_before_says_so(day: AppTest) -> None:
    assert metric(day, "$/Mtok")[1] == "before: no GPU was seen"


def test_each_card_tells_its_formula_with_the_numbers_of_the_day(filled: LocalBackend, day: AppTest) -> None:
    told = [one.value for one in day.markdown if one.value.startswith("**")]
    assert len(told) == len(CARDS)
    assert "= `$6.14 / (9,000 tokens + 4,500 tokens) x 1,000,000` = \\$454.815" in told[0]
    assert "= `$6.14 / 24 h` = \\$0.26" in told[3]
    assert all("Method: " in one for one in told)


def test_fleets_stand_side_by_side(filled: LocalBackend, day: AppTest) -> None:
    rows = frame(day, "Utilisation")
    lines = filled.summary(asked(day))["lines"]
    assert [row["fleet"] for row in rows] == ["h100", "home"]
    for row, line in zip(rows, lines, strict=True):
        for column, name in (("$/Mtok", "usd_per_mtok"), ("Tokens/J", "tokens_per_joule"), ("TTFT p99", "ttft_p99_ms"),
                             ("Utilisation", "utilisation"), ("GPU-hours", "gpu_hours")):  # fmt: skip
            assert row[column] == pytest.approx(line["figures"][name]["value"]), column
    assert rows[0]["$/Mtok"] == pytest.approx(6.0 / 4500 * 1e6)


def test_what_idles_is_listed_with_its_cost_the_dearest_first(filled: LocalBackend, day: AppTest) -> None:
    rows = frame(day, "of its cost")
    # The GPU without an engine: $1 + $2. The other one idles while it costs $4 an hour: $2.
    assert [(row["node"], row["idle"], row["unallocated"]) for row in rows] == [
        ("node-7", 0.0, pytest.approx(3.0)), ("node-7", pytest.approx(2.0), 0.0),
    ]  # fmt: skip
    assert "\\$5.00 of the bill of these 24 h was paid while nothing worked" in said(day)


def test_the_split_of_the_day_stands_beside_the_recommended_one(filled: LocalBackend, day: AppTest) -> None:
    rows = {row["fleet"]: row for row in frame(day, "tokens, measured")}
    # 4,500 of 13,500 tokens; an engine for one of 24 hours
    assert rows["h100"]["tokens, measured"] == pytest.approx(1 / 3)
    assert rows["home"]["tokens, measured"] == pytest.approx(2 / 3)
    assert rows["home"]["replicas, measured"] == "0.0417 of 1x RTX 4090"
    answer = filled.split(filled.default_demand())
    assert rows["rtx4090"]["replicas, recommended"] == "13 of 2x RTX 4090"
    assert sum(row["$/h, recommended"] for row in rows.values()) == pytest.approx(answer["usd_per_hour"])
    assert "the configured demand as it stands" in said(day)


def test_a_filter_changes_figures_and_address_alike(filled: LocalBackend) -> None:
    app = opened("overview", filled, fleet="home", basis="output", view="used")
    query = asked(app)
    assert (query.fleet, query.basis, query.view) == ("home", "output", "used")
    found = total(filled, replace(query, by="none"))
    assert metric(app, "$/Mtok")[0] == f"${found['usd_per_mtok']['value']:,.3f}"
    assert found["usd_per_mtok"]["value"] == pytest.approx(0.14 / 3000 * 1e6)


def test_low_coverage_is_marked(page_backend: LocalBackend) -> None:
    gap = [{"t_us": row["t_us"], "dt_us": row["dt_us"]} for row in minutes_of(300, 20, first=40)]
    take(page_backend.store, batch(1, rows=[*minutes_of(300, 40), *gap], engine_rows=served()))
    app = open_day("overview")
    assert not app.exception
    marked = [one.label for one in app.metric if one.icon]
    assert marked == ["Tokens/J", "gCO2e/Mtok"]
    assert "Energy was measured for 66.7% of the GPUs' time. That is little: take it with care." in said(app)


def test_simulated_numbers_are_marked_as_such(page_backend: LocalBackend, day: AppTest) -> None:
    """Law 10."""
    fill(page_backend.store, simulated=True)
    made_up = opened("overview", page_backend)
    for app, simulated in ((day, False), (made_up, True)):
        assert any(":violet-badge[" in one.value for one in app.markdown) is simulated
        assert ("Method: simulated" in said(app)) is simulated


def test_the_model_filter_keeps_to_its_engines(filled: LocalBackend) -> None:
    app = opened("overview", filled, llm=MODEL)
    # Without the GPU that has no engine: $6.14 - $3.
    assert metric(app, "$/Mtok")[0] == f"${3.14 / 13_500 * 1e6:,.3f}"
