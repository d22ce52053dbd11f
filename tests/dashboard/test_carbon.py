"""The Carbon page: its figures are the summary's, beside them what the API says of causes, hours and zones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from streamlit.testing.v1 import AppTest

from app.backend.local import LocalBackend
from app.config import Config
from app.dashboard import carbon_charts
from app.dashboard.figure_words import with_unit
from app.dashboard.views.carbon import CARDS
from app.store.database import Store
from app.store.grid import append_points
from app.store.source_states import GridState, write_state
from collectors.grid.point import IntensityPoint
from tests.dashboard.accounts import CONFIG, asked, fill, open_day
from tests.dashboard.test_views import metric, open_page
from tests.grid_points import to_come, value
from tests.serving import serving


def opened(backend: LocalBackend) -> AppTest:
    with serving(backend):
        app = open_day("carbon")
    assert not app.exception
    return app


@pytest.fixture
def filled(store: Store) -> Iterator[LocalBackend]:
    fill(store)
    yield LocalBackend(store, CONFIG)


def said(app: AppTest) -> str:
    return " ".join(str(one.value) for one in (*app.markdown, *app.caption, *app.info))


def test_cards_are_the_summary_s_and_stand_on_one_line(filled: LocalBackend) -> None:
    app = opened(filled)
    query = asked(app)
    names = tuple(name for row in CARDS for name in row)
    figures = filled.summary(replace(query, by="fleet", figures=names))["total"]["figures"]
    assert metric(app, "gCO2e/Mtok")[0] == f"{figures['g_per_mtok']['value']:,.1f}"
    assert metric(app, "Site energy")[0] == f"{figures['energy_site_kwh']['value']:,.2f} kWh"
    assert filled.carbon(query)["basis"] in said(app).replace("\\", "")
    assert "yearly averages" in said(app)
    assert "Grid now: " in said(app) and "g/kWh, yearly average of 20" in said(app)
    assert "No provider forecasts" in said(app)


def test_hours_of_providers_and_what_is_ahead_are_drawn(filled: LocalBackend) -> None:
    query = asked(opened(filled))
    zone = filled.carbon(query)["elsewhere"]
    own = next(row["zone"] for row in zone if row["is_own"])
    points: list[IntensityPoint] = [value(query.start, 60, 120, zone=own)]
    begin = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    points += [to_come(begin + timedelta(hours=n), 60, g, begin, zone=own) for n, g in enumerate((300, 90, 100, 250))]
    append_points(filled.store, points)
    config = CONFIG.model_copy(update={"grid": Config.model_validate(
        {"grid": [{"provider": "electricity_maps", "key": "k", "zones": {own: own}}]}).grid})  # fmt: skip
    app = opened(LocalBackend(filled.store, config))
    assert f"{own}: best from" in said(app)
    assert "95 g/kWh" in said(app)
    assert "No provider forecasts" not in said(app)


def test_hours_of_two_bases_are_chosen_from_and_a_silent_provider_is_a_warning(filled: LocalBackend) -> None:
    query = asked(opened(filled))
    own = next(row["zone"] for row in filled.carbon(query)["elsewhere"] if row["is_own"])
    hour = timedelta(hours=1)
    known = {"zone": own, "fetched_at": query.start + 2 * hour}
    points = [value(query.start, 60, 120, **known), value(query.start + hour, 60, 90, basis="direct", **known)]
    append_points(filled.store, points)
    told = {"provider": "electricity_maps", "key": "k", "zones": {own: own}}
    config = CONFIG.model_copy(update={"grid": Config.model_validate({"grid": [told]}).grid})
    now = datetime.now(UTC)
    gone = GridState("electricity_maps", own, now, now - timedelta(days=5), "HTTP 503: not now", "failed", "wait")
    write_state(filled.store, gone)
    app = opened(LocalBackend(filled.store, config))
    assert app.button_group("zone").options == [f"{own}, lifecycle", f"{own}, direct"]
    (warning,) = (str(one.value) for one in app.warning)
    assert "Grid now: " in warning and "has not answered for 5 d: HTTP 503: not now" in warning


def test_each_zone_s_best_window_is_shaded_in_its_colour() -> None:
    start = datetime(2026, 2, 3, 12, tzinfo=UTC)
    hours = [(start + timedelta(hours=number)).isoformat() for number in range(5)]

    def zone(name: str) -> dict[str, Any]:
        values = [{"start": one, "end": after, "g_per_kwh": 100.0} for one, after in pairwise(hours)]
        return {"zone": name, "basis": "lifecycle", "values": values}

    windows = {"DE": {"start": hours[1], "end": hours[3]}, "FR": {"start": hours[0], "end": hours[2]}}
    figure = carbon_charts.ahead([zone("DE"), zone("FR"), zone("PL")], windows, "title", ZoneInfo("Europe/Berlin"))
    assert [(shape.x0.hour, shape.x1.hour) for shape in figure.layout.shapes] == [(14, 16), (13, 15)]
    colours = [line.line.color for line in figure.data]
    assert [shape.fillcolor for shape in figure.layout.shapes] == colours[:2]
    assert len(set(colours)) == 3


def test_an_empty_store_says_what_to_do(store: Store) -> None:
    with serving(LocalBackend(store, CONFIG)):
        app = open_page("carbon")
    assert not app.exception
    assert "Nothing has been measured yet" in said(app)


def test_a_cause_that_did_nothing_has_no_sign() -> None:
    moved = {"before": 10.0, "now": 12.5, "effects": {"mix": -0.001, "energy": 2.5, "grid": 0.0}}
    (bars,) = carbon_charts.moved(moved, "title").data
    assert list(bars.text) == ["10.0", "±0.00", "+2.50", "±0.00", "12.5"]


@pytest.mark.parametrize(("grams", "said"), [(16_805.2, "16,805 gCO2e"), (1_790_008.0, "1,790 kgCO2e"), (None, "–")])
def test_many_grams_are_told_in_kilograms(grams: float | None, said: str) -> None:
    assert with_unit("carbon_g", {"value": grams}) == said
