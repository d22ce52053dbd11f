"""What reading an engine's metrics page costs, beside prometheus_client alone on the same page."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from collectors.engine.difference import Differences
from collectors.engine.page import read_page
from tests.bench.report import Line
from tests.collectors.engine.pages import VERSIONS, Work, vllm_page
from tests.conftest import ROOT

CAPTURES = ROOT.parent / "shared" / "vllm_metrics"
PAGES = {"0.8.5": "0.8.5.post2", "0.32.0": "0.32.0"}
TIMES, ROUNDS = 20, 5


def scrape() -> list[Line]:
    """A page of vLLM 0.8.5 and of 0.32, read again and again as a scraper does."""
    return [line for version in PAGES for line in _compare(version)]


def _compare(version: str) -> list[Line]:
    page, source = page_of(version)
    differences = Differences()
    moment = 0

    def ours() -> None:
        nonlocal moment
        moment += 5_000_000
        differences.look(read_page(page, "vllm"), moment)

    def peer() -> None:
        for _ in text_string_to_metric_families(page):
            pass

    ours()
    note = f"{len(page.splitlines())} lines ({source}); read and differenced, from the second look on"
    return [Line(f"scrape, page of vLLM {version}", _best_ms(ours), "ms CPU", "below the peer's", _best_ms(peer),
                 "prometheus_client", note)]  # fmt: skip


def page_of(version: str) -> tuple[str, str]:
    """A captured page where the captures are beside this checkout, else one that is built alike but shorter."""
    capture = CAPTURES / PAGES[version] / "load_end.prom"
    if capture.is_file():
        return capture.read_text(encoding="utf-8"), "captured"
    known = next(name for name in VERSIONS if name.startswith(version))
    work = Work(prompt_tokens=9_000, generated_tokens=8_000, finished={"stop": 30}, ttft=[0.03], itl=[0.01], e2e=[2.0])
    return vllm_page(known, work), "built"


def _best_ms(call: Callable[[], None]) -> float:
    """Of a few rounds the quietest: CPU time, so that other processes count little."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(TIMES):
            call()
        rounds.append((time.process_time() - began) / TIMES)
    return 1e3 * min(rounds)
