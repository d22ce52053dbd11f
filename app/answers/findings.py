"""What is found of nodes and GPUs, in words: how bad it is, what it is, and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

Level = Literal["problem", "warning", "note"]
Finding = dict[str, str]

SILENT_AFTER_S = 60.0
SKEW_S = 5.0
DIVERGENCE = 0.05
COVERAGE = 0.95
TWIN_SHOWN_S = 86_400.0
CATCHING_UP_BATCHES = 6

# Counts that an agent sends along: what one above zero means, and the remedy.
_AGENT_COUNTS: tuple[tuple[str, Level, str, str], ...] = (
    ("dropped_batches", "warning", "its spool was full: {} batches were dropped",
     "the hub was away too long, or [agent] spool_max_mb is too small"),
    ("rejected_batches", "warning", "the hub refused {} batches of it",
     "hub and agent may differ in version; the agent's log names the field"),
    ("rejected_readings", "note", "{} readings were out of range and left out",
     "the driver reports impossible values; they count as missing"),
    ("child_restarts", "note", "its NVML process was restarted {} times",
     "a GPU or the driver did not answer in time; the kernel log may show XID errors"),
)  # fmt: skip


def node_level(node: Mapping[str, Any], found: Sequence[Finding]) -> str:
    """silent, problem, warning or ok: the worst of a node's findings."""
    if node["age_s"] is None or node["age_s"] > SILENT_AFTER_S:
        return "silent"
    levels = {finding["level"] for finding in found}
    return next((level for level in ("problem", "warning") if level in levels), "ok")


def node_findings(node: Mapping[str, Any], now: datetime) -> Iterator[Finding]:
    age_s, skew_s = node["age_s"], node["skew_s"]
    if age_s is not None and age_s > SILENT_AFTER_S:
        remedy = "is the node up, and its agent running? `wattmix doctor` there says what is wrong"
        yield finding("problem", f"no batch for {duration(age_s)}", remedy)
    if node["status"]:
        yield finding("problem", node["status"], "`wattmix doctor` on the node says more")
    if skew_s is not None and abs(skew_s) > SKEW_S:
        side = "ahead of" if skew_s > 0 else "behind"
        what = f"its clock is {duration(abs(skew_s))} {side} the hub's"
        yield finding("warning", what, "set both clocks by NTP; samples keep the node's own times")
    if node["twin_seen"] and (now - datetime.fromisoformat(node["twin_seen"])).total_seconds() < TWIN_SHOWN_S:
        yield finding("problem", "two machines send under this name", "give each its own: [agent] node in wattmix.toml")
    if node["late_rows"]:
        remedy = "older than raw samples are kept, or from the future: see the node's clock"
        yield finding("warning", f"{node['late_rows']} rows were refused for their time", remedy)
    if node["skipped_batches"]:
        remedy = "the agent dropped them or set them aside: its log says why"
        yield finding("warning", f"{node['skipped_batches']} batches never arrived", remedy)
    for what, why in node["missing"].items():
        yield finding("note", f"{what} is not measured", why)


def agent_findings(agent: Mapping[str, Any]) -> Iterator[Finding]:
    for name, level, what, remedy in _AGENT_COUNTS:
        if agent.get(name):
            yield finding(level, what.format(agent[name]), remedy)
    waiting = agent.get("spool_batches") or 0
    if waiting > CATCHING_UP_BATCHES:
        yield finding("note", f"{waiting} batches wait on the node", "it is catching up")


def gpu_findings(gpu: Mapping[str, Any]) -> list[Finding]:
    found: list[Finding] = []
    coverage, divergence = gpu["coverage_day"], gpu["divergence_hour"]
    if gpu["status"] != "ok":
        remedy = "the other GPUs go on; see the kernel log, then reset the GPU or reboot"
        found.append(finding("problem", f"status: {gpu['status']}", remedy))
    if gpu["energy_method"] is None:
        remedy = "the driver gives neither a counter nor a power; its energy is missing, not 0"
        found.append(finding("problem", "no energy source on this device", remedy))
    if divergence is not None and abs(divergence) > DIVERGENCE:
        remedy = "one of the two sensors is off; compare with a meter at the socket"
        found.append(finding("warning", f"counter and power integral differ by {divergence:+.1%}", remedy))
    if coverage is not None and coverage < COVERAGE:
        remedy = "gaps are bridged by the counter where it went on, else their energy is missing"
        found.append(finding("warning", f"samples cover {coverage:.0%} of the last day", remedy))
    if gpu["mig_enabled"]:
        remedy = "energy is the whole card's, counted once; utilisation is not available"
        found.append(finding("note", "MIG is on", remedy))
    return found


def place(one: Mapping[str, Any]) -> str:
    """Where something of the health answer is: a node's name, an engine's, a node's with the GPU's index, a provider's
    with the zone or the market.
    """
    if "market" in one:
        return f"{one['title']}, {one['market']} prices"
    if "provider" in one:
        return f"{one['title']}, zone {one['zone']}"
    if "engine" in one:
        return str(one["engine"])
    return f"{one['node']} GPU {one['gpu']}" if "gpu" in one else str(one["node"])


def duration(seconds: float) -> str:
    """E.g. 42 s, 3 min, 5 h, 2 d."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def finding(level: Level, what: str, remedy: str) -> Finding:
    return {"level": level, "what": what, "remedy": remedy}
