"""The Energy page: its figures are the summary's, within each boundary, on each basis; gaps and estimates show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.answers.query import AccountQuery
from app.backend.local import LocalBackend
from app.dashboard import accounts_charts, energy_charts
from app.dashboard.views.energy import CARDS
from tests.answers.accounting import asked as asked_at
from tests.answers.accounting import minutes_of, served, take
from tests.batches import CARD, MODEL, batch, engine, gpu
from tests.dashboard.accounts import asked, fill, frame, opened, said
from tests.dashboard.test_views import metric, open_page


@pytest.fixture(scope="module")
def day(filled: LocalBackend) -> AppTest:
    """The page of that day."""
    return opened("energy", filled)


def series(backend: LocalBackend, name: str, **given: Any) -> tuple[dict[str, Any], AccountQuery]:
    query = replace(asked_at(**given), by="fleet", figures=(name,), step="15min")
    return backend.series(query), query


def test_an_empty_store_says_how_to_begin(page_backend: LocalBackend) -> None:
    app = open_page("energy")
    assert not app.exception
    assert app.title[0].value == "Energy"
    assert "`wattmix agent --hub http://" in app.info[0].value
    assert len(app.metric) == len(app.dataframe) == 0


def test_the_figures_are_those_of_the_summary(filled: LocalBackend, day: AppTest) -> None:
    """By hand: the H100 0.15 kWh at work and 0.05 without, its neighbour 0.05, the 4090 0.2; 13,500 tokens.

    0.45 kWh / 24 h = 18.75 W; 1.62 MJ / 13,500 = 120 J a token. GPUs worked 1.5 of their 3 hours.
    """
    shown = {one.label: one.value for one in day.metric}
    assert shown == {
        "Energy": "0.45 kWh", "Active energy": "0.35 kWh", "Idle energy": "0.05 kWh", "Unallocated energy": "0.05 kWh",
        "Mean power": "19 W", "J/token": "120.000", "Tokens/J": "0.008", "Utilisation": "50.0%", "Throttled": "0.0%",
    }  # fmt: skip
    found = filled.summary(asked(day))["total"]["figures"]
    assert found["mean_power_w"]["value"] == pytest.approx(18.75)
    assert found["energy_kwh"]["value"] == pytest.approx(0.45)


def test_each_card_tells_its_formula_with_the_numbers_of_the_day(day: AppTest) -> None:
    told = {one.value.split("**")[1]: one.value for one in day.markdown if one.value.startswith("**")}
    assert len(told) == sum(map(len, CARDS))
    assert "= `0.35 kWh + 0.05 kWh + 0.05 kWh` = 0.45" in told["Energy"]
    assert "= `0.45 kWh x 3,600,000 / (9,000 tokens + 4,500 tokens)` = 120.000" in told["J/token"]
    assert "= `0.45 kWh / 24 h` = 19" in told["Mean power"]
    assert "Energy was measured for 100.0% of the GPUs' time." in told["Energy"]


def test_the_boundary_and_the_view_of_the_address_count(filled: LocalBackend) -> None:
    """The H100s stand where the PUE is 1.2: 0.05 kWh x 1.2 while the engine had nothing to do."""
    app = opened("energy", filled, boundary="site", view="idle")
    assert (asked(app).boundary, asked(app).view) == ("site", "idle")
    assert metric(app, "Energy")[0] == "0.06 kWh"


def test_all_boundaries_and_bases_stand_side_by_side(day: AppTest) -> None:
    """4,500 of the 13,500 tokens were generated; how many prompts were cached is not told."""
    assert [(row["boundary"], row["kWh"]) for row in frame(day, "boundary")] == [
        ("GPU energy", pytest.approx(0.45)), ("IT energy", pytest.approx(0.45)), ("Site energy", pytest.approx(0.5)),
    ]  # fmt: skip
    rows = {row["tokens"]: row for row in frame(day, "tokens")}
    assert rows["total"]["J/token"] == pytest.approx(120.0)
    assert rows["output"]["J/token"] == pytest.approx(360.0)
    assert rows["output"]["tokens/J"] == pytest.approx(4500 / 1.62e6)
    assert rows["computed"]["missing"] == "cached prompt tokens are not told by the engine"


def test_fleets_stand_side_by_side(filled: LocalBackend, day: AppTest) -> None:
    rows, lines = frame(day, "GPU-hours"), filled.summary(asked(day))["lines"]
    assert [row["fleet"] for row in rows] == ["h100", "home"]
    for row, line in zip(rows, lines, strict=True):
        for column, name in (("Energy", "energy_kwh"), ("Idle energy", "energy_idle_kwh"),
                             ("Mean power", "mean_power_w"), ("Tokens/J", "tokens_per_joule"),
                             ("Throttled", "throttled_share")):  # fmt: skip
            assert row[column] == pytest.approx(line["figures"][name]["value"]), column
    assert rows[0]["J/token"] == pytest.approx(0.25 * 3.6e6 / 4500)


def test_without_a_replica_of_its_own_gpus_power_against_load_is_not_known(page_backend: LocalBackend) -> None:
    take(page_backend.store, batch(1, rows=minutes_of(300)))
    app = opened("energy", page_backend)
    assert "power against load is not known" in said(app)
    assert metric(app, "J/token")[0] == "–"


def test_simulated_numbers_are_marked_as_such(page_backend: LocalBackend, filled: LocalBackend, day: AppTest) -> None:
    """Law 10."""
    fill(page_backend.store, simulated=True)
    for backend, app, method in (
        (page_backend, opened("energy", page_backend), "simulated"),
        (filled, day, "measured"),
    ):
        assert (":violet-badge[" in said(app)) is (method == "simulated")
        assert {row["method"] for row in frame(app, "boundary")} == {method}
        figure = energy_charts.quality(backend.summary(asked(app))["quality"], "How well it is known")
        energy = {bar.name: dict(zip(bar.y, bar.x, strict=True))["energy"] for bar in figure.data}
        assert energy.pop(method) == pytest.approx(100.0)
        assert not any(energy.values())


def test_power_of_a_fleet_is_dashed_where_it_is_estimated_and_a_gap_where_there_is_none(
    page_backend: LocalBackend,
) -> None:
    """From 04:15 on 5 minutes without an energy are filled in; from 04:45 on less than half is known.

    From 05:00 on the GPU is not there.
    """
    known = [*minutes_of(300, 15), *minutes_of(300, 10, first=20), *minutes_of(300, 15, first=30)]
    silent = [*minutes_of(300, 5, first=15), *minutes_of(300, 10, first=45)]
    rows = [*known, *({**row, "energy_mj": None} for row in silent), *minutes_of(300, 5, first=55)]
    take(page_backend.store, batch(1, rows=rows, engine_rows=served(60)))
    answer, query = series(page_backend, "mean_power_w", minutes=90)
    solid, dotted = accounts_charts.over_time(answer, "mean_power_w", "Power", query).data
    assert (solid.line.dash, list(solid.y)) == ("solid", [300.0, None, 300.0, None, None, None])
    assert (dotted.line.dash, list(dotted.y)) == ("dot", [300.0, 300.0, 300.0, None, None, None])
    assert not solid.connectgaps
    assert list(dotted.customdata)[1] == "estimated"


def test_the_parts_of_each_fleet_s_energy_are_a_bar(filled: LocalBackend) -> None:
    lines = filled.summary(replace(asked_at(), by="fleet"))["lines"]
    figure = accounts_charts.parts_by_group(lines, "Energy", accounts_charts.ENERGY_PARTS)
    bars = {bar.name: dict(zip(bar.y, bar.x, strict=True)) for bar in figure.data}
    assert bars["Active energy"] == {"h100": pytest.approx(0.15), "home": pytest.approx(0.2)}
    assert bars["Unallocated energy"] == {"h100": pytest.approx(0.05), "home": pytest.approx(0.0)}
    assert figure.layout.xaxis.title.text == "kWh"


def test_power_against_load_is_a_line_per_replica_type(filled: LocalBackend) -> None:
    answer = filled.power_load(asked_at())
    figure = energy_charts.power_against_load(answer, "Power against load")
    lines = {line.name: list(zip(line.x, line.y, strict=True)) for line in figure.data}
    assert lines == {
        "1x H100 PCIe 80GB: model-14b": [(0.0, 100.0), (2.5, 300.0)], "1x RTX 4090: model-14b": [(2.5, 200.0)],
    }  # fmt: skip
    assert figure.layout.xaxis.title.text == "prompt + generated tokens/s of a replica"
    assert figure.layout.yaxis.title.text == "W of its GPUs"
    assert len({line.line.color for line in figure.data}) == 2


def test_models_on_the_same_cards_are_told_apart_by_dashes(page_backend: LocalBackend) -> None:
    cards = [gpu(), gpu(index=1)]
    pair = [engine(), engine(url="http://h:8001/metrics", model="org/other", gpus=[cards[1].uuid])]
    rows = [*minutes_of(300), *minutes_of(200, gpu=1)]
    take(page_backend.store, batch(1, gpus=cards, rows=rows, engines=pair, engine_rows=[*served(), *served(engine=1)]))
    answer = page_backend.power_load(asked_at())
    assert [(kind["card"], kind["model"]) for kind in answer["types"]] == [(CARD, MODEL), (CARD, "org/other")]
    first, second = energy_charts.power_against_load(answer, "Power").data
    assert first.line.color == second.line.color
    assert (first.line.dash, second.line.dash) == ("solid", "dash")
