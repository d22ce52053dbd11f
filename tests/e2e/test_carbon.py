"""The Carbon page in a real browser, with a provider that answers and one that hangs; without any: test_accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.batches import wait_until
from tests.e2e.test_accounts import SETTINGS, answer_of, opened, send_minutes, settle
from tests.e2e.test_dashboard import api, assert_no_error, both_themes, metric
from tests.hub.grid_server import Grid, grid_server
from tests.hub_process import running

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def provider() -> Iterator[Grid]:
    with grid_server(datetime.now(UTC)) as grid:
        yield grid


@pytest.fixture(scope="module")
def carbon_hub(tmp_path_factory: pytest.TempPathFactory, provider: Grid) -> Iterator[str]:
    """Five minutes of GPUs and engines in a zone that Energy-Charts, played, tells at 300 g/kWh and less to come."""
    folder = tmp_path_factory.mktemp("carbon")
    grid = f'\n[[grid]]\nprovider = "energy_charts"\nbase_url = "{provider.address}"\nzones = {{ "EU27" = "de" }}\n'
    (folder / "wattmix.toml").write_text(SETTINGS + grid, encoding="utf-8")
    with running(["serve", "--db", str(folder / "s.duckdb")], folder) as hub:
        send_minutes(hub.address)
        wait_until(lambda: grid_of(hub.address)["current"]["from"] == "live", "the provider's first answer")
        yield hub.address


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
