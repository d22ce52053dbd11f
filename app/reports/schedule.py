"""When a schedule is due and which window it then reports. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from app import cron
from app.accounting.periods import ONE_DAY, day_start
from app.report_settings import ReportSchedule, WindowLength
from app.reports.request import Request, Window, days_window


def due_between(schedule: ReportSchedule, after: datetime, until: datetime) -> list[datetime]:
    """Each due time past `after` up to and with `until`, in UTC."""
    due = cron.due_times(schedule.cron, ZoneInfo(schedule.tz), after)
    return list(takewhile(lambda time: time <= until, due))


def next_due(schedule: ReportSchedule, after: datetime) -> datetime | None:
    """The first due time past `after`; None when there is none within decades."""
    return next(cron.due_times(schedule.cron, ZoneInfo(schedule.tz), after), None)


def request_at(schedule: ReportSchedule, moment: datetime) -> Request:
    """The report that the schedule makes at `moment`."""
    window = window_before(moment, ZoneInfo(schedule.tz), schedule.window)
    return Request(schedule.kind, window, schedule.tz, schedule.boundary, schedule.basis)


def window_before(moment: datetime, zone: ZoneInfo, length: WindowLength) -> Window:
    """The last complete local hour, day, week (from Monday) or month at `moment`."""
    if length == "hour":
        end = _hour_start(moment, zone)
        start = _hour_start(end - timedelta(microseconds=1), zone)
        return Window(start, end, _hour_name(start, zone), _hour_name(end, zone))
    today = moment.astimezone(zone).date()
    if length == "month":
        after = today.replace(day=1)
        return days_window((after - ONE_DAY).replace(day=1), after, zone)
    if length == "week":
        after = today - today.weekday() * ONE_DAY
        return days_window(after - 7 * ONE_DAY, after, zone)
    return days_window(_day_before(today, zone), today, zone)


def _day_before(day: date, zone: ZoneInfo) -> date:
    """The day before that has any time in it: Pacific/Apia went from 2011-12-29 to 2011-12-31."""
    before = day - ONE_DAY
    while day_start(before, zone) == day_start(day, zone):
        before -= ONE_DAY
    return before


def _hour_start(moment: datetime, zone: ZoneInfo) -> datetime:
    """The last moment at which the local clock showed a full hour, in UTC."""
    start = moment
    while (local := start.astimezone(zone)) and (local.minute or local.second or local.microsecond):
        start -= timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    return start.astimezone(UTC)


def _hour_name(moment: datetime, zone: ZoneInfo) -> str:
    """E.g. 2026-02-03T04+0100: a file name holds no colon."""
    return moment.astimezone(zone).strftime("%Y-%m-%dT%H%z")
