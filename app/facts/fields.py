"""Fields of facts: moments, currencies, days and clock times, each refused with what is accepted."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from app.accounting.periods import time_zone, zone_names
from app.accounting.plans import MINUTES_PER_DAY
from app.validation import Number

DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT = datetime(2200, 1, 1, tzinfo=UTC)


def moment_of(given: Any) -> datetime:
    """A moment, in UTC, of what a file or a person says. Raises ValueError that says what is accepted."""
    accepted = "a date (midnight in UTC) or a moment with its time zone, such as 2026-03-01 or 2026-03-01T13:37+01:00"
    found = given
    if isinstance(found, str):
        try:
            found = date.fromisoformat(found) if len(found) <= 10 else datetime.fromisoformat(found)
        except ValueError:
            raise ValueError(accepted) from None
    if isinstance(found, date) and not isinstance(found, datetime):
        found = datetime.combine(found, time(), UTC)
    if not isinstance(found, datetime) or found.tzinfo is None:
        raise ValueError(accepted)
    if not FIRST_MOMENT <= found < LAST_MOMENT:
        raise ValueError("a moment from 1970 to 2199")
    return found.astimezone(UTC)


def _printable(words: str) -> str:
    if not words.isprintable() or not words.strip():
        raise ValueError("1 to 200 printable characters")
    return words


def _currency(code: str) -> str:
    if not re.fullmatch("[A-Z]{3}", code):
        raise ValueError("a currency's code (ISO 4217), such as USD, EUR or CNY")
    return code


def minute_of_day(clock: str) -> int:
    """Minute of the day of HH:MM, 00:00 to 24:00. Raises ValueError."""
    found = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)|24:00", clock)
    if found is None:
        raise ValueError("a local clock time from 00:00 to 24:00, such as 07:30")
    return MINUTES_PER_DAY if found[1] is None else int(found[1]) * 60 + int(found[2])


def _clock(clock: str) -> str:
    minute_of_day(clock)
    return clock


def weekdays(words: str) -> frozenset[int]:
    """Days of the week by number (0 is Monday) of e.g. "mon-fri", "sat,sun", "all". Raises ValueError."""
    if words == "all":
        return frozenset(range(7))
    found: set[int] = set()
    for part in words.split(","):
        first, _, last = part.partition("-")
        if first not in DAY_NAMES or (last or first) not in DAY_NAMES:
            raise ValueError(f"days such as mon-fri, sat,sun or all, of {', '.join(DAY_NAMES)}")
        begin, end = DAY_NAMES.index(first), DAY_NAMES.index(last or first)
        found |= {(begin + number) % 7 for number in range((end - begin) % 7 + 1)}
    return frozenset(found)


def _days(words: str) -> str:
    """The same days in one spelling, so that equal rules are equal."""
    numbers = weekdays(re.sub(r"\s", "", words.lower()))
    if len(numbers) == 7:
        return "all"
    return ",".join(_named(first, last) for first, last in _runs(numbers))


def _runs(numbers: frozenset[int]) -> list[tuple[int, int]]:
    """First and last of each run of days that follow each other."""
    firsts = [number for number in sorted(numbers) if number - 1 not in numbers]
    lasts = [number for number in sorted(numbers) if number + 1 not in numbers]
    return list(zip(firsts, lasts, strict=True))


def _named(first: int, last: int) -> str:
    names = DAY_NAMES[first : last + 1]
    return f"{names[0]}-{names[-1]}" if len(names) > 2 else ",".join(names)


def _tz(name: str) -> str:
    """Checked where there is a time zone database: a bare GPU node may have none."""
    if zone_names():
        time_zone(name)
    return name


Words = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Moment = Annotated[datetime, BeforeValidator(moment_of)]
Currency = Annotated[str, AfterValidator(_currency)]
Clock = Annotated[str, AfterValidator(_clock)]
Days = Annotated[str, AfterValidator(_days)]
TimeZone = Annotated[str, AfterValidator(_tz)]
Money = Annotated[Number, Field(ge=0, le=1e9)]
PerKwh = Annotated[Number, Field(ge=-1e6, le=1e6)]
Positive = Annotated[Number, Field(gt=0, le=1e9)]
