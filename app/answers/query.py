"""What an account is asked for, from words of an address or a command line and back to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Literal, cast, get_args
from zoneinfo import ZoneInfo

from app.accounting.account import FIGURES
from app.accounting.bill import VIEWS, View
from app.accounting.energy import Boundary
from app.accounting.periods import Period, day_start, local_days, local_hours, time_zone
from app.accounting.tokens import BASES, Basis
from app.errors import BadParameter

Step = Literal["minute", "5min", "15min", "hour", "day"]
STEPS: tuple[Step, ...] = get_args(Step)
BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)
NAMES = ("from", "to", "tz", "step", "by", "fleet", "model", "basis", "view", "boundary", "known-at", "figures")
GROUPS = ("none", "fleet", "model", "fleet_model", "node", "gpu", "replica")
LABEL = "label:"
# A line with more points is slow to draw and no better to read.
MOST_POINTS = 2000
_LONGEST = timedelta(days=3660)
_DEFAULT_LENGTH = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_LENGTHS: Mapping[Step, timedelta] = {
    "minute": _MINUTE, "5min": 5 * _MINUTE, "15min": 15 * _MINUTE, "hour": 60 * _MINUTE, "day": timedelta(days=1),
}  # fmt: skip
_FIRST, _LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2199, 12, 31, tzinfo=UTC)


@dataclass(frozen=True)
class AccountQuery:
    """[start, end) in UTC, whole minutes; days and labels are those of tz.

    step: of a series; None: chosen. by: one of GROUPS, or label:<name>. fleet, model: only this one. view: which part
    of dollars, joules and grams is counted. known_at: knowledge up to then; None: all. figures: only these; None: all.
    """

    start: datetime
    end: datetime
    tz: str = "UTC"
    step: Step | None = None
    by: str = "none"
    fleet: str | None = None
    model: str | None = None
    basis: Basis = "total"
    view: View = "bill"
    boundary: Boundary = "it"
    known_at: datetime | None = None
    figures: tuple[str, ...] | None = None

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.tz)

    @property
    def label(self) -> str | None:
        """The label that groups lines."""
        return self.by.removeprefix(LABEL) if self.by.startswith(LABEL) else None

    def as_words(self, names: Sequence[str] = NAMES) -> dict[str, str]:
        """What `parse_query` takes, without what is left to its default; only these names of it."""
        given: dict[str, str | None] = {
            "from": _said(self.start), "to": _said(self.end), "tz": self.tz, "step": self.step, "by": self.by,
            "fleet": self.fleet, "model": self.model, "basis": self.basis, "view": self.view,
            "boundary": self.boundary, "known-at": self.known_at.isoformat() if self.known_at else None,
            "figures": ",".join(self.figures) if self.figures else None,
        }  # fmt: skip
        return {name: text for name, text in given.items() if text is not None and name in names}

    def with_step(self, finest: Step = "minute") -> AccountQuery:
        """With a step: the given one, else the finest from `finest` on with no more points than a line may have.

        Raises BadParameter when the given step makes more of them.
        """
        fitting = [step for step in STEPS if self.points(step) <= MOST_POINTS]
        allowed = [step for step in fitting if STEPS.index(step) >= STEPS.index(finest)]
        if self.step is None:
            return replace(self, step=allowed[0])
        if self.step not in fitting:
            raise BadParameter(
                f"`step`: given {self.step!r}: {self.points(self.step)} points in this range, and a line has at most "
                f"{MOST_POINTS}; accepted: {', '.join(fitting)}"
            )
        return self

    def points(self, step: Step) -> int:
        """How many periods of `step` the range has, about."""
        return -((self.start - self.end) // _LENGTHS[step])

    def periods(self) -> list[Period]:
        """The steps of the range: local days and hours, or minutes; the first and the last may be cut short."""
        if self.step == "day":
            return [_within(day, self.start, self.end) for day in self._days()]
        if self.step == "hour":
            return local_hours(self.start, self.end, self.zone)
        length = _LENGTHS[self.step or "minute"]
        first = self.start - (self.start - _FIRST) % length
        starts = [max(first + number * length, self.start) for number in range(-((first - self.end) // length))]
        return [
            Period(begin, after, begin.astimezone(self.zone).isoformat(timespec="minutes"))
            for begin, after in zip(starts, [*starts[1:], self.end], strict=True)
        ]

    def _days(self) -> list[Period]:
        first, last = (moment.astimezone(self.zone).date() for moment in (self.start, self.end))
        return [day for day in local_days(first, last + timedelta(days=1), self.zone) if day.start < self.end]


def parse_query(given: Mapping[str, str], now: datetime) -> AccountQuery:
    """The query of these words (those of NAMES); without `from` and `to` the last 24 hours. Raises BadParameter."""
    unknown = sorted(set(given) - set(NAMES))
    if unknown:
        raise BadParameter(f"`{unknown[0]}`: no such parameter; accepted: {', '.join(NAMES)}")
    tz = given.get("tz", "UTC")
    try:
        zone = time_zone(tz)
    except ValueError as problem:
        raise BadParameter(f"`tz`: given {tz!r}; accepted: {problem}") from None
    end = _moment("to", given["to"], zone) if "to" in given else now.replace(second=0, microsecond=0)
    start = _start(given.get("from"), end, zone)
    _check_range(start, end)
    return AccountQuery(
        start=start,
        end=end,
        tz=tz,
        step=cast(Step, _one_of("step", given["step"], STEPS)) if given.get("step") else None,
        by=_group(given.get("by", "none")),
        fleet=given.get("fleet") or None,
        model=given.get("model") or None,
        basis=cast(Basis, _one_of("basis", given.get("basis", "total"), BASES)),
        view=cast(View, _one_of("view", given.get("view", "bill"), VIEWS)),
        boundary=cast(Boundary, _one_of("boundary", given.get("boundary", "it"), BOUNDARIES)),
        known_at=known_moment(given["known-at"], now) if given.get("known-at") else None,
        figures=_figures(given["figures"]) if given.get("figures") else None,
    )


def known_moment(text: str, now: datetime) -> datetime:
    """The moment of `known-at`: it has passed. Raises BadParameter."""
    moment = _zoned("known-at", text)
    if moment > now:
        raise BadParameter(f"`known-at`: given {text!r}; accepted: a moment that has passed")
    return moment


def _start(text: str | None, end: datetime, zone: ZoneInfo) -> datetime:
    """`from`: a day, a moment, or how long before `end`, e.g. 90m, 24h or 7d."""
    if text is None:
        return end - _DEFAULT_LENGTH
    length = re.fullmatch(r"(\d{1,4})([mhd])", text)
    if length is None:
        return _moment("from", text, zone)
    unit = {"m": _MINUTE, "h": 60 * _MINUTE, "d": timedelta(days=1)}[length[2]]
    return max(end - int(length[1]) * unit, _FIRST)


def _moment(name: str, text: str, zone: ZoneInfo) -> datetime:
    """A local day's begin, or a moment with its zone; minutes are the finest that is kept."""
    if len(text) <= 10:
        try:
            moment = day_start(date.fromisoformat(text), zone)
        except (ValueError, OverflowError):
            raise _not_a_moment(name, text) from None
    else:
        moment = _zoned(name, text).replace(second=0, microsecond=0)
    if not _FIRST <= moment <= _LAST:
        raise BadParameter(f"`{name}`: given {text!r}; accepted: a moment from {_FIRST.date()} to {_LAST.date()}")
    return moment


def _zoned(name: str, text: str) -> datetime:
    """A moment of which the time zone is said. A `+` that became a space on its way is put back."""
    offset = f"+{text[-5:]}" if text[-6:-5] == " " else text[-6:]
    try:
        moment = datetime.fromisoformat(text[:-6] + offset)
    except ValueError:
        raise _not_a_moment(name, text) from None
    if moment.tzinfo is None:
        raise _not_a_moment(name, text)
    return moment.astimezone(UTC)


def _not_a_moment(name: str, text: str) -> BadParameter:
    more = ", or so long before `to`: 90m, 24h, 7d" if name == "from" else ""
    day = "" if name == "known-at" else "a day such as 2026-02-03, or "
    return BadParameter(
        f"`{name}`: given {text!r}; accepted: {day}a moment with its time zone such as 2026-02-03T04:05Z{more}"
    )


def _check_range(start: datetime, end: datetime) -> None:
    if start >= end:
        raise BadParameter(f"`from` {_said(start)} and `to` {_said(end)} hold no minute: `to` is exclusive")
    if end - start > _LONGEST:
        raise BadParameter(f"`from` to `to`: {(end - start).days} days; accepted: {_LONGEST.days}")


def _group(by: str) -> str:
    if by.startswith(LABEL) and 0 < len(by) - len(LABEL) <= 200:
        return by
    return _one_of("by", by, (*GROUPS, "label:<name>"))


def _figures(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        _one_of("figures", name, tuple(FIGURES))
    return names


def _one_of(name: str, value: str, accepted: tuple[str, ...]) -> str:
    if value not in accepted:
        raise BadParameter(f"`{name}`: given {value!r}; accepted: {', '.join(accepted)}")
    return value


def _within(period: Period, start: datetime, end: datetime) -> Period:
    return Period(max(period.start, start), min(period.end, end), period.label)


def _said(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
