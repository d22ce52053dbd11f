"""What the hub's answer to a batch means for the spool: docs/wire.md, section "Answers"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

MAX_RETRY_AFTER_S = 300.0
MISCONFIGURED_WAIT_S = 60.0


@dataclass(frozen=True)
class Verdict:
    """acknowledged: forget the batch; rejected: put it aside; kept: send it again.

    reason: in words. wait_s: how long to leave the hub alone before the next try; None where back-off decides.
    """

    outcome: Literal["acknowledged", "rejected", "kept"]
    reason: str = ""
    wait_s: float | None = None


def judge(status: int, headers: Mapping[str, str], body: bytes, *, sequence: int, now: datetime) -> Verdict:
    """The meaning of an answer. headers: looked up without regard to case by the caller's mapping; now: UTC."""
    answer = _json_object(body)
    error = str(answer.get("error", ""))[:300]
    if 200 <= status < 300:
        # A proxy's or another server's 200 is no acknowledgement.
        if type(answer.get("acknowledged")) is int and answer["acknowledged"] == sequence:
            return Verdict("acknowledged")
        return Verdict("kept", f"{status} without an acknowledgement of batch {sequence}: is that a Wattmix hub?")
    if status == 413 or (status in (400, 422) and error):
        # 400 and 422 must say why in the hub's way: a proxy that answers 400 to everything must not empty the spool.
        return Verdict("rejected", f"{status}: {error or 'the batch is too large for the hub or a proxy before it'}")
    if status in (429, 503):
        wait_s = retry_after_s(headers.get("Retry-After"), now)
        return Verdict("kept", f"{status}: {error or 'the hub asks to wait'}", wait_s)
    if status >= 500 or status in (408, 425):
        return Verdict("kept", f"{status}: {error or 'the hub failed'}")
    return Verdict("kept", f"{status}: {error or _advice(status, headers)}", MISCONFIGURED_WAIT_S)


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header, which holds seconds or an HTTP date; 0 to 300; None if absent or nonsense."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:10]), MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    seconds = (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds()
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def _advice(status: int, headers: Mapping[str, str]) -> str:
    if status == 401:
        return "the hub does not know this token: put a valid node token into the token file"
    if status == 403:
        return "this token may not write batches: give the agent a node token"
    if 300 <= status < 400:
        return f"the hub's address redirects to {headers.get('Location', 'elsewhere')[:200]}: configure that address"
    return "no hub takes batches at that address: check the hub's address and version"


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
