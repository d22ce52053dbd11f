"""How asking a source is going, a grid provider or a market of prices alike: as JSON, and in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from app.answers.findings import Finding, duration, finding
from app.formatting import utc_clock
from app.store.source_states import SourceState

# So many periods without a question mean that no hub runs.
MOST_PERIODS = 3


def asking_as_json(state: SourceState, now: datetime) -> dict[str, Any]:
    return {
        "asked_at": as_text(state.asked_at),
        "asked_age_s": _age_s(state.asked_at, now),
        "answered_at": as_text(state.answered_at),
        "answered_age_s": _age_s(state.answered_at, now),
        "problem": state.problem,
        "problem_kind": state.problem_kind,
        "advice": state.advice,
        "retry_at": as_text(state.retry_at),
    }


def not_asked(source: Mapping[str, Any]) -> Iterator[Finding]:
    """source: with what `asking_as_json` tells, and its `poll_s`."""
    age_s = source["asked_age_s"]
    if age_s is not None and source["retry_at"] is None and age_s > MOST_PERIODS * source["poll_s"]:
        remedy = "providers are asked while the hub runs: `wattmix serve`"
        yield finding("note", f"not asked for {duration(age_s)}", remedy)


def failure(source: Mapping[str, Any]) -> str:
    """Since when it has not answered, why, and when it is asked again."""
    age_s = source["answered_age_s"]
    since = "it has never answered" if age_s is None else f"no answer for {duration(age_s)}"
    again = f"; asked again from {utc_clock(source['retry_at'])} on" if source["retry_at"] else ""
    return f"{since}: {source['problem']}{again}"


def as_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def _age_s(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else (now - moment).total_seconds()
