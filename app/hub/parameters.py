"""Query parameters: each known, each given once, each one of what is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.requests import Request

from app.errors import BadParameter
from app.facts.fields import moment_of


def parameters(request: Request, accepted: set[str] | None) -> Mapping[str, str]:
    """The query parameters, each given once; None accepts any name (the callee checks)."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if accepted is not None and name not in accepted:
            raise BadParameter(f"query `{name}`: no such parameter; accepted: {', '.join(sorted(accepted)) or 'none'}")
        if names.count(name) > 1:
            raise BadParameter(f"query `{name}`: given twice")
    return request.query_params


def one_of(name: str, value: str, accepted: tuple[str, ...]) -> str:
    if value not in accepted:
        raise BadParameter(f"query `{name}`: given {value!r}; accepted: {', '.join(accepted)}")
    return value


def whole_number(name: str, value: str, low: int, high: int) -> int:
    if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
        raise BadParameter(f"query `{name}`: given {value!r}; accepted: a whole number from {low} to {high}")
    return int(value)


def past_moment(name: str, value: str, now: datetime) -> datetime:
    """A moment up to now, of which the time zone is said. A `+` that became a space on its way is put back."""
    accepted = "accepted: a moment that has passed, with its time zone, such as 2026-02-03T04:05:06Z"
    try:
        found = datetime.fromisoformat(_with_plus(value))
    except ValueError:
        raise BadParameter(f"query `{name}`: given {value!r}; {accepted}") from None
    if found.tzinfo is None or found > now:
        raise BadParameter(f"query `{name}`: given {value!r}; {accepted}")
    return found.astimezone(UTC)


def moment(name: str, value: str) -> datetime:
    """Any moment, or a day; a `+` of its offset that became a space on its way is put back."""
    try:
        return moment_of(_with_plus(value))
    except ValueError as accepted:
        raise BadParameter(f"query `{name}`: given {value!r}; accepted: {accepted}") from None


def _with_plus(value: str) -> str:
    """A moment with the `+` of its offset, such as +01:00, where that became a space."""
    return f"{value[:-6]}+{value[-5:]}" if value[-6:-5] == " " else value
