"""A demo hub and a Chromium, once for all browser tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.conftest import chromium, need
from tests.e2e.chromium import launch
from tests.hub_process import running


@pytest.fixture(scope="session")
def hub_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("demo")
    with running(["demo", "--no-browser", "--no-simulation", "--db", str(folder / "demo.duckdb")], folder) as hub:
        yield hub.address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    need(chromium() is not None, "Chromium", "apt-get install chromium")
    with sync_playwright() as playwright:
        opened = launch(playwright)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of its own context, tall enough that nothing waits to be scrolled to."""
    context = browser.new_context(viewport={"width": 1440, "height": 2400}, accept_downloads=True)
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()
