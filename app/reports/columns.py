"""The columns of a report, in order: name, unit, meaning, and how a line fills them. docs/reports.md lists the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app import units
from app.accounting.line import AccountLine

CURRENCY = "USD"
TTFT_PERCENTILES = (50, 90, 99)
MISSING = "missing"


@dataclass(frozen=True)
class Frame:
    """What all lines of a report share. known_at: as of when prices, membership and samples were known."""

    tz: str
    known_at: datetime


@dataclass(frozen=True)
class Cell:
    """An empty cell has a value of None, and a reason where something is missing."""

    value: str | int | float | None
    reason: str | None = None


@dataclass(frozen=True)
class Column:
    name: str
    unit: str
    meaning: str
    take: Callable[[AccountLine, Frame], Cell]


def row(line: AccountLine, frame: Frame) -> dict[str, Any]:
    """The line's cells by column; None is missing."""
    cells = {column.name: column.take(line, frame) for column in _TAKEN}
    return {name: cell.value for name, cell in cells.items()} | {MISSING: _reasons(cells.items())}


def _reasons(cells: Iterable[tuple[str, Cell]]) -> str | None:
    """E.g. "cost, cost_per_mtok: no price; model: no engine ran on these GPUs"."""
    found: dict[str, list[str]] = {}
    for name, cell in cells:
        if cell.reason:
            found.setdefault(cell.reason, []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in found.items()) or None


def _figure(name: str) -> Callable[[AccountLine, Frame], Cell]:
    def take(line: AccountLine, frame: Frame) -> Cell:
        figure = line.figures[name]
        return Cell(figure.value, figure.reason)

    return take


def _ttft(percentile: float) -> Callable[[AccountLine, Frame], Cell]:
    def take(line: AccountLine, frame: Frame) -> Cell:
        found = line.ttft.get(percentile)
        if found is None:
            return Cell(None, "not measured")
        if found.value_s is None:
            return Cell(None, "no first token in the period")
        return Cell(units.milliseconds(found.value_s))

    return take


def _ttft_at_least(line: AccountLine, frame: Frame) -> Cell:
    open_ended = [f"p{p}" for p in TTFT_PERCENTILES if p in line.ttft and line.ttft[p].at_least]
    return Cell(" ".join(open_ended) or None)


def _ttft_n(line: AccountLine, frame: Frame) -> Cell:
    return Cell(max((one.n for one in line.ttft.values()), default=0))


_TAKEN = (
    Column("period", "", "the local day, or the start of the local hour with its UTC offset",
           lambda line, frame: Cell(line.period.label)),
    Column("tz", "", "time zone of the days and hours",
           lambda line, frame: Cell(frame.tz)),
    Column("start_utc", "", "when the period begins",
           lambda line, frame: Cell(line.period.start.isoformat())),
    Column("end_utc", "", "when it ends: a day has 23 or 25 hours where the clocks change",
           lambda line, frame: Cell(line.period.end.isoformat())),
    Column("fleet", "", "fleet of the GPUs, by the node's membership at that time",
           lambda line, frame: Cell(line.fleet, None if line.fleet else "no fleet claims these GPUs")),
    Column("model", "", "model that the engines on them served",
           lambda line, frame: Cell(line.model, None if line.model else "no engine was on these GPUs")),
    Column("gpu_hours", "GPU-h", "hours for which GPUs were there, busy or not",
           _figure("gpu_hours")),
    Column("prompt_tokens", "tokens", "prompt tokens, cached ones included",
           _figure("prompt_tokens")),
    Column("cached_tokens", "tokens", "of them from a prefix cache",
           _figure("cached_tokens")),
    Column("generated_tokens", "tokens", "generated tokens",
           _figure("generated_tokens")),
    Column("requests", "requests", "requests that were answered",
           _figure("requests")),
    Column("failed_requests", "requests", "requests that failed, were aborted or rejected",
           _figure("failed_requests")),
    Column("energy_kwh", "kWh", "energy of these GPUs within `boundary`",
           _figure("energy_kwh")),
    Column("energy_idle_kwh", "kWh", "of `energy_kwh`, while engines were on them and none worked",
           _figure("energy_idle_kwh")),
    Column("boundary", "", "what energy and grams take in: `gpu`, `it` (with the host) or `site` (x PUE)",
           lambda line, frame: Cell(line.boundary)),
    Column("cost", "`currency`", "what these GPUs cost, idle ones included: used + idle + unallocated",
           _figure("cost")),
    Column("cost_used", "`currency`", "of `cost`, for the time in which an engine on them worked",
           _figure("cost_used")),
    Column("cost_working", "`currency`", "of `cost_used`, what its tokens cost at the replicas' best sustained rate",
           _figure("cost_working")),
    Column("cost_slack", "`currency`", "the rest of `cost_used`: what it costs that they were not fully loaded",
           _figure("cost_slack")),
    Column("cost_idle", "`currency`", "of `cost`, for the time in which no engine on them worked",
           _figure("cost_idle")),
    Column("cost_unallocated", "`currency`", "of `cost`, for GPUs with no engine on them, and owned ones that were off",
           _figure("cost_unallocated")),
    Column("currency", "", "currency of all costs",
           lambda line, frame: Cell(CURRENCY)),
    Column("cost_per_mtok", "`currency` per Mtok", "`cost` over a million tokens of `basis`",
           _figure("usd_per_mtok")),
    Column("basis", "", "which tokens divide: `total`, `computed` (without cached prompt tokens) or `output`",
           lambda line, frame: Cell(line.basis)),
    Column("tokens_per_joule", "tokens/J", "tokens of `basis` over the energy",
           _figure("tokens_per_joule")),
    Column("carbon_g", "gCO2e", "operational grams of the site's energy (energy x PUE), whatever `boundary` is",
           _figure("carbon_g")),
    Column("g_per_mtok", "gCO2e per Mtok", "`carbon_g` over a million tokens of `basis`",
           _figure("g_per_mtok")),
    Column("carbon_market_g", "gCO2e", "the same by the suppliers' factors (market-based); never added to `carbon_g`",
           _figure("carbon_market_g")),
    Column("embodied_g", "gCO2e", "of making the GPUs, as much as falls on these hours of their life",
           _figure("embodied_g")),
    Column("embodied_low_g", "gCO2e", "the same by the least of all figures that are known",
           _figure("embodied_low_g")),
    Column("embodied_high_g", "gCO2e", "the same by the most of them",
           _figure("embodied_high_g")),
    Column("sci_g_per_mtok", "gCO2e per Mtok", "(`carbon_g` + `embodied_g`) over a million tokens of `basis` (SCI)",
           _figure("sci_g_per_mtok")),
    Column("ttft_p50_ms", "ms", "median time to first token, from the merged buckets of all engines",
           _ttft(50)),
    Column("ttft_p90_ms", "ms", "its 90th percentile",
           _ttft(90)),
    Column("ttft_p99_ms", "ms", "its 99th percentile",
           _ttft(99)),
    Column("ttft_at_least", "", "which of the three are lower bounds (>=), e.g. `p99`: they fell past the last bucket",
           _ttft_at_least),
    Column("ttft_n", "requests", "first tokens behind the three",
           _ttft_n),
    Column("coverage", "", "seconds with a measured energy over seconds for which the GPUs were there, 0 to 1",
           lambda line, frame: Cell(line.coverage, "no GPU time" if line.coverage is None else None)),
    Column("method", "", "how the line's weakest figure was got: `measured`, `estimated`, `simulated`, ...",
           lambda line, frame: Cell(line.method)),
    Column("price_source", "", "where the price is from",
           lambda line, frame: Cell(line.price_source or None)),
    Column("grid", "", "grid factor and PUE",
           lambda line, frame: Cell(line.grid or None)),
    Column("carbon_basis", "", "what the grams stand on: boundary, power, coverage, factors, zones, years, idle rule",
           lambda line, frame: Cell(line.carbon_basis)),
    Column("known_at", "", "as of when prices, factors and membership were known, UTC",
           lambda line, frame: Cell(frame.known_at.isoformat())),
)  # fmt: skip

# (name, unit, meaning) of every column in order; the last is filled from the others' reasons.
DESCRIBED: tuple[tuple[str, str, str], ...] = (
    *((column.name, column.unit, column.meaning) for column in _TAKEN),
    (MISSING, "", "why a cell is empty, e.g. `cost, cost_per_mtok: no price`"),
)
NAMES: tuple[str, ...] = tuple(name for name, _, _ in DESCRIBED)
