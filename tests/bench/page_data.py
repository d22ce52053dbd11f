"""What each page asks of its hub at 1,000 GPUs and 30 days, with a store's samples and with twice of them."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from streamlit.testing.v1 import AppTest

from app.backend.local import LocalBackend
from app.backend.served import serve_from
from app.reports.report import build_report
from app.reports.request import Request, days_window
from app.store.database import Store
from tests.bench.big_fleet import CONFIG, HOUR_US, NOW, NOW_US
from tests.bench.big_store import add_samples, build
from tests.bench.promql import Peer, ours_by_day, peer_by_day
from tests.bench.report import Line
from tests.bench.servers import victoria_metrics
from tests.dashboard.test_views import open_page

TIMES = 20
RAW_HOURS = 3
MONTH = {"range": "last 30 days", "tz": "Europe/Madrid"}
DAY = {"range": "last 24 h", "tz": "Europe/Madrid"}
# (view, what its address says)
PAGES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "Overview, 30 days": ("overview", MONTH),
    "Overview, 24 hours": ("overview", DAY),
    "Cost by fleet, 30 days": ("cost", MONTH),
    "Cost by model, 30 days": ("cost", {**MONTH, "by": "model"}),
    "Cost by GPU, 30 days": ("cost", {**MONTH, "by": "gpu"}),
    "Energy, 30 days": ("energy", MONTH),
    "Latency, 30 days": ("latency", MONTH),
    "Latency, 24 hours": ("latency", DAY),
    "Live": ("live", {}),
    "Facts": ("facts", {}),
    "Health": ("health", {}),
}

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Times:
    """Of repeated calls, in ms. slowest: the call that took the longest, and how long at the median."""

    median: float
    p95: float
    slowest: str = ""


class _Listening:
    """A backend that notes what it is asked."""

    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend
        self.calls: list[Call] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._backend, name)
        if not callable(found):
            return found

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, args, kwargs))
            return found(*args, **kwargs)

        return noted


def pages() -> list[Line]:
    """A store with three, then six hours of samples; VictoriaMetrics with scrapes of the same GPUs."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        store = build(folder / "bench.duckdb")
        backend = LocalBackend(store, CONFIG)
        rows = [add_samples(store, NOW_US - RAW_HOURS * HOUR_US, NOW_US)]
        calls = {name: calls_of(backend, *page) for name, page in PAGES.items()}
        once = {name: replayed(backend, asked) for name, asked in calls.items()}
        lines = [_by_promql(folder, store), _monthly(backend)]
        rows.append(add_samples(store, NOW_US - 2 * RAW_HOURS * HOUR_US, NOW_US - RAW_HOURS * HOUR_US))
        twice = {name: replayed(backend, asked) for name, asked in calls.items()}
        store.close()
    return [
        *(_line(name, len(calls[name]), once[name], twice[name]) for name in PAGES),
        _growth(once, twice, rows),
        *lines,
    ]


def calls_of(backend: LocalBackend, view: str, asked: Mapping[str, str]) -> list[Call]:
    """What a page asks while it is drawn. Live is asked as of the last samples."""
    listening = _Listening(backend)
    serve_from(cast(LocalBackend, listening))
    try:
        app: AppTest = open_page(view, **asked)
    finally:
        serve_from(None)
    assert not app.exception, app.exception
    return [(name, args, kwargs | {"at": NOW} if name == "live" else kwargs) for name, args, kwargs in listening.calls]


def replayed(backend: LocalBackend, calls: Sequence[Call], times: int = TIMES) -> Times:
    """All calls of a page, again and again."""
    rounds = [
        [_ms(lambda one=one: getattr(backend, one[0])(*one[1], **one[2])) for one in calls] for _ in range(times + 1)
    ]
    totals = sorted(sum(taken) for taken in rounds[1:])
    medians = [statistics.median(column) for column in zip(*rounds[1:], strict=True)]
    slowest = max(range(len(calls)), key=medians.__getitem__)
    said = f"{calls[slowest][0]} {medians[slowest]:.0f}"
    return Times(statistics.median(totals), totals[int(0.95 * times)], said)


def _ms(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - began)


def _line(name: str, calls: int, once: Times, twice: Times) -> Line:
    note = f"p95 {once.p95:.0f}; {calls} calls, slowest {once.slowest}; twice the samples: {twice.median:.0f}"
    return Line(f"page data: {name}", once.median, "ms", "< 150", note=note)


def _growth(once: Mapping[str, Times], twice: Mapping[str, Times], rows: Sequence[int]) -> Line:
    of_all = [sum(times.median for times in found.values()) for found in (once, twice)]
    note = f"{rows[0] / 1e6:.0f} and {rows[1] / 1e6:.0f} M rows of samples"
    return Line(
        "page data of all pages, twice the samples over once", of_all[1] / of_all[0], "x", "1 (flat)", note=note
    )


def _by_promql(folder: Path, store: Store) -> Line:
    ours = statistics.median(_ms(lambda: ours_by_day(store)) for _ in range(TIMES))
    theirs, note = None, "not installed"
    with victoria_metrics(folder) as server:
        if server is not None:
            peer = Peer(server[0], store)
            peer_by_day(peer)
            theirs = statistics.median(_ms(lambda: peer_by_day(peer)) for _ in range(TIMES))
            scrapes = f"{peer.samples / 1e6:.0f} M samples there, a scrape a minute"
            note = f"{scrapes}; answers differ by {peer.difference():.0e}"
    return Line("tokens, joules and dollars by fleet and day, 30 days", ours, "ms", "<= 0.1 x", theirs,
                "VictoriaMetrics", note)  # fmt: skip


def _monthly(backend: LocalBackend) -> Line:
    """A report of 30 local days, as the scheduler makes it."""
    last = NOW.date()
    window = days_window(last - timedelta(days=30), last, ZoneInfo(MONTH["tz"]))
    request = Request("fleet-day", window, MONTH["tz"], "it", "total")
    began = time.perf_counter()
    report = build_report(request, backend.account, NOW)
    size = len(report.csv)
    return Line(
        "monthly CSV, fleet-day",
        time.perf_counter() - began,
        "s",
        "<= 5",
        note=f"{len(report.rows)} rows, {size} bytes",
    )
