"""What a reader must know of one kind of engine: a table of names rather than a chain of ifs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from collectors.samples import EngineKind, LatencyMetric

Unit = Literal["count", "s", "ms", "us", "ratio"]
Gauge = Literal["running", "waiting", "kv_usage_ppm"]
Labels = Mapping[str, frozenset[str]]
# From a page's unit to that of a column: microseconds, parts per million.
FACTORS: Mapping[Unit, int] = {"count": 1, "s": 1_000_000, "ms": 1_000, "us": 1, "ratio": 1_000_000}
PROCESS_START = "process_start_time_seconds"


@dataclass(frozen=True)
class Source:
    """One place where a value may stand: the sum of the series of `metric` that `where` lets through.

    where: label -> the values that count. unit: a count must be whole, the others may have a fraction.
    zero_without: where no series passes but the metric is there, the value is 0 and not unknown.
    copies: labels whose series say the same thing again (ranks of one engine): the largest of them counts.
    largest: the largest series counts, not their sum. share_of: divided by the series that this lets through.
    help_word: the source holds only where the metric's help has this word. in_blocks: times the KV cache's block size.
    """

    metric: str
    where: Labels = field(default_factory=dict)
    unit: Unit = "count"
    zero_without: bool = False
    copies: frozenset[str] = frozenset()
    largest: bool = False
    share_of: Labels | None = None
    help_word: str | None = None
    in_blocks: bool = False

    def holds_in(self, helps: Mapping[str, str]) -> bool:
        return self.help_word is None or self.help_word in helps.get(self.metric, "")


@dataclass(frozen=True)
class EngineTable:
    """How a kind of engine shows what EngineSamples holds; of several sources of a value the first that is there wins.

    prefixes: of its metrics' names, by which a page is recognised. counters: column of EngineSamples -> sources.
    histograms: the metric's name without `_bucket`. engine_label, model_labels: which engine a series is of; a series
    without the engine label on a page that has it belongs to all engines. created: metric with an engine's start in
    unix seconds, where the page has no PROCESS_START. block_size: metric and label that tell it.
    only_with: on a page where some engines show one of these metrics, the others are no engines.
    """

    kind: EngineKind
    name: str
    prefixes: tuple[str, ...]
    counters: Mapping[str, tuple[Source, ...]]
    gauges: Mapping[Gauge, tuple[Source, ...]]
    histograms: Mapping[LatencyMetric, tuple[Source, ...]] = field(default_factory=dict)
    engine_label: str | None = None
    model_labels: tuple[str, ...] = ()
    created: str | None = None
    block_size: tuple[str, str] | None = None
    only_with: frozenset[str] = frozenset()

    def names_for(self, helps: Mapping[str, str]) -> frozenset[str]:
        """Names of the series that a reader needs of a page with these helps; all others are skipped unread."""
        if self.block_size and any(source.holds_in(helps) for source in self._counted_in_blocks):
            return self._names | {self.block_size[0]}
        return self._names

    @cached_property
    def explained(self) -> frozenset[str]:
        """Metrics whose help tells what they count."""
        return frozenset(source.metric for source in _all(self.counters) if source.help_word)

    @cached_property
    def _names(self) -> frozenset[str]:
        values = {source.metric for columns in (self.counters, self.gauges) for source in _all(columns)}
        buckets = {f"{source.metric}_{part}" for source in _all(self.histograms) for part in ("bucket", "sum")}
        return frozenset(values | buckets | {PROCESS_START, *filter(None, [self.created])})

    @cached_property
    def _counted_in_blocks(self) -> tuple[Source, ...]:
        return tuple(source for source in _all(self.counters) if source.in_blocks)


def _all(columns: Mapping[Any, tuple[Source, ...]]) -> Iterator[Source]:
    for sources in columns.values():
        yield from sources


def label(**values: str | Iterable[str]) -> dict[str, frozenset[str]]:
    """Label filter: label(source="a"), label(reason=("stop", "repetition"))."""
    return {name: frozenset({value} if isinstance(value, str) else value) for name, value in values.items()}
