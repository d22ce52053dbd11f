"""The Carbon page in a real browser, with a provider that answers and one that hangs; without any: test_accounts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, expect

from collectors.samples import encode
from tests.batches import MINUTE
from tests.e2e.test_accounts import (
    SETTINGS,
    answer_of,
    assert_no_error,
    heard,
    settle,
    wait_for_rollups,
)
from tests.e2e.test_dashboard import api, metric
from tests.hub.grid_server import Grid, grid_server
from tests.hub_process import running
from tests.live_batches import replicas_up_to

pytestmark = pytest.mark.browser

WAIT_S = 60.0
both_themes = pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])


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
        end_us = (time.time_ns() // 1000 // MINUTE - 2) * MINUTE
        sent = encode(replicas_up_to(end_us, 4, slow=[2], idle=1))
        headers = {"Content-Type": "application/json"}
        assert requests.post(f"{hub.address}/api/v1/ingest", data=sent, headers=headers, timeout=30).status_code == 200
        wait_for_rollups(hub.address)
        wait_until(lambda: grid_of(hub.address)["current"]["from"] == "live")
        yield hub.address


def grid_of(address: str) -> dict[str, Any]:
    found: dict[str, Any] = api(address, "/api/v1/grid?zone=EU27")
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.3)


@both_themes
def test_carbon_is_the_api_s_answer_by_a_provider_s_hours(page: Page, carbon_hub: str, theme: str) -> None:
    said = heard(page)
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.goto(f"{carbon_hub}/carbon")
    settle(page)
    figures = answer_of(page, carbon_hub)["total"]["figures"]
    # all hours of the range are at 300 g/kWh, or by forecast at 100 in the quarter that is not over
    assert figures["carbon_g"]["value"] / figures["energy_site_kwh"]["value"] > 200
    assert metric(page, "gCO2e/Mtok") == f"{figures['g_per_mtok']['value']:,.1f}"
    assert metric(page, "CO2e") == f"{figures['carbon_g']['value']:,.0f} gCO2e"
    assert metric(page, "SCI, gCO2e/Mtok") == f"{figures['sci_g_per_mtok']['value']:,.1f}"
    expect(page.get_by_text("EU27 by the hour")).to_be_visible()
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
