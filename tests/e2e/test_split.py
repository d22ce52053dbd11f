"""The *Split* page in a real browser: ticks, scenarios, a link to the digit, the files of the plan and the router."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import yaml
from playwright.sync_api import Page, expect

from app.answers.plan_rows import plan_as_csv
from app.split.router_files import FORMATS
from tests.e2e.test_dashboard import (
    BACKGROUNDS,
    api,
    assert_no_error,
    background,
    both_themes,
    heard_in,
    metric,
    open_settled,
    press,
    settle,
)

pytestmark = pytest.mark.browser

SECTIONS = ["Mix", "Cost and carbon", "Cost and SLO", "Robustness", "Plan", "Scenarios", "Router"]


def open_section(page: Page, address: str, section: str, query: str = "") -> None:
    page.goto(f"{address}/split?section={section}{query}")
    page.wait_for_selector("[data-testid=stMetricValue]")
    page.wait_for_selector(".stApp[data-test-script-state='notRunning']")


def test_a_tick_stands_on_the_track_at_the_price_in_force(page: Page, hub_address: str) -> None:
    """The demo's H100s are at $2 in force: 40% of a track from 0 to 5. Its words are below the slider."""
    open_settled(page, f"{hub_address}/split")
    track = ".st-key-usd-h100 [role=group] > div"
    drawn = page.evaluate(
        f"""() => {{
            const track = document.querySelector('{track}'), tick = getComputedStyle(track, '::after');
            const slider = document.querySelector('.st-key-usd-h100 [data-testid=stSlider]');
            const words = getComputedStyle(slider, '::after').content;
            return [parseFloat(tick.left) / track.clientWidth, parseFloat(tick.width), words];
        }}"""
    )
    assert drawn[0] == pytest.approx(0.4, abs=0.005)
    assert drawn[1] == 3
    assert drawn[2] == '"│ 2 price in force: wattmix.toml, fleet h100"'
    none = page.evaluate(
        "getComputedStyle(document.querySelector('.st-key-carbon [role=group] > div'), '::after').content"
    )
    assert none == "none"


def test_a_shared_link_reproduces_the_figures_to_the_digit(page: Page, hub_address: str) -> None:
    """Numbers that no slider's step hits, and one beyond its range."""
    query = "&rps.chat=7.123456789012345&rps.batch=123.4&usd.h100=3.17&g.h100=98.765&util=0.77"
    open_section(page, hub_address, "Scenarios", query)
    link = page.locator("[data-testid=stCode]").first.inner_text().strip()
    asked = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
    assert float(asked["rps.chat"]) == 7.123456789012345
    shown = [metric(page, label) for label in ("Cost", "Per million tokens", "Power", "Carbon (CO2e)")]
    answer = requests.get(f"{hub_address}/api/v1/split", params=asked, timeout=30).json()
    assert shown == [
        f"${answer['usd_per_hour']:,.2f}/h",
        f"${answer['usd_per_mtok']:,.3f}",
        f"{answer['watts']:,.0f} W",
        f"{answer['g_per_hour']:,.0f} g/h",
    ]
    other = page.context.new_page()
    open_settled(other, link)
    assert [metric(other, label) for label in ("Cost", "Per million tokens", "Power", "Carbon (CO2e)")] == shown


def test_a_scenario_is_saved_opened_compared_and_deleted(page: Page, hub_address: str) -> None:
    open_section(page, hub_address, "Scenarios", "&rps.batch=80")
    page.get_by_label("Name", exact=True).fill("double batch")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved double batch.")).to_be_visible()
    page.wait_for_selector("[data-testid=stPlotlyChart] .main-svg, .stPlotlyChart .main-svg")
    [kept] = api(hub_address, "/api/v1/split/scenarios")["scenarios"]
    assert kept["name"] == "double batch"
    answer = api(hub_address, "/api/v1/split?scenario=double batch")
    assert metric(page, "Cost") == f"${answer['usd_per_hour']:,.2f}/h"
    other = page.context.new_page()
    open_settled(other, f"{hub_address}/split?scenario=double%20batch")
    expect(other.get_by_text("The sliders begin at the scenario double batch.")).to_be_visible()
    assert metric(other, "Cost") == f"${answer['usd_per_hour']:,.2f}/h"
    page.get_by_role("button", name="Delete a scenario").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Deleted double batch.")).to_be_visible()
    assert api(hub_address, "/api/v1/split/scenarios") == {"scenarios": []}


@pytest.mark.parametrize("form", FORMATS)
def test_the_router_s_file_that_is_downloaded_is_the_api_s(
    page: Page, hub_address: str, tmp_path: Path, form: str
) -> None:
    names = dict(zip(FORMATS, ("LiteLLM", "vLLM production stack", "Gateway API (HTTPRoute)"), strict=True))
    open_section(page, hub_address, "Router", "&rps.chat=12.5")
    choice = page.get_by_test_id("stButtonGroup")
    choice.get_by_role("radio", name=names[form]).or_(choice.get_by_role("button", name=names[form])).first.click()
    title = {"litellm": "LiteLLM's proxy", "production-stack": "the router", "gateway-api": "the Kubernetes"}
    expect(page.get_by_text(f"# Weights for {title[form]}")).to_be_visible()
    page.wait_for_selector(".stApp[data-test-script-state='notRunning']")
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == f"wattmix-{form}.yaml"
    download.value.save_as(tmp_path / "r.yaml")
    ours = (tmp_path / "r.yaml").read_text(encoding="utf-8")
    theirs = requests.get(
        f"{hub_address}/api/v1/split/export", params={"format": form, "rps.chat": 12.5}, timeout=30
    ).text
    assert ours.splitlines()[1:] == theirs.splitlines()[1:]
    assert list(yaml.safe_load_all(ours)) == list(yaml.safe_load_all(theirs))


def test_a_plan_s_figures_and_file_are_the_api_s(page: Page, hub_address: str, tmp_path: Path) -> None:
    open_section(page, hub_address, "Plan", "&rps.chat=12.5&tz=Europe/Madrid")
    address = page.get_by_text("The same plan as JSON:").locator("code")
    expect(address).to_have_text("/api/v1/split/plan?hours=24&rps.chat=12.5")
    answer = api(hub_address, address.inner_text())
    assert metric(page, "Cost of 24 h") == f"${answer['totals']['usd']:,.2f}"
    assert metric(page, "CO2e of 24 h") == f"{answer['totals']['g']:,.0f} g"
    assert metric(page, "Saved in 24 h") == f"${answer['saving']['usd']:,.2f}"
    expect(page.locator(".stPlotlyChart").get_by_text("local time, Europe/Madrid")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "wattmix-plan-24h.csv"
    download.value.save_as(tmp_path / "plan.csv")
    ours = (tmp_path / "plan.csv").read_text(encoding="utf-8")
    assert ours == plan_as_csv(answer)


def test_no_card_is_cut_on_a_narrow_window(page: Page, hub_address: str) -> None:
    page.set_viewport_size({"width": 900, "height": 1000})
    open_settled(page, f"{hub_address}/split")
    cards = page.locator("[data-testid=stMetricValue]")
    expect(cards.first).to_be_visible()
    too_wide = "one => one.clientWidth && one.scrollWidth - one.clientWidth"
    widths = f"found => [found, ...found.querySelectorAll('*')].map({too_wide})"
    assert [max(one.evaluate(widths)) for one in cards.all()] == [0] * cards.count()


def test_a_moved_slider_does_not_close_the_section(page: Page, hub_address: str) -> None:
    open_section(page, hub_address, "Router")
    press(page, "batch (req/s)", "ArrowRight", 10)
    after = api(hub_address, "/api/v1/split?rps.batch=45")
    expect(page.get_by_text(f"${after['usd_per_hour']:,.2f}/h", exact=True).first).to_be_visible()
    expect(page.get_by_role("tab", name="Router")).to_have_attribute("aria-selected", "true")
    assert parse_qs(urlsplit(page.url).query)["section"] == ["Router"]


@pytest.mark.parametrize("section", SECTIONS)
@both_themes
def test_each_section_in_each_theme_without_an_error(page: Page, hub_address: str, section: str, theme: str) -> None:
    said = heard_in(page, theme)
    open_section(page, hub_address, section)
    expect(page.get_by_role("tab", name=section)).to_have_attribute("aria-selected", "true")
    if section not in ("Scenarios", "Router"):
        settle(page)
    assert background(page) == BACKGROUNDS[theme]
    assert_no_error(page, said)
