"""A report: a window's account as rows, how well they are known, and the same as JSON for the way to a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from app import __version__
from app.accounting.energy import Boundary
from app.accounting.line import AccountLine
from app.accounting.periods import Period
from app.accounting.tokens import Basis
from app.report_settings import Kind
from app.reports.columns import NAMES, Frame, row
from app.reports.csv import as_csv
from app.reports.request import Request, Window

# Periods that are asked for at once, about a month of them; progress is told in between.
_AT_ONCE: dict[Kind, int] = {"fleet-day": 31, "hourly": 31 * 24}

Progress = Callable[[int, int], None]


def untold(done: int, of: int) -> None:
    """Progress that nobody waits for."""


class Account(Protocol):
    """Where a report's lines come from: the store's account."""

    def __call__(
        self, periods: Sequence[Period], *, boundary: Boundary, basis: Basis, now: datetime, known_at: datetime | None
    ) -> Sequence[AccountLine]: ...


@dataclass(frozen=True)
class Report:
    """rows: one per period, fleet and model, in that order; cells by column, None is missing."""

    request: Request
    known_at: datetime
    rows: list[dict[str, Any]]

    @property
    def csv(self) -> str:
        return as_csv(self.rows)

    @property
    def is_complete(self) -> bool:
        """Whether the window had ended when the report was made."""
        return self.request.window.end <= self.known_at

    def about(self) -> dict[str, Any]:
        """What a manifest says of the report."""
        request, window = self.request, self.request.window
        methods = sorted({one["method"] for one in self.rows})
        return {
            "kind": request.kind,
            "from": window.first,
            "to": window.after,
            "tz": request.tz,
            "window_start_utc": window.start.isoformat(),
            "window_end_utc": window.end.isoformat(),
            "complete": self.is_complete,
            "boundary": request.boundary,
            "basis": request.basis,
            "known_at": self.known_at.isoformat(),
            "rows": len(self.rows),
            "coverage": {"lowest": min(self._coverages(), default=None), "mean": self.mean_coverage},
            "methods": methods,
            "simulated": "simulated" in methods,
            "version": __version__,
        }

    @property
    def mean_coverage(self) -> float | None:
        """Mean of the rows' coverage, weighted by their GPU-hours; None where there are none."""
        weighted = [
            (one["coverage"], one["gpu_hours"]) for one in self.rows if one["coverage"] is not None and one["gpu_hours"]
        ]
        hours = sum(weight for _, weight in weighted)
        return sum(coverage * weight for coverage, weight in weighted) / hours if hours else None

    def _coverages(self) -> list[float]:
        return [one["coverage"] for one in self.rows if one["coverage"] is not None]

    def as_json(self) -> dict[str, Any]:
        return {"about": self.about(), "columns": list(NAMES), "rows": self.rows}


def report_from_json(content: dict[str, Any]) -> Report:
    """The report that `as_json` of the same version made."""
    about = content["about"]
    start, end, known_at = (
        datetime.fromisoformat(about[name]) for name in ("window_start_utc", "window_end_utc", "known_at")
    )
    window = Window(start, end, about["from"], about["to"])
    request = Request(about["kind"], window, about["tz"], about["boundary"], about["basis"])
    return Report(request, known_at, content["rows"])


def build_report(request: Request, account: Account, now: datetime, progress: Progress = untold) -> Report:
    """The report as of `now`, by the knowledge of request.known_at; `progress` is told how many periods are done."""
    periods = request.periods()
    known_at = request.known_at or now
    frame = Frame(request.tz, known_at)
    rows: list[dict[str, Any]] = []
    at_once = _AT_ONCE[request.kind]
    for begin in range(0, len(periods), at_once):
        chunk = periods[begin : begin + at_once]
        lines = account(chunk, boundary=request.boundary, basis=request.basis, now=now, known_at=known_at)
        rows += [row(line, frame) for line in sorted(lines, key=_in_order)]
        progress(begin + len(chunk), len(periods))
    return Report(request, known_at, rows)


def _in_order(line: AccountLine) -> tuple[Any, ...]:
    """By time, fleet and model; what belongs to none comes last."""
    return (line.period.start, line.fleet is None, line.fleet or "", line.model is None, line.model or "")
