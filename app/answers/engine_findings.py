"""What is found of engines, in words: how bad it is, what it is, and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.answers.findings import SILENT_AFTER_S, Finding, duration, finding


def engine_level(engine: Mapping[str, Any]) -> str:
    """down, silent, warning or ok."""
    if engine["status"] != "ok":
        return "down"
    if engine["age_s"] > SILENT_AFTER_S:
        return "silent"
    return "warning" if engine["gpus"] is None or engine["gpus_not_measured"] else "ok"


def engine_findings(engine: Mapping[str, Any]) -> list[Finding]:
    found: list[Finding] = []
    node_is_silent = engine["node_age_s"] is None or engine["node_age_s"] > SILENT_AFTER_S
    if engine["status"] != "ok":
        remedy = f"is it serving at {engine['url']}? Its log says why it ended; the agent asks again by itself"
        found.append(finding("problem", f"engine down: {engine['status']}", remedy))
    elif engine["age_s"] > SILENT_AFTER_S and not node_is_silent:
        remedy = "was it taken off the node, or left out of [[agent.engine]] there? If it is gone, so is this in a week"
        found.append(finding("warning", f"not read for {duration(engine['age_s'])}", remedy))
    if engine["status"] == "ok" and engine["gpus"] is None:
        remedy = "set gpus in [[agent.engine]] of the node's wattmix.toml: without them it has no joules and no dollars"
        found.append(finding("warning", "GPUs unknown", remedy))
    if engine["gpus_not_measured"]:
        remedy = "no node measures them: are their UUIDs right, and does an agent run where they are?"
        found.append(finding("warning", f"GPUs not measured: {', '.join(engine['gpus_not_measured'])}", remedy))
    return found


def engine_gpus(engine: Mapping[str, Any]) -> str:
    """E.g. "2 (config)", or "not known"."""
    if engine["gpus"] is None:
        return "not known"
    source = f" ({engine['gpus_source']})" if engine["gpus_source"] else ""
    return f"{len(engine['gpus'])}{source}"
