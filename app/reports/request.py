"""What a report is asked for: kind, window, zone, boundary and basis, from words that a person gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import cast, get_args
from zoneinfo import ZoneInfo

from app.accounting.energy import Boundary
from app.accounting.periods import ONE_DAY, Period, day_start, local_days, local_hours, time_zone
from app.accounting.tokens import BASES, Basis
from app.answers.query import known_moment
from app.errors import BadParameter
from app.report_settings import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)
NAMES = ("kind", "from", "to", "tz", "boundary", "basis", "known-at")
# So many days a report may span: a hundred thousand lines or so are still one file.
_LONGEST_DAYS: dict[Kind, int] = {"fleet-day": 3660, "hourly": 400}
_EARLIEST, _LATEST = date(1970, 1, 2), date(2199, 12, 31)


@dataclass(frozen=True)
class Window:
    """[start, end) in UTC; first and after: its local ends as file names and manifests have them, `after` exclusive."""

    start: datetime
    end: datetime
    first: str
    after: str


def days_window(first: date, after: date, zone: ZoneInfo) -> Window:
    """The local days from `first` up to, and without, `after`."""
    return Window(day_start(first, zone), day_start(after, zone), first.isoformat(), after.isoformat())


@dataclass(frozen=True)
class Request:
    """known_at: knowledge of prices, factors and membership up to then; None: all."""

    kind: Kind
    window: Window
    tz: str
    boundary: Boundary
    basis: Basis
    known_at: datetime | None = None

    @property
    def name(self) -> str:
        """Names its file: the same days of another zone are another report."""
        return f"{self.kind}_{self.tz.replace('/', '-')}"

    def as_words(self) -> dict[str, str]:
        """What `parse_request` takes, for a window of days."""
        words = (self.kind, self.window.first, self.window.after, self.tz, self.boundary, self.basis)
        known = (self.known_at.isoformat(),) if self.known_at else ()
        return dict(zip(NAMES, (*words, *known), strict=False))

    def periods(self) -> list[Period]:
        """The local days or hours of the window."""
        zone, window = ZoneInfo(self.tz), self.window
        if self.kind == "hourly":
            return local_hours(window.start, window.end, zone)
        return local_days(window.start.astimezone(zone).date(), window.end.astimezone(zone).date(), zone)


def parse_request(given: Mapping[str, str], now: datetime) -> Request:
    """The request of these words (those of NAMES); without dates, yesterday. Raises BadParameter.

    `to` is exclusive; without it, up to today. `from` without it: the day before `to`.
    """
    kind = cast(Kind, _one_of("kind", given.get("kind", ""), KINDS))
    boundary = cast(Boundary, _one_of("boundary", given.get("boundary", "it"), BOUNDARIES))
    basis = cast(Basis, _one_of("basis", given.get("basis", "total"), BASES))
    tz = given.get("tz", "UTC")
    try:
        zone = time_zone(tz)
    except ValueError as problem:
        raise BadParameter(f"`tz`: given {tz!r}; accepted: {problem}") from None
    after = _date("to", given["to"]) if "to" in given else now.astimezone(zone).date()
    first = _date("from", given["from"]) if "from" in given else after - ONE_DAY
    _check_span(first, after, _LONGEST_DAYS[kind], kind)
    known_at = known_moment(given["known-at"], now) if "known-at" in given else None
    return Request(kind, days_window(first, after, zone), tz, boundary, basis, known_at)


def _check_span(first: date, after: date, longest_days: int, kind: Kind) -> None:
    if first >= after:
        raise BadParameter(
            f"`from` {first} and `to` {after} hold no day: `to` is the day after the last one "
            f"(for {first} alone: {first + ONE_DAY})"
        )
    if after - first > timedelta(days=longest_days):
        raise BadParameter(
            f"`from` {first} to {after}: {(after - first).days} days; accepted: {longest_days} for {kind}"
        )


def _date(name: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise BadParameter(f"`{name}`: given {text!r}; accepted: a date such as 2026-02-03") from None
    if not _EARLIEST <= day <= _LATEST:
        raise BadParameter(f"`{name}`: given {text!r}; accepted: a date from {_EARLIEST} to {_LATEST}")
    return day


def _one_of(name: str, value: str, accepted: tuple[str, ...]) -> str:
    if value not in accepted:
        raise BadParameter(f"`{name}`: given {value!r}; accepted: {', '.join(accepted)}")
    return value
