"""What a provider's HTTP answer means: its JSON, or the problem in words. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from collectors.http.problem import ProblemKind, UnusableAnswer

MAX_RETRY_AFTER_S = 86_400.0
MAX_SAID = 200
_HTML = "an HTML page instead of JSON"


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, read in full. headers: looked up without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_html(self) -> bool:
        return "html" in self.headers.get("Content-Type", "").lower() or self.body[:200].lstrip()[:1] == b"<"


def json_of(reply: Reply) -> Any:
    """What a 2xx answer holds. Raises UnusableAnswer."""
    if reply.status == 204 or not reply.body.strip():
        raise UnusableAnswer(f"HTTP {reply.status} with an empty body", "empty")
    if reply.is_html:
        raise UnusableAnswer(f"HTTP {reply.status} with {_HTML}")
    try:
        data = json.loads(reply.body)
    except (ValueError, RecursionError):
        raise UnusableAnswer(f"HTTP {reply.status} with a body that is not JSON") from None
    if data in (None, {}, []):
        raise UnusableAnswer(f"HTTP {reply.status} with no data in it", "empty")
    return data


def problem_of(reply: Reply) -> tuple[ProblemKind, str] | None:
    """What a status other than 2xx means, with what the provider says about it; None for 2xx."""
    if 200 <= reply.status < 300:
        return None
    said = _said(reply)
    kind = _kind_of(reply.status, said)
    return kind, f"HTTP {reply.status}" + (f": {said}" if said else "")


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header, which holds seconds or an HTTP date; 0 to a day; None if absent or nonsense."""
    if value is None:
        return None
    written = value.strip()
    if written.isascii() and written.isdigit():
        return min(float(written[:10]), MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(written)
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def _kind_of(status: int, said: str) -> ProblemKind:
    if status in (401, 403):
        return "no_access"
    if status == 404:
        return "no_recent_data" if "no recent data" in said.lower() else "not_found"
    if status == 429:
        return "rate_limited"
    if status == 408:
        return "timed_out"
    return "failed" if status >= 500 else "refused"


def _said(reply: Reply) -> str:
    """The provider's own words: `{"error": ..}`, `{"error": {"message": ..}}`, `{"message": ..}` or GraphQL's."""
    if reply.is_html:
        return _HTML
    try:
        data = json.loads(reply.body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    error = data.get("error")
    words = error.get("message") if isinstance(error, dict) else error
    said = (words, data.get("message"), data.get("detail"), graphql_words(data.get("errors")))
    return printable(": ".join([one for one in said if isinstance(one, str) and one][:2]))


def graphql_words(errors: object) -> str:
    """What the first of GraphQL's `errors` says; empty where it says nothing."""
    first = errors[0] if isinstance(errors, list) and errors else None
    words = first.get("message") if isinstance(first, dict) else first
    return printable(words) if isinstance(words, str) else ""


def printable(words: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in words)[:MAX_SAID].strip()
