"""The Carbon page in a real browser, with a provider that answers, hangs or is gone; without any: test_accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.store.database import Store
from app.store.grid import append_points
from app.store.source_states import GridState, write_state
from tests.batches import wait_until
from tests.e2e.test_accounts import SETTINGS, answer_of, opened, send_minutes, settle
from tests.e2e.test_dashboard import api, assert_no_error, both_themes, metric
from tests.grid_points import value
from tests.hub.grid_server import Grid, grid_server
from tests.hub_process import running

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def provider() -> Iterator[Grid]:
    with grid_server(datetime.now(UTC)) as grid:
        yield grid


@contextmanager
def hub_of(folder: Path, provider: Grid) -> Iterator[str]:
    """Five minutes of GPUs and engines in a zone about which Energy-Charts, played, is asked."""
    grid = f'\n[[grid]]\nprovider = "energy_charts"\nbase_url = "{provider.address}"\nzones = {{ "EU27" = "de" }}\n'
    (folder / "wattmix.toml").write_text(SETTINGS + grid, encoding="utf-8")
    with running(["serve", "--db", str(folder / "s.duckdb")], folder) as hub:
        send_minutes(hub.address)
        yield hub.address


@pytest.fixture(scope="module")
def carbon_hub(tmp_path_factory: pytest.TempPathFactory, provider: Grid) -> Iterator[str]:
    """It is told at 300 g/kWh and less to come."""
    with hub_of(tmp_path_factory.mktemp("carbon"), provider) as address:
        wait_until(lambda: grid_of(address)["current"]["from"] == "live", "the provider's first answer")
        yield address


@pytest.fixture(scope="module", params=[7, 120], ids=["hours", "days"])
def gone_hub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A provider that answered so many hours ago, with two days of 321 g/kWh, and refuses since; and these hours."""
    folder, hours = tmp_path_factory.mktemp("gone"), request.param
    answered_at = datetime.now(UTC) - timedelta(hours=hours)
    last = answered_at.replace(minute=0, second=0, microsecond=0)
    store = Store.open(folder / "s.duckdb")
    of_it = {"zone": "EU27", "provider": "energy_charts", "basis": "provider", "fetched_at": answered_at}
    append_points(store, [value(last - timedelta(hours=number), 60, 321, **of_it) for number in range(1, 49)])
    write_state(store, GridState("energy_charts", "EU27", asked_at=answered_at, answered_at=answered_at))
    store.close()
    with grid_server(datetime.now(UTC)) as grid:
        grid.do = "503"
        with hub_of(folder, grid) as address:
            wait_until(lambda: grid_of(address)["sources"][0]["problem"] is not None, "the provider's refusal")
            yield address, hours


def grid_of(address: str) -> dict[str, Any]:
    found: dict[str, Any] = api(address, "/api/v1/grid?zone=EU27")
    return found


def factors_of(address: str) -> list[float]:
    """Of the hours, mostly one, in which the five minutes lie: quarter hours that have begun are told at 300 g/kWh, by
    forecast at 100 the others, so 150 to 300, as the clock stands."""
    now = datetime.now(UTC)
    first, last = (
        (now - ago).replace(minute=0, second=0, microsecond=0) for ago in (timedelta(minutes=10), timedelta())
    )
    hours = {datetime.fromisoformat(one["hour"]): one["g_per_kwh"] for one in grid_of(address)["hours"]}
    factors = [hours[hour] for hour in sorted({first, last})]
    assert all(factor in (150, 200, 250, 300) for factor in factors)
    return factors


@both_themes
def test_carbon_is_the_api_s_answer_by_a_provider_s_hours(page: Page, carbon_hub: str, theme: str) -> None:
    said = opened(page, f"{carbon_hub}/carbon", theme)
    figures = answer_of(page, carbon_hub)["total"]["figures"]
    factors = factors_of(carbon_hub)
    g_per_kwh = figures["carbon_g"]["value"] / figures["energy_site_kwh"]["value"]
    assert min(factors) - 1e-6 <= g_per_kwh <= max(factors) + 1e-6
    assert metric(page, "gCO2e/Mtok") == f"{figures['g_per_mtok']['value']:,.1f}"
    assert metric(page, "CO2e") == f"{figures['carbon_g']['value']:,.0f} gCO2e"
    assert metric(page, "SCI, gCO2e/Mtok") == f"{figures['sci_g_per_mtok']['value']:,.1f}"
    expect(page.get_by_text("EU27 by the hour")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Grid now: EU27: \d+ g/kWh, live, Energy-Charts, \d+ \w+ old"))).to_be_visible()
    expect(page.locator(".stPlotlyChart .gtitle", has_text="Grid intensity of EU27")).to_be_visible()
    expect(page.locator(".stPlotlyChart .gtitle", has_text="Forecast of grid intensity")).to_be_visible()
    expect(page.get_by_text("EU27: best from")).to_be_visible()
    assert_no_error(page, said)


def test_pages_ask_no_provider_and_do_not_wait_for_one(page: Page, carbon_hub: str, provider: Grid) -> None:
    provider.do, asked = "hang", len(provider.paths)
    page.goto(f"{carbon_hub}/carbon")
    settle(page)
    expect(page.locator(".stPlotlyChart .gtitle", has_text="Grid intensity of EU27")).to_be_visible()
    page.goto(f"{carbon_hub}/health")
    expect(page.get_by_text("Grid providers")).to_be_visible()
    assert len(provider.paths) == asked
    provider.do = "ok"


@both_themes
def test_a_provider_that_is_gone_is_told_with_what_stands_in(page: Page, gone_hub: tuple[str, int], theme: str) -> None:
    """Within a day its last value, kept, with its age; then the yearly average, with its year; each with the reason."""
    address, hours = gone_hub
    said = opened(page, f"{address}/carbon", theme)
    current = grid_of(address)["current"]
    if hours < 24:
        assert (current["from"], current["g_per_kwh"]) == ("cached", 321)
        # the last of its hours was over by up to an hour before it answered
        words = (
            r"Grid now: EU27: 321 g/kWh, cached, Energy-Charts, 7 h old, of the time up to [78] h ago, because "
            r"Energy-Charts: HTTP 503: not now; hours that it has not told count by the yearly average\."
        )
    else:
        assert (current["from"], current["g_per_kwh"], current["year"]) == ("table", pytest.approx(213, abs=0.5), 2024)
        words = (
            r"Grid now: EU27: 213 g/kWh, yearly average of 2024, because Energy-Charts has not answered for 5 d: "
            r"HTTP 503: not now\."
        )
    expect(page.get_by_test_id("stAlert").get_by_text(re.compile(words))).to_be_visible()
    figures = answer_of(page, address)["total"]["figures"]
    assert figures["carbon_g"]["method"] == "default"
    assert metric(page, "CO2e") == f"{figures['carbon_g']['value']:,.0f} gCO2e"
    expect(page.get_by_text("EU27 2024 average, 213.02 g/kWh lifecycle (default)").first).to_be_visible()
    expect(page.get_by_text("No provider forecasts the zones of these fleets now")).to_be_visible()
    assert_no_error(page, said)
