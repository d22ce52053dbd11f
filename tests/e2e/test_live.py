"""The Live page in a real browser: its figures are the API's of the same moment, and the slow replica is named."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, expect

from collectors.samples import encode
from tests.e2e.test_dashboard import BACKGROUNDS, api, assert_no_error, background, both_themes, heard_in, metric
from tests.hub_process import running
from tests.live_batches import replicas_up_to

pytestmark = pytest.mark.browser

_SEQUENCE = itertools.count(1)
FIRST_DRAWN_MS = 30_000


@pytest.fixture(scope="module")
def own_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A hub without demo data."""
    folder = tmp_path_factory.mktemp("live")
    with running(["serve", "--db", str(folder / "s.duckdb")], folder) as hub:
        yield hub.address


def send(address: str, **given: Any) -> None:
    """Five minutes up to now of four engines, one of them slow, and a GPU without one. Nothing follows."""
    sent = replicas_up_to(time.time_ns() // 1000, 4, slow=[2], idle=1, sequence=next(_SEQUENCE), **given)
    headers = {"Content-Type": "application/json"}
    posted = requests.post(f"{address}/api/v1/ingest", data=encode(sent), headers=headers, timeout=30)
    assert posted.status_code == 200, posted.text


def shown(page: Page) -> tuple[dict[str, str], str]:
    """The figures and the address of the same answer, both of one refresh."""
    code = page.locator("code", has_text="/api/v1/live?")
    for _ in range(20):
        before = code.inner_text()
        figures = {label: metric(page, label) for label in ("Tokens/s", "TTFT p99", "Power", "Tokens/J", "Cost")}
        if code.inner_text() == before:
            return figures, before
    raise AssertionError("the page was redrawn each time")


def written(fleet: dict[str, Any]) -> dict[str, str]:
    """A fleet of the API's answer as the page writes it."""
    return {
        "Tokens/s": f"{fleet['tokens_per_s']['value']:,.0f}",
        "TTFT p99": f"{fleet['ttft_p99_ms']['value']:,.0f} ms",
        "Power": f"{fleet['power_w']['value']:,.0f} W",
        "Tokens/J": f"{fleet['tokens_per_joule']['value']:,.3f}",
        "Cost": f"${fleet['usd_per_hour']['value']:,.2f}/h",
    }


@both_themes
def test_the_page_is_the_api_s_answer_in_each_theme(page: Page, own_hub: str, theme: str) -> None:
    send(own_hub)
    said = heard_in(page, theme)
    page.goto(f"{own_hub}/live")
    expect(page.get_by_text("is slow: TTFT p50")).to_be_visible(timeout=FIRST_DRAWN_MS)
    page.wait_for_selector(".stPlotlyChart .main-svg")
    figures, address = shown(page)
    answer = api(own_hub, address)
    (fleet,) = answer["fleets"]
    assert figures == written(fleet)
    assert figures["Tokens/s"] == "480"  # 4 x 120
    assert (answer["replicas"][0]["replica"], answer["replicas"][0]["state"]) == ("node-7:8002", "slow")
    expect(page.get_by_text("node-7:8002 slow")).to_be_visible()
    expect(page.get_by_text("GPUs without an engine (1)")).to_be_visible()
    assert background(page) == BACKGROUNDS[theme]
    assert_no_error(page, said)


def test_the_page_follows_its_address_and_refreshes_itself(page: Page, own_hub: str) -> None:
    send(own_hub)
    page.goto(f"{own_hub}/live?window_s=30")
    code = page.locator("code", has_text="/api/v1/live?window_s=30&")
    expect(code).to_be_visible(timeout=FIRST_DRAWN_MS)
    figures, address = shown(page)
    assert figures == written(api(own_hub, address)["fleets"][0])
    expect(code).not_to_have_text(address, timeout=15_000)
    assert re.search(r"window_s=30&at=[0-9T:.-]+Z$", code.inner_text())


def test_simulated_nodes_are_badged(page: Page, own_hub: str) -> None:
    """Law 10. A node that ever sent simulated numbers stays marked, which the other tests do not ask."""
    send(own_hub, simulated=True)
    page.goto(f"{own_hub}/live")
    expect(page.get_by_text("Simulated: these nodes are made up")).to_be_visible(timeout=FIRST_DRAWN_MS)
    page.goto(f"{own_hub}/health")
    expect(page.get_by_text("Some nodes are simulated")).to_be_visible(timeout=FIRST_DRAWN_MS)
