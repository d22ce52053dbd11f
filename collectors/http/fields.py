"""Reading an answer's JSON: what is not there or is of another type is told by its name, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from collectors.http.problem import UnusableAnswer

_MAX_TEXT = 60
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # the years 2000 to 2100


def an_object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UnusableAnswer(f"{what} is {_kind(value)}, not an object")
    return value


def a_list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise UnusableAnswer(f"{what} is {_kind(value)}, not a list")
    return value


def text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise UnusableAnswer(f"{what} is {_kind(value)}, not a text")
    return value


def moment(value: object, what: str) -> datetime:
    """An ISO 8601 time with its offset, of the years 2000 to 2100, in UTC."""
    shown = text(value, what)
    try:
        read = datetime.fromisoformat(shown)
    except ValueError:
        read = None
    if read is not None and read.tzinfo is not None and _EARLIEST_S <= read.timestamp() <= _LATEST_S:
        return read.astimezone(UTC)
    lacks = "has no time zone" if read is not None and read.tzinfo is None else "is not a time"
    raise UnusableAnswer(f"{what} {shown[:_MAX_TEXT]!r} {lacks}")


def moment_or_none(value: object, what: str) -> datetime | None:
    return None if value is None else moment(value, what)


def epoch(value: object, what: str) -> datetime:
    """Seconds since 1970, in UTC; milliseconds are told apart by their size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _EARLIEST_S <= value <= _LATEST_S:
        raise UnusableAnswer(f"{what} {str(value)[:_MAX_TEXT]} is not seconds since 1970")
    return datetime.fromtimestamp(value, UTC)


def check_same(said: object, asked: str, what: str) -> None:
    """Raises UnusableAnswer where an answer is about something else than what was asked for."""
    if not isinstance(said, str) or said.casefold() != asked.casefold():
        shown = "does not say" if said is None else f"is about {str(said)[:_MAX_TEXT]!r}"
        raise UnusableAnswer(
            f"the answer {shown}{' its ' + what if said is None else ''}, {what} {asked!r} was asked for"
        )


def _kind(value: object) -> str:
    if value is None:
        return "missing"
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "of another type")
