"""What is found of grid providers, in words: how bad it is, what it is, and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.answers.asking import failure, not_asked
from app.answers.findings import Finding, duration, finding
from app.formatting import utc_clock

# Providers are behind by less, most by an hour or two.
BEHIND_S = 3 * 3600.0


def source_state(source: Mapping[str, Any]) -> str:
    """absent, failing, waiting (not asked yet), behind or ok."""
    if source["problem"] is not None:
        return "absent" if source["problem_kind"] == "absent" else "failing"
    if source["asked_at"] is None:
        return "waiting"
    newest = source["newest"]
    return "ok" if newest is not None and newest["age_s"] <= BEHIND_S else "behind"


def source_findings(source: Mapping[str, Any]) -> list[Finding]:
    found: list[Finding] = []
    if source["state"] == "absent":
        found.append(finding("warning", f"not asked: {source['problem']}", f"{source['advice']}{_until_then(source)}"))
    elif source["state"] == "failing":
        found.append(finding("warning", failure(source), f"{source['advice']}{_until_then(source)}"))
    elif source["state"] == "behind":
        newest = source["newest"]
        what = "it has no values yet" if newest is None else f"its newest value ended {duration(newest['age_s'])} ago"
        found.append(finding("warning", what, f"the provider is behind; it is asked again{_until_then(source)}"))
    if source["state"] != "absent":
        found += not_asked(source)
    if source["forecast_problem"] is not None and source["state"] not in ("absent", "failing"):
        remedy = "its plan may not have them; another provider of [[grid]] may"
        found.append(finding("note", f"no forecasts: {source['forecast_problem']}", remedy))
    return found


def _until_then(source: Mapping[str, Any]) -> str:
    """What counts meanwhile. Marginal values count in no total, so nothing stands in for them."""
    newest = source["newest"]
    if source["is_marginal"]:
        return ""
    kept = "" if newest is None else f" values to {utc_clock(newest['end'])} are kept, and after that"
    return f"; until then{kept} {source['table']} counts"
