"""The data of each page at 1,000 GPUs and 30 days, with a store's samples and twice of them, and PromQL beside it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from app.accounting.account import FIGURES
from app.answers.account import account_lines
from app.answers.live import live
from app.answers.query import AccountQuery
from app.answers.summary import series, summary
from app.reports.report import build_report
from app.reports.request import Request, days_window
from app.store.database import Store
from tests.bench.big_fleet import CONFIG, HOUR_US, NOW, NOW_US
from tests.bench.big_store import add_samples, build, raw_rows
from tests.bench.promql import Peer, ours_by_day, peer_by_day
from tests.bench.report import Line
from tests.bench.servers import victoria_metrics

TIMES = 20
RAW_HOURS = 3
TZ = "Europe/Madrid"
MONTH = AccountQuery(NOW - timedelta(days=30), NOW, tz=TZ)
DAY = replace(MONTH, start=NOW - timedelta(days=1))
LATENCIES = tuple(name for name in FIGURES if name.split("_")[0] in ("ttft", "itl", "e2e", "slo"))
MONEY = tuple(name for name in FIGURES if name not in LATENCIES)
SPARKLINES = ("usd_per_mtok", "tokens_per_joule", "g_per_mtok", "usd_per_hour")
_OF_ENERGY = ("energy", "joules", "tokens_per", "mean_power", "carbon")
ENERGIES = tuple(name for name in FIGURES if name.startswith(_OF_ENERGY))

Ask = Callable[[Store], Any]


def _summary(query: AccountQuery, **asked: Any) -> Ask:
    return lambda store: summary(store, CONFIG, replace(query, **asked), NOW)


def _series(query: AccountQuery, **asked: Any) -> Ask:
    return lambda store: series(store, CONFIG, replace(query, **asked), NOW)


ASKED: Mapping[str, Ask] = {
    "overview, 30 days: every figure by fleet": _summary(MONTH, by="fleet"),
    "overview, 30 days: its sparklines": _series(MONTH, by="none", step="day", figures=SPARKLINES),
    "overview, 24 hours: every figure by fleet": _summary(DAY, by="fleet"),
    "cost, 30 days: by fleet": _summary(MONTH, by="fleet", figures=MONEY),
    "cost, 30 days: by GPU": _summary(MONTH, by="gpu", figures=("cost", "cost_idle", "utilisation")),
    "cost, 30 days: by fleet and day": _series(MONTH, by="fleet", step="day", figures=("cost", "usd_per_mtok")),
    "energy, 30 days: by model": _summary(MONTH, by="model", figures=ENERGIES),
    "energy, 30 days: by fleet and hour": _series(MONTH, by="fleet", step="hour", figures=("mean_power_w",)),
    "latency, 30 days: quantiles by fleet": _summary(MONTH, by="fleet", figures=LATENCIES),
    "latency, 24 hours: TTFT by model and hour": _series(DAY, by="model", step="hour", figures=("ttft_p99_ms",)),
    "live": lambda store: live(store, CONFIG, NOW),
}


@dataclass(frozen=True)
class _Times:
    """Of repeated calls, in ms."""

    median: float
    p95: float


def pages() -> list[Line]:
    """A store with three and six hours of samples; VictoriaMetrics with the same GPUs' hours."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        store = build(folder / "bench.duckdb")
        rows = add_samples(store, NOW_US - RAW_HOURS * HOUR_US, NOW_US)
        once = {name: timed(ask, store) for name, ask in ASKED.items()}
        lines = [_by_promql(folder, store), _monthly(store)]
        add_samples(store, NOW_US - 2 * RAW_HOURS * HOUR_US, NOW_US - RAW_HOURS * HOUR_US)
        twice = {name: timed(ask, store) for name, ask in ASKED.items()}
        note = f"of {rows / 1e6:.0f} and {raw_rows(store) / 1e6:.0f} M rows of samples"
        store.close()
    return [
        *(_line(name, found, twice[name]) for name, found in once.items()),
        Line("median of all with twice the samples over once", _growth(once, twice), "x", "1 (flat)", note=note),
        *lines,
    ]


def _line(name: str, once: _Times, twice: _Times) -> Line:
    note = f"p95 {once.p95:.0f}; with twice the samples {twice.median:.0f}, p95 {twice.p95:.0f}"
    return Line(name, once.median, "ms", "< 150", note=note)


def timed(ask: Ask, store: Store, times: int = TIMES) -> _Times:
    ask(store)
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        ask(store)
        taken.append(1e3 * (time.perf_counter() - began))
    return _Times(statistics.median(taken), sorted(taken)[int(0.95 * times)])


def _growth(once: Mapping[str, _Times], twice: Mapping[str, _Times]) -> float:
    return statistics.median(twice[name].median / found.median for name, found in once.items())


def _by_promql(folder: Path, store: Store) -> Line:
    ours = timed(ours_by_day, store)
    theirs, note = None, "not installed"
    with victoria_metrics(folder) as server:
        if server is not None:
            peer = Peer(server[0], store)
            theirs = timed(lambda _: peer_by_day(peer), store).median
            note = f"{peer.samples / 1e6:.1f} M samples there, one an hour; answers differ by {peer.difference():.1e}"
    return Line("tokens, joules and dollars by fleet and day, 30 days", ours.median, "ms", "<= 0.1 x", theirs,
                "VictoriaMetrics", note)  # fmt: skip


def _monthly(store: Store) -> Line:
    """A report of 30 local days, as the scheduler makes it."""
    last = NOW.date()
    window = days_window(last - timedelta(days=30), last, MONTH.zone)
    request = Request("fleet-day", window, TZ, "it", "total")

    def lines(periods: Any, **asked: Any) -> Any:
        return account_lines(store, CONFIG, periods, **asked)

    began = time.perf_counter()
    report = build_report(request, lines, NOW)
    took_s = time.perf_counter() - began
    return Line("monthly CSV, fleet-day", took_s, "s", "<= 5", note=f"{len(report.rows)} rows, {len(report.csv)} bytes")
