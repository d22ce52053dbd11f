"""The dashboard in a real browser, against a real hub: what is painted is what the API says."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from playwright.sync_api import ConsoleMessage, Page, expect

pytestmark = pytest.mark.browser

# Streamlit's own client probes for a base path below a page's address first, and is told 404.
_EXPECTED_CONSOLE = re.compile(r"/_stcore/(health|host-config)$")
# Pages of accounts, of which the demo without simulation has none.
_ACCOUNTS = ("", "/", "/cost", "/energy", "/carbon", "/latency")

both_themes = pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])


def heard_in(page: Page, theme: str) -> list[ConsoleMessage]:
    """What the console of this page will say, in the light or the dark theme."""
    said: list[ConsoleMessage] = []
    page.on("console", lambda message: said.append(message))
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    return said


def assert_no_error(page: Page, said: list[ConsoleMessage]) -> None:
    assert page.locator("[data-testid=stException]").count() == 0
    errors = [one for one in said if one.type == "error" and not _EXPECTED_CONSOLE.search(one.location["url"])]
    assert [(one.text, one.location["url"]) for one in errors] == []


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor"))


BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 23, 22)"}


def open_settled(page: Page, url: str) -> None:
    page.goto(url)
    if url.endswith("/health"):
        # the demo has no nodes yet: the page says how to add one
        expect(page.get_by_text("No node has sent anything yet")).to_be_visible()
    elif urlsplit(url).path in _ACCOUNTS:
        expect(page.get_by_text("Nothing has been measured yet")).to_be_visible()
    elif url.endswith("/reports"):
        expect(page.get_by_text("One report now")).to_be_visible()
    elif "/facts" in url:
        expect(page.get_by_text("All facts")).to_be_visible()
        page.wait_for_selector(".stApp[data-test-script-state='notRunning']")
    else:
        settle(page)


def settle(page: Page) -> None:
    """Wait for the script to have run and its charts to be drawn."""
    page.wait_for_selector(".stApp[data-test-script-state='notRunning']")
    page.wait_for_selector("[data-testid=stMetricValue]")
    page.wait_for_selector(".stPlotlyChart .main-svg")


def metric(page: Page, label: str) -> str:
    found = page.locator("[data-testid=stMetric]").filter(has=page.get_by_text(label, exact=True))
    return found.locator("[data-testid=stMetricValue]").inner_text()


def press(page: Page, slider: str, key: str, times: int) -> None:
    """Move a slider as a person without a mouse would."""
    thumb = page.get_by_role("group", name=slider).locator("input[type=range]")
    thumb.focus()
    for _ in range(times):
        thumb.press(key)


def api(address: str, path: str) -> Any:
    response = requests.get(f"{address}{path}", timeout=30)
    response.raise_for_status()
    return response.json()


def test_moving_a_slider_changes_the_figures_to_what_the_api_says(page: Page, hub_address: str) -> None:
    open_settled(page, f"{hub_address}/split")
    before = api(hub_address, "/api/v1/split")
    assert metric(page, "Cost") == f"${before['usd_per_hour']:,.2f}/h" == "$8.50/h"
    press(page, "batch (req/s)", "ArrowRight", 10)
    after = api(hub_address, "/api/v1/split?rps.batch=45")
    assert after["usd_per_hour"] != before["usd_per_hour"]
    expect(page.get_by_text(f"${after['usd_per_hour']:,.2f}/h", exact=True).first).to_be_visible()
    settle(page)
    assert metric(page, "Cost") == f"${after['usd_per_hour']:,.2f}/h"
    assert metric(page, "Per million tokens") == f"${after['usd_per_mtok']:,.3f}"
    assert metric(page, "Power") == f"{after['watts']:,.0f} W"
    assert metric(page, "Carbon (CO2e)") == f"{after['g_per_hour']:,.0f} g/h"
    assert parse_qs(urlsplit(page.url).query)["rps.batch"] in (["45"], ["45.0"])


def test_a_link_reproduces_the_view(page: Page, hub_address: str) -> None:
    query = "rps.chat=12.5&usd.h100=3.1&carbon=100&util=0.7"
    open_settled(page, f"{hub_address}/split?{query}")
    answer = api(hub_address, f"/api/v1/split?{query}")
    assert metric(page, "Cost") == f"${answer['usd_per_hour']:,.2f}/h"
    assert metric(page, "Carbon (CO2e)") == f"{answer['g_per_hour']:,.0f} g/h"
    for reason in answer["reasons"]:
        expect(page.get_by_text(reason["text"].split(".")[0]).first).to_be_visible()


def test_the_page_states_both_reasons_and_why_options_are_out(page: Page, hub_address: str) -> None:
    open_settled(page, f"{hub_address}/split")
    expect(page.get_by_text("rtx4090 is out: the best of 15 points").first).to_be_visible()
    expect(page.get_by_text("rtx4090 $0.107/Mtok, h100 $0.223/Mtok").first).to_be_visible()
    page.get_by_text(re.compile(r"Options that are out \(\d+\)")).click()
    expect(page.locator("[data-testid=stExpander] [data-testid=stDataFrame]").first).to_be_visible()


def test_an_impossible_limit_is_answered_in_words(page: Page, hub_address: str) -> None:
    page.goto(f"{hub_address}/split?slo.chat=10")
    expect(page.get_by_text("No mix carries this demand.")).to_be_visible()
    expect(page.get_by_text(re.compile("h100: the best of 10 points, .* > 10 ms")).first).to_be_visible()


def test_benchmarks_follow_the_filters_and_the_url(page: Page, hub_address: str) -> None:
    open_settled(page, f"{hub_address}/benchmarks")
    assert metric(page, "Lowest $/Mtok (total)") == "$0.086"
    page.get_by_role("radio", name="output").or_(page.get_by_role("button", name="output")).first.click()
    rows = api(hub_address, "/api/v1/runs?model=DeepSeek-R1-Distill-Qwen-14B")["runs"]
    best = min(row["usd_per_mtok_output"] for row in rows)
    expect(page.get_by_text("Lowest $/Mtok (output)")).to_be_visible()
    assert metric(page, "Lowest $/Mtok (output)") == f"${best:,.3f}"
    assert parse_qs(urlsplit(page.url).query)["basis"] == ["output"]


def test_the_csv_download_is_the_apis_csv(page: Page, hub_address: str, tmp_path: Path) -> None:
    open_settled(page, f"{hub_address}/benchmarks")
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button").click()
    download.value.save_as(tmp_path / "runs.csv")
    ours = (tmp_path / "runs.csv").read_text(encoding="utf-8")
    theirs = requests.get(f"{hub_address}/api/v1/runs?model=DeepSeek-R1-Distill-Qwen-14B&format=csv", timeout=30).text
    assert ours == theirs
    assert len(list(csv.DictReader(io.StringIO(ours)))) == 25


def test_the_studys_claims_stand_beside_its_runs(page: Page, hub_address: str) -> None:
    open_settled(page, f"{hub_address}/benchmarks")
    for claim in api(hub_address, "/api/v1/study")["claims"]:
        expect(page.get_by_text(claim["claim"]).first).to_be_visible()
        expect(page.get_by_text(claim["finding"]).first).to_be_visible()


def test_run_now_writes_a_report_that_can_be_downloaded(page: Page, hub_address: str, tmp_path: Path) -> None:
    open_settled(page, f"{hub_address}/reports")
    page.get_by_role("button", name="Run now").first.click()
    expect(page.get_by_text(re.compile(r"daily_.*\.csv: \d+ rows"))).to_be_visible()
    [daily, _] = api(hub_address, "/api/v1/reports")["reports"]
    file = daily["last_run"]["file"]
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name="CSV").first.click()
    download.value.save_as(tmp_path / file)
    assert download.value.suggested_filename == file
    theirs = requests.get(f"{hub_address}/api/v1/reports/daily/files/{file}", timeout=30).content
    assert (tmp_path / file).read_bytes() == theirs
    assert hashlib.sha256(theirs).hexdigest() == daily["last_run"]["sha256"]


def test_the_facts_that_are_downloaded_are_the_apis(page: Page, hub_address: str, tmp_path: Path) -> None:
    open_settled(page, f"{hub_address}/facts?of=price")
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "facts.csv")
    theirs = requests.get(f"{hub_address}/api/v1/facts", {"kind": "price", "format": "csv"}, timeout=30)
    assert (tmp_path / "facts.csv").read_bytes() == theirs.content
    assert theirs.text.count("wattmix.toml") == 2  # the demo's two fleets


@pytest.mark.parametrize(
    "path", ["/", "/benchmarks", "/cost", "/energy", "/carbon", "/latency", "/split", "/reports", "/facts", "/health"]
)
@both_themes
def test_each_page_in_each_theme_without_an_error(page: Page, hub_address: str, path: str, theme: str) -> None:
    said = heard_in(page, theme)
    open_settled(page, f"{hub_address}{path}")
    assert background(page) == BACKGROUNDS[theme]
    assert_no_error(page, said)
