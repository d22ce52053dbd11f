"""`make screenshots`: every page of a running hub in light and dark, as PNG files.

python -m tests.e2e.screenshots ADDRESS FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from tests.e2e.chromium import launch
from tests.hub_process import running

PAGES = {
    "overview": "/",
    "benchmarks": "/benchmarks",
    "cost": "/cost",
    "energy": "/energy",
    "carbon": "/carbon",
    "latency": "/latency",
    "live": "/live",
    "split": "/split",
    "reports": "/reports",
    "facts": "/facts",
    "health": "/health",
}
WIDTH_PX, HEIGHT_PX = 1440, 1000


def take(address: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for theme in ("light", "dark"):
            context = browser.new_context(viewport={"width": WIDTH_PX, "height": HEIGHT_PX}, color_scheme=theme)
            for name, path in PAGES.items():
                page = context.new_page()
                page.goto(f"{address}{path}")
                _settle(page)
                page.set_viewport_size({"width": WIDTH_PX, "height": _full_height(page)})
                _settle(page)
                page.screenshot(path=str(folder / f"{name}-{theme}.png"))
                page.close()
        browser.close()


def _settle(page: Page) -> None:
    page.wait_for_selector(".stApp[data-test-script-state='notRunning']", timeout=30_000)
    page.wait_for_selector(
        ".stPlotlyChart .main-svg, [data-testid=stAlert], [data-testid=stDataFrame], [data-testid=stForm]"
    )
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_timeout(700)


def _full_height(page: Page) -> int:
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    return max(HEIGHT_PX, int(height))


def main(folder: str = "screenshots", address: str | None = None) -> None:
    target = Path(folder).resolve()
    if address is not None:
        take(address.rstrip("/"), target)
        return
    with (
        TemporaryDirectory() as temporary,
        running(["demo", "--no-browser", "--db", f"{temporary}/demo.duckdb"], Path(temporary)) as hub,
    ):
        take(hub.address, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
