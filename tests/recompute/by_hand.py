"""An account from raw rows in plain Python: intervals, their union, and prices of the time. No store, no accounting.

Times are whole microseconds, so seconds and tokens are exact.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

from tests.recompute.simulated import EngineRow, GpuRow, Sent

HOUR_US = 3_600_000_000
KWH_J = 3_600_000


@dataclass(frozen=True)
class Price:
    """Of a GPU of a fleet at a moment, in USD. usd_per_kwh: None where electricity is in the rent.

    paid_when_off: an owned GPU costs and embodies its hours whether on or not.
    """

    usd_per_hour: float
    usd_per_kwh: float | None
    pue: float
    host_w: float
    g_per_kwh: float
    paid_when_off: bool = False
    market_g_per_kwh: float = 0.0
    embodied_g_per_hour: float = 0.0


@dataclass(frozen=True)
class Prices:
    """at: the price by fleet and moment; fleet: of a node at a moment. changes_us: when either may change."""

    at: Callable[[str, int], Price]
    fleet: Callable[[str, int], str]
    changes_us: Sequence[int]


@dataclass(frozen=True)
class Piece:
    """A stretch of a GPU's time within which nothing changes. state: used, idle, unallocated or off."""

    gpu: str
    node: str
    fleet: str
    model: str | None
    state: str
    start_us: int
    seconds: float
    usd: float
    joules: float
    grams: float
    market_g: float
    embodied_g: float


T = TypeVar("T", Piece, EngineRow)


@dataclass
class Sums:
    """What a group made in a stretch of time."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    usd: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    joules: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    grams: float = 0.0
    market_g: float = 0.0
    embodied_g: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    finished: int = 0
    failed: int = 0
    ttft: list[int] = field(default_factory=list)

    @property
    def total_usd(self) -> float:
        return sum(self.usd.values())

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.generated_tokens

    @property
    def there_s(self) -> float:
        return sum(seconds for state, seconds in self.seconds.items() if state != "off")


class _Ordered(Generic[T]):
    """Things by when they begin."""

    def __init__(self, things: Iterable[T]) -> None:
        self._things = sorted(things, key=lambda one: one.start_us)
        self._starts = [one.start_us for one in self._things]

    def between(self, start_us: int, end_us: int) -> Sequence[T]:
        return self._things[bisect_left(self._starts, start_us) : bisect_left(self._starts, end_us)]


class Ledger:
    """Every piece of every GPU's time, and every row of the engines."""

    def __init__(self, sent: Sent, prices: Prices, start_us: int, end_us: int, edges_us: Iterable[int] = ()) -> None:
        """edges_us: moments at which sums will begin or end."""
        self._prices = prices
        hours = range(start_us // HOUR_US * HOUR_US, end_us, HOUR_US)
        self._edges = sorted({*edges_us, *prices.changes_us, *hours, start_us, end_us})
        self._engines = _Ordered(sent.engines)
        on_gpu: dict[str, list[EngineRow]] = defaultdict(list)
        for row in sent.engines:
            for gpu in row.gpus:
                on_gpu[gpu].append(row)
        of_gpu: dict[str, list[GpuRow]] = defaultdict(list)
        for measured in sent.gpus:
            of_gpu[measured.gpu].append(measured)
        self._pieces = _Ordered(
            piece for gpu, rows in of_gpu.items() for piece in self._of(sorted(rows), on_gpu[gpu], start_us, end_us)
        )

    def sums(self, start_us: int, end_us: int, wanted: Callable[[Piece | EngineRow, str], bool]) -> Sums:
        """Of what begins in [start, end); wanted: by the row or piece and its fleet."""
        found = Sums()
        for piece in self._pieces.between(start_us, end_us):
            if wanted(piece, piece.fleet):
                found.seconds[piece.state] += piece.seconds
                found.usd[piece.state] += piece.usd
                found.joules[piece.state] += piece.joules
                found.grams += piece.grams
                found.market_g += piece.market_g
                found.embodied_g[piece.state] += piece.embodied_g
        for row in self._engines.between(start_us, end_us):
            if wanted(row, self._prices.fleet(row.node, row.start_us)):
                for name in ("prompt_tokens", "cached_tokens", "generated_tokens", "finished", "failed"):
                    setattr(found, name, getattr(found, name) + getattr(row, name))
                found.ttft = [sum(pair) for pair in zip(found.ttft or [0] * len(row.ttft), row.ttft, strict=True)]
        return found

    def _of(self, rows: list[GpuRow], engines: list[EngineRow], start_us: int, end_us: int) -> Iterator[Piece]:
        """One GPU's time: measured rows, and, where its owner pays for it, the time between them."""
        worked = _union((row.start_us, row.end_us) for row in engines if _works(row))
        # An engine is on its GPUs in each hour in which it was scraped.
        models = {
            hour: row.model for row in engines for hour in range(row.start_us // HOUR_US, -(-row.end_us // HOUR_US))
        }
        idle_w = _idle_w(rows, worked)
        for row in rows:
            for low, high in _cut(row.start_us, row.end_us, self._edges):
                model = models.get(low // HOUR_US)
                for begin, end, works, joules in _shared(row, low, high, worked, idle_w.get(low // HOUR_US)):
                    state = "used" if works else "idle" if model else "unallocated"
                    yield self._piece(row, model, state, begin, end, joules)
        ends = [start_us, *(row.end_us for row in rows)]
        starts = [*(row.start_us for row in rows), end_us]
        for gone, back in zip(ends, starts, strict=True):
            for low, high in _cut(gone, back, self._edges):
                if self._prices.at(self._prices.fleet(rows[0].node, low), low).paid_when_off:
                    yield self._piece(rows[0], None, "off", low, high, 0.0)

    def _piece(self, row: GpuRow, model: str | None, state: str, start_us: int, end_us: int, gpu_j: float) -> Piece:
        fleet = self._prices.fleet(row.node, start_us)
        price = self._prices.at(fleet, start_us)
        seconds = (end_us - start_us) / 1e6
        it_j = 0.0 if state == "off" else gpu_j + price.host_w * seconds
        site_kwh = it_j * price.pue / KWH_J
        usd = price.usd_per_hour * seconds / 3600 + site_kwh * (price.usd_per_kwh or 0.0)
        grams, market_g = site_kwh * price.g_per_kwh, site_kwh * price.market_g_per_kwh
        embodied_g = price.embodied_g_per_hour * seconds / 3600
        return Piece(row.gpu, row.node, fleet, model, state, start_us, seconds, usd, it_j, grams, market_g, embodied_g)


def quantile_ms(counts: Sequence[int], bounds_us: Sequence[int], percentile: float) -> float:
    """Of counts by bucket: that of the observation with the rank, linear in its bucket."""
    rank = max(1, -(-sum(counts) * percentile // 100))
    below = 0
    for place, count in enumerate(counts):
        if count and rank <= below + count:
            lower, upper = ([0, *bounds_us])[place], bounds_us[place]
            return (lower + (upper - lower) * (rank - below) / count) / 1e3
        below += count
    raise AssertionError("no observation")


def _works(row: EngineRow) -> bool:
    return row.running > 0 or row.prompt_tokens > 0 or row.generated_tokens > 0


def _union(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _idle_w(rows: Iterable[GpuRow], worked: Sequence[tuple[int, int]]) -> dict[int, float]:
    """Mean power by hour, of the rows in which no engine worked."""
    joules: dict[int, float] = defaultdict(float)
    seconds: dict[int, float] = defaultdict(float)
    for row in rows:
        if [works for _, _, works in _parts(row.start_us, row.end_us, worked)] == [False]:
            hour = row.start_us // HOUR_US
            joules[hour] += row.energy_mj / 1e3
            seconds[hour] += (row.end_us - row.start_us) / 1e6
    return {hour: joules[hour] / seconds[hour] for hour in seconds}


def _shared(
    row: GpuRow, start: int, end: int, worked: Sequence[tuple[int, int]], idle_w: float | None
) -> Iterator[tuple[int, int, bool, float]]:
    """(from, to, whether an engine worked, joules) of a row's part: what is idle of it at the hour's idle power."""
    parts = list(_parts(start, end, worked))
    whole_j = row.energy_mj / 1e3 * (end - start) / (row.end_us - row.start_us)
    idle_us = sum(high - low for low, high, works in parts if not works)
    used_us = end - start - idle_us
    even_w = whole_j / (end - start)
    idle_j = min(whole_j, idle_us * (even_w if idle_w is None else idle_w / 1e6)) if used_us else whole_j
    for low, high, works in parts:
        joules = (whole_j - idle_j) / used_us if works else idle_j / idle_us
        yield low, high, works, joules * (high - low)


def _cut(start: int, end: int, edges: Sequence[int]) -> Iterator[tuple[int, int]]:
    """[start, end) at the edges inside it."""
    inside = edges[bisect_right(edges, start) : bisect_right(edges, end - 1)] if start < end else []
    return pairwise((start, *inside, end)) if start < end else iter(())


def _parts(start: int, end: int, worked: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, bool]]:
    """[start, end) as parts inside and outside of `worked`."""
    at = start
    for low, high in worked[max(bisect_right(worked, (start, 0)) - 1, 0) :]:
        if low >= end:
            break
        low, high = max(low, at), min(high, end)
        if low < high:
            if at < low:
                yield at, low, False
            yield low, high, True
            at = high
    if at < end:
        yield at, end, False
