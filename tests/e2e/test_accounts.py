"""Pages of accounts in a real browser: figures are the API's for the address that the page gives, in both themes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from playwright.sync_api import ConsoleMessage, Page, expect

from collectors.samples import encode
from tests.batches import MINUTE, MODEL
from tests.e2e.test_dashboard import api, assert_no_error, both_themes, heard_in, metric
from tests.hub_process import running
from tests.live_batches import replicas_up_to

pytestmark = pytest.mark.browser

FIRST_DRAWN_MS = 30_000
ROLLED_UP_S = 60.0
SETTINGS = f"""
[[fleet]]
name = "lab"
gpu = "*"
zone = "EU27"
price = {{ plan = "rented", usd_per_gpu_hour = 2.0 }}

[[node]]
match = "*"
fleet = "lab"

[[slo]]
model = "{MODEL}"
max_ms = 50.0

[[hosted_price]]
model = "example-ai/{MODEL}"
input_usd_per_mtok = 1.0
output_usd_per_mtok = 2.0
"""


@pytest.fixture(scope="module")
def accounts_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A hub with five whole minutes of four engines and of a GPU without one, rolled up, and nothing after them."""
    folder = tmp_path_factory.mktemp("accounts")
    (folder / "wattmix.toml").write_text(SETTINGS, encoding="utf-8")
    with running(["serve", "--db", str(folder / "s.duckdb")], folder) as hub:
        send_minutes(hub.address)
        yield hub.address


def send_minutes(address: str) -> None:
    """Five whole minutes of four engines and of a GPU without one, and wait until they are rolled up."""
    end_us = (time.time_ns() // 1000 // MINUTE - 2) * MINUTE
    sent = encode(replicas_up_to(end_us, 4, slow=[2], idle=1))
    headers = {"Content-Type": "application/json"}
    assert requests.post(f"{address}/api/v1/ingest", data=sent, headers=headers, timeout=30).status_code == 200
    wait_for_rollups(address)


def wait_for_rollups(address: str) -> None:
    """4 engines x 60 scrapes x 500 prompt tokens, 5 GPUs x 70 s; and once more, when nothing is left to be done."""
    deadline, seen = time.monotonic() + ROLLED_UP_S, 0
    while time.monotonic() < deadline:
        figures = api(address, "/api/v1/summary?figures=prompt_tokens,gpu_hours")["total"]["figures"]
        hours = figures["gpu_hours"]["value"] or 0.0
        seen += figures["prompt_tokens"]["value"] == 120_000 and abs(hours * 3600 - 350) < 1e-6
        if seen > 20:
            return
        time.sleep(0.3)
    raise AssertionError(f"nothing was rolled up within {ROLLED_UP_S:g} s")


def settle(page: Page) -> None:
    page.wait_for_selector(".stApp[data-test-script-state='notRunning']", timeout=FIRST_DRAWN_MS)
    page.wait_for_selector("[data-testid=stMetricValue]", timeout=FIRST_DRAWN_MS)
    page.wait_for_selector(".stPlotlyChart .main-svg", timeout=FIRST_DRAWN_MS)


def answer_of(page: Page, address: str) -> dict[str, Any]:
    """What the API says to the address that stands on the page."""
    found: dict[str, Any] = api(address, page.locator("code", has_text="/api/v1/summary?").inner_text())
    return found


def usd(figures: dict[str, Any], name: str, digits: int = 2) -> str:
    value = figures[name]["value"]
    return "–" if value is None else f"${value:,.{digits}f}"


def opened(page: Page, address: str, theme: str) -> list[ConsoleMessage]:
    """Open a page of accounts and wait until it is drawn; what its console says."""
    said = heard_in(page, theme)
    page.goto(address)
    settle(page)
    return said


@both_themes
def test_the_overview_is_the_api_s_answer_in_each_theme(page: Page, accounts_hub: str, theme: str) -> None:
    said = opened(page, accounts_hub, theme)
    figures = answer_of(page, accounts_hub)["total"]["figures"]
    assert metric(page, "$/Mtok") == usd(figures, "usd_per_mtok", 3)
    assert metric(page, "Tokens/J") == f"{figures['tokens_per_joule']['value']:,.3f}"
    assert metric(page, "gCO2e/Mtok") == f"{figures['g_per_mtok']['value']:,.1f}"
    assert metric(page, "Spend, $/h") == usd(figures, "usd_per_hour")
    assert metric(page, "SLO met by at least") == f"{figures['slo_attainment_low']['value']:.1%}"
    page.get_by_role("button", name="How").first.click()
    expect(page.get_by_text("= cost / tokens x 1,000,000")).to_be_visible()
    expect(page.get_by_text(usd(figures, "cost")).first).to_be_visible()
    assert_no_error(page, said)


@both_themes
def test_the_bill_is_the_api_s_and_its_csv_too(page: Page, accounts_hub: str, theme: str, tmp_path: Path) -> None:
    said = opened(page, f"{accounts_hub}/cost?by=gpu", theme)
    answer = answer_of(page, accounts_hub)
    figures = answer["total"]["figures"]
    for label, name in (("Cost", "cost"), ("Slack", "cost_slack"), ("Idle", "cost_idle"), ("Output", "cost_output"),
                        ("Unallocated", "cost_unallocated")):  # fmt: skip
        assert metric(page, label) == usd(figures, name)
    assert len(answer["lines"]) == 5
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "bill.csv")
    address = page.locator("code", has_text="/api/v1/summary?").inner_text()
    theirs = requests.get(f"{accounts_hub}{address}&format=csv", timeout=30).content
    assert (tmp_path / "bill.csv").read_bytes() == theirs
    expect(page.get_by_text("Break-even against hosted prices (1)")).to_be_visible()
    assert_no_error(page, said)


@both_themes
def test_energy_is_the_api_s_answer_in_each_theme(page: Page, accounts_hub: str, theme: str) -> None:
    said = opened(page, f"{accounts_hub}/energy?boundary=site", theme)
    figures = answer_of(page, accounts_hub)["total"]["figures"]
    for label, name in (("Energy", "energy_kwh"), ("Idle energy", "energy_idle_kwh"),
                        ("Unallocated energy", "energy_unallocated_kwh")):  # fmt: skip
        assert metric(page, label) == f"{figures[name]['value']:,.2f} kWh"
    assert metric(page, "Mean power") == f"{figures['mean_power_w']['value']:,.0f} W"
    assert metric(page, "J/token") == f"{figures['joules_per_token']['value']:,.3f}"
    for title in ("Power by fleet", "Energy by fleet, boundary site", "How well it is known"):
        expect(page.locator(".stPlotlyChart .gtitle", has_text=title)).to_be_visible()
    # whether 70 s hold a whole minute of which both tokens and power are known is the clock's choice
    curve = page.locator(".stPlotlyChart .gtitle", has_text="Power against load")
    expect(curve.or_(page.get_by_text("power against load is not known"))).to_be_visible()
    assert_no_error(page, said)


@both_themes
def test_without_a_grid_provider_the_table_counts_and_it_is_said(page: Page, accounts_hub: str, theme: str) -> None:
    said = opened(page, f"{accounts_hub}/carbon", theme)
    figures = answer_of(page, accounts_hub)["total"]["figures"]
    assert metric(page, "gCO2e/Mtok") == f"{figures['g_per_mtok']['value']:,.1f}"
    assert metric(page, "CO2e, market") == "–"
    expect(page.get_by_text("EU27: 213 g/kWh, yearly average of")).to_be_visible()
    expect(page.get_by_text("No hour of this range has a measured grid intensity")).to_be_visible()
    expect(page.get_by_text("No provider forecasts the zones of these fleets")).to_be_visible()
    assert_no_error(page, said)


@both_themes
def test_latency_is_the_api_s_answer_in_each_theme(page: Page, accounts_hub: str, theme: str) -> None:
    said = opened(page, f"{accounts_hub}/latency", theme)
    answer = api(accounts_hub, page.locator("code", has_text="/api/v1/latency?").inner_text())
    whole, held = answer["total"]["whole"]["ttft"], answer["total"]["attainment"]
    assert metric(page, "TTFT p50") == written_ms(whole["p50"]["value"])
    assert metric(page, "TTFT p99") == written_ms(whole["p99"]["value"])
    assert metric(page, "Within the limit") == f"{100 * held['low']['value']:.1f}–{held['high']['value']:.1%}"
    expect(page.get_by_text(f"n = {whole['p99']['n']:,} first tokens")).to_be_visible()
    assert len(answer_of(page, accounts_hub)["lines"]) == 5  # four replicas, and the GPU without an engine
    for title in ("TTFT over time", "Requests within the limit: TTFT ≤ 50 ms", "TTFT by bucket"):
        expect(page.locator(".stPlotlyChart .gtitle", has_text=title)).to_be_visible()
    assert_no_error(page, said)


def test_latency_and_limit_go_into_the_address(page: Page, accounts_hub: str) -> None:
    page.goto(f"{accounts_hub}/latency?max_ms=10")
    settle(page)
    expect(page.get_by_text("TTFT ≤ 10 ms").first).to_be_visible()
    page.get_by_role("radio", name="End-to-end").or_(page.get_by_role("button", name="End-to-end")).first.click()
    expect(page.get_by_text("End-to-end p99")).to_be_visible()
    assert parse_qs(urlsplit(page.url).query) == {"max_ms": ["10"], "metric": ["End-to-end"]}


def written_ms(value: float) -> str:
    return f"{value:,.{0 if value >= 10 else 1}f} ms"


def test_a_filter_goes_into_the_address_and_along_to_the_next_page(page: Page, accounts_hub: str) -> None:
    page.goto(f"{accounts_hub}/?view=idle")
    settle(page)
    idle = answer_of(page, accounts_hub)["total"]["figures"]
    assert metric(page, "Spend, $/h") == usd(idle, "usd_per_hour")
    page.get_by_test_id("stSelectbox").filter(has_text="Tokens").get_by_role("combobox").click()
    page.get_by_role("option", name="output").click()
    expect(page.get_by_text("Tokens: output (generated tokens).", exact=False)).to_be_visible()
    assert parse_qs(urlsplit(page.url).query) == {"view": ["idle"], "basis": ["output"]}
    page.get_by_role("link", name="Cost", exact=True).click()
    page.wait_for_url(re.compile("/cost"))
    expect(page.get_by_text("Bill over time")).to_be_visible(timeout=FIRST_DRAWN_MS)
    settle(page)
    figures = answer_of(page, accounts_hub)["total"]["figures"]
    assert metric(page, "$/Mtok") == usd(figures, "usd_per_mtok", 3)
    asked = parse_qs(urlsplit(page.locator("code", has_text="/api/v1/summary?").inner_text()).query)
    assert (asked["view"], asked["basis"]) == (["idle"], ["output"])


def test_days_are_those_of_the_browser_s_zone(browser: Any, accounts_hub: str) -> None:
    """In a zone where it is about one o'clock in the afternoon: today has data there at any time of the test."""
    ahead_h = 13 - datetime.now(UTC).hour or -1
    zone = f"Etc/GMT{-ahead_h:+d}"  # whose sign is that of hours behind
    context = browser.new_context(timezone_id=zone)
    page = context.new_page()
    page.goto(f"{accounts_hub}/?range=today")
    settle(page)
    asked = parse_qs(urlsplit(page.locator("code", has_text="/api/v1/summary?").inner_text()).query)
    context.close()
    assert asked["tz"] == [zone]
    assert asked["from"][0].endswith(f"T{-ahead_h % 24:02}:00Z")


@pytest.mark.slow
def test_a_page_opened_too_early_fills_itself(page: Page, tmp_path: Path) -> None:
    """The first agent's samples are shown without a reload, once they are added up."""
    with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
        page.goto(hub.address)
        expect(page.get_by_text("Nothing has been measured yet")).to_be_visible(timeout=FIRST_DRAWN_MS)
        sent = encode(replicas_up_to((time.time_ns() // 1000 // MINUTE - 2) * MINUTE, 1))
        headers = {"Content-Type": "application/json"}
        requests.post(f"{hub.address}/api/v1/ingest", data=sent, headers=headers, timeout=30).raise_for_status()
        settle(page)
        figures = answer_of(page, hub.address)["total"]["figures"]
        assert metric(page, "Spend, $/h") == usd(figures, "usd_per_hour")
