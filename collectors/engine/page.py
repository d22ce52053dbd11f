"""An engine's metrics page, read: which kind of engine shows it, and what each of its engines has counted."""

from __future__ import annotations

from collections.abc import Mapping

from collectors.engine import llama_cpp, sglang, tgi, triton, vllm
from collectors.engine.columns import Shown, value_of
from collectors.engine.engines import PageEngine, engines_of
from collectors.engine.histogram import read_histogram
from collectors.engine.reading import EngineReading, Histogram
from collectors.engine.series import PageError, find_series, shows
from collectors.engine.table import FACTORS, EngineTable, Source
from collectors.samples import EngineKind

__all__ = ["PageError", "read_page", "recognise"]

MAX_PAGE_CHARS = 16_000_000
_LARGEST_GAUGE = 2**31 - 1

# vLLM comes before Triton: Triton's vLLM backend shows both.
TABLES: Mapping[EngineKind, EngineTable] = {
    table.kind: table for table in (vllm.TABLE, sglang.TABLE, tgi.TABLE, llama_cpp.TABLE, triton.TABLE)
}


def recognise(text: str) -> EngineKind | None:
    """The kind of engine whose metrics a page shows, even if it is idle and shows only its settings."""
    return next((kind for kind, table in TABLES.items() if _is_of(text, table)), None)


def read_page(text: str, kind: EngineKind | None = None) -> list[EngineReading]:
    """One reading per engine of a page, by label and model. Raises PageError where it is no page of an engine.

    kind: recognised by the page when None. An engine that has done nothing yet may show no series: no reading then.
    """
    if len(text) > MAX_PAGE_CHARS:
        raise PageError(f"the page has {len(text)} characters; at most {MAX_PAGE_CHARS} are read")
    if kind is not None and not text.strip():
        return []  # several servers show nothing at all before their first request
    table = _table(text, kind)
    found = find_series(text, table)
    return [_reading(engine, found.helps, table) for engine in engines_of(found, table)]


def _table(text: str, kind: EngineKind | None) -> EngineTable:
    shown = kind or recognise(text)
    if shown is None:
        known = ", ".join(table.name for table in TABLES.values())
        raise PageError(f"the page shows no metrics of an engine that is known here ({known})")
    table = TABLES[shown]
    if kind is not None and not _is_of(text, table):
        raise PageError(
            f"the page shows no metrics of {table.name} (names that begin with {' or '.join(table.prefixes)})"
        )
    return table


def _is_of(text: str, table: EngineTable) -> bool:
    return any(shows(text, prefix) for prefix in table.prefixes)


def _reading(engine: PageEngine, helps: Mapping[str, str], table: EngineTable) -> EngineReading:
    shown = Shown(engine.series, helps, engine.block_size)
    counters = {name: value_of(sources, shown) for name, sources in table.counters.items()}
    gauges = {name: value_of(sources, shown) for name, sources in table.gauges.items()}
    histograms = {metric: _histogram(sources, engine) for metric, sources in table.histograms.items()}
    return EngineReading(
        kind=table.kind,
        label=engine.label,
        model=engine.model,
        started_us=engine.started_us,
        counters={name: value for name, value in counters.items() if value is not None},
        histograms={metric: histogram for metric, histogram in histograms.items() if histogram is not None},
        running=_bounded(gauges.get("running")),
        waiting=_bounded(gauges.get("waiting")),
        kv_usage_ppm=gauges.get("kv_usage_ppm"),
    )


def _histogram(sources: tuple[Source, ...], engine: PageEngine) -> Histogram | None:
    for source in sources:
        if buckets := engine.series.get(f"{source.metric}_bucket"):
            return read_histogram(buckets, engine.series.get(f"{source.metric}_sum", ()), FACTORS[source.unit])
    return None


def _bounded(count: int | None) -> int | None:
    return count if count is not None and count <= _LARGEST_GAUGE else None
