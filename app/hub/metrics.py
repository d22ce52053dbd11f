"""`GET /metrics`: the hub's own figures in Prometheus' text format. No secret and no node's data is among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from app import __version__
from app.hub.grid_feed import GridFeed
from app.hub.grid_poller import GridPoller
from app.hub.jobs import Jobs
from app.hub.price_feed import PriceFeed
from app.hub.price_poller import PricePoller
from app.store.writer import SampleWriter


class HubMetrics(Collector):
    def __init__(
        self, writer: SampleWriter, jobs: Jobs, grid: GridPoller | None = None, prices: PricePoller | None = None
    ) -> None:
        self._writer = writer
        self._jobs = jobs
        self._grid = grid
        self._prices = prices
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        stats = self._writer.stats
        batches = CounterMetricFamily("wattmix_ingest_batches", "Batches, by what became of them", labels=["result"])
        results = {
            "stored": stats.batches,
            "duplicate": stats.duplicates,
            "refused": stats.refused,
            "overloaded": stats.overloaded,
        }
        for result, count in results.items():
            batches.add_metric([result], count)
        yield batches
        yield _counter("ingest_readings", "Readings stored", stats.readings)
        yield _counter("ingest_late_rows", "Rows left out for their time", stats.late_rows)
        yield _counter("commits", "Transactions of samples", stats.groups)
        yield _counter("commit_errors", "Transactions rolled back", stats.group_errors)
        yield _counter("commit_seconds", "Time spent in transactions of samples", stats.commit_s)
        yield _counter("job_errors", "Background jobs that failed", self._jobs.errors)
        yield _gauge("ingest_queue_batches", "Batches that wait to be written", self._writer.queued)
        yield _gauge("rollup_waiting_minutes", "GPU-minutes not rolled up yet", self._jobs.waiting)
        last = stats.last_commit.timestamp() if stats.last_commit else float("nan")
        yield _gauge("last_commit_timestamp_seconds", "When samples were last committed", last)
        if self._grid is not None:
            yield from _of_sources("grid", "zone", "Grid values", self._grid.feeds)
        if self._prices is not None:
            yield from _of_sources("price", "market", "Prices", self._prices.feeds)
        yield _build_info()


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"wattmix_{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"wattmix_{name}", text, value=value)


def _of_sources(what: str, place: str, values: str, feeds: Iterable[GridFeed | PriceFeed]) -> Iterator[Metric]:
    """By provider and place; a provider that is not asked, for lack of a key, is not up."""
    labels = ["provider", place]
    asked = CounterMetricFamily(
        f"wattmix_{what}_requests", "Questions, by what became of them", labels=[*labels, "result"]
    )
    added = CounterMetricFamily(f"wattmix_{what}_points", f"{values} that said otherwise than before", labels=labels)
    is_up = GaugeMetricFamily(f"wattmix_{what}_up", "Whether the provider answered the last time", labels=labels)
    last = GaugeMetricFamily(f"wattmix_{what}_last_answer_timestamp_seconds", "The last usable answer", labels=labels)
    for feed in feeds:
        state, where = feed.state, (feed.state.provider, feed.state.place)
        asked.add_metric([*where, "answered"], feed.answers)
        asked.add_metric([*where, "failed"], feed.failures)
        added.add_metric(where, feed.added)
        is_up.add_metric(where, float(state.answered_at is not None and state.problem is None))
        last.add_metric(where, state.answered_at.timestamp() if state.answered_at else float("nan"))
    yield from (asked, added, is_up, last)


def _build_info() -> Metric:
    info = GaugeMetricFamily("wattmix_build_info", "The running version", labels=["version"])
    info.add_metric([__version__], 1)
    return info
