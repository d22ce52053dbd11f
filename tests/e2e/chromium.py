"""The system's Chromium under Playwright, which brings no browser of its own here."""

from __future__ import annotations

from playwright.sync_api import Browser, Playwright

from tests.conftest import chromium

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip


def launch(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
