"""Cron expressions in a time zone: when they are due, and what they say in words.

An expression that names its hours goes by the wall clock: a time that the clocks skip is due once, right after the gap,
and one that they show twice is due the first time only. An expression for every hour goes by real time: it is due in
each real hour, the doubled one included.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

ACCEPTED = "five fields, minute hour day month weekday, such as '0 6 * * *' (each day at 06:00) or '5 * * * *'"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVERY_HOUR = set(range(24))
_LONGEST = 100


def check(expression: str) -> None:
    """Raises ValueError that says what is accepted."""
    if len(expression) > _LONGEST or len(expression.split()) != 5:
        raise ValueError(ACCEPTED)
    try:
        never = not list(islice(CronSim(expression, _EPOCH), 1))
    except CronSimError as problem:
        raise ValueError(f"{ACCEPTED} ({str(problem).lower()})") from None
    if never:
        raise ValueError(f"{ACCEPTED} (this one is never due)")


def in_words(expression: str) -> str:
    """E.g. "At 06:00 every day"."""
    return CronSim(expression, _EPOCH).explain()


def due_times(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Each time past `after` at which the expression is due, in UTC and ascending."""
    last = after
    for local in CronSim(_by_clock_or_real_time(expression), after.astimezone(zone)):
        due = local.astimezone(UTC)
        if due > last:  # from within a doubled hour, CronSim starts with its first half once more
            last = due
            yield due


def _by_clock_or_real_time(expression: str) -> str:
    """CronSim takes a star at the start of minute or hour for real time; here every hour is real time, all else not."""
    minute, hour, *days = expression.split()
    if CronSim(expression, _EPOCH).hours == _EVERY_HOUR:
        return " ".join((minute, "*", *days))
    minute = f"0-59{minute[1:]}" if minute.startswith("*") else minute
    hour = f"0-23{hour[1:]}" if hour.startswith("*") else hour
    return " ".join((minute, hour, *days))
