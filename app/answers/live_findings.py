"""What is found of replicas at this moment, in words: what is off, by how much, and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app import units
from app.accounting.balance import MANY_FACTOR, Balance, Deviation
from app.answers.findings import Finding, Level, finding
from app.answers.replicas import Replica

_LEVELS = ("problem", "warning", "note")
# A GPU that was slowed for a tenth of the window explains a slow replica.
SLOWED_SHARE = 0.1


def live_findings(replicas: Sequence[Replica], balance: Balance) -> list[Finding]:
    """Findings with `where`, the replica's name; the worst first."""
    found = [said for one in replicas for said in _of(one, balance)]
    return sorted(found, key=lambda said: (_LEVELS.index(said["level"]), said["where"]))


def judged_state(one: Replica, balance: Balance) -> str:
    """down, silent, slow, unbalanced or ok."""
    quantities = {found.quantity for found in balance.deviations if found.replica == one.name}
    return one.state if not quantities else "unbalanced" if quantities == {"load"} else "slow"


def _of(one: Replica, balance: Balance) -> Iterator[Finding]:
    deviations = [found for found in balance.deviations if found.replica == one.name]
    if one.state == "down":
        remedy = f"is it serving at {one.row['url']}? Its log says why it ended; the node's agent asks again by itself"
        yield _at(one, "problem", f"is down: {one.reason}", remedy)
    elif one.state == "silent":
        yield _at(one, "problem", f"is silent: {one.reason}", "see its node on the Health page")
    elif deviations:
        yield _at(one, "warning", _what(deviations), _remedy(one, deviations))
    if one.state == "ok" and one.gpus is None:
        remedy = "set gpus in its [[agent.engine]] on the node: without them it has no watts and no dollars"
        yield _at(one, "warning", "runs on GPUs that are not known", remedy)


def _what(deviations: Sequence[Deviation]) -> str:
    is_slow = any(found.quantity != "load" for found in deviations)
    return f"is {'slow' if is_slow else 'unbalanced'}: {'; '.join(_said(found) for found in deviations)}"


def _said(found: Deviation) -> str:
    against = f"{found.factor:.2g} times the median of its {found.peers} like replicas"
    if found.quantity == "ttft":
        value, usual = units.milliseconds(found.value), units.milliseconds(found.peers_median)
        return f"TTFT p50 {value:.0f} ms, {against} ({usual:.0f} ms)"
    if found.quantity == "speed":
        return f"{found.value:.3g} tokens/s per running request, {against} ({found.peers_median:.3g})"
    return f"{found.value:.3g} requests/s, {against} ({found.peers_median:.3g})"


def _remedy(one: Replica, deviations: Sequence[Deviation]) -> str:
    load = next((found.factor for found in deviations if found.quantity == "load"), 1.0)
    if all(found.quantity == "load" for found in deviations):
        if load > MANY_FACTOR:
            return "even out the weights of the router, unless it is meant to have more"
        return "does the router know it, and pass its health check? Even out the weights"
    slowed = [gpu for gpu in one.gpus or () if (gpu.slowed_share or 0.0) > SLOWED_SHARE]
    if slowed:
        named = ", ".join(f"GPU {gpu.index} ({gpu.slowed_share:.0%} of the time)" for gpu in slowed)
        return f"heat or power supply slows its {named}: see to the node's cooling, and send it less until then"
    if load > MANY_FACTOR:
        return "it gets more than the others: lower its weight at the router"
    return "compare clocks, power limit and other processes of its GPUs with the others', and send it less until then"


def _at(one: Replica, level: Level, what: str, remedy: str) -> Finding:
    return finding(level, what, remedy) | {"where": one.name}
