"""The hours of a plan as rows: what a page, a table in a terminal and a CSV file show of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app import units
from app.formatting import signed
from app.spreadsheet import csv_text

_COLUMNS = (
    "started", "stopped", "usd", "switch_usd", "g", "embodied_g", "watts", "tokens", "deferred_tokens",
)  # fmt: skip


@dataclass(frozen=True)
class PlannedPool:
    """Replicas of a fleet, model and size, at whatever point they run. gpu: the card as first told; counts: in each
    hour; title: e.g. "rtx4090: 2x RTX 4090", with the model where the plan has several.
    """

    fleet: str
    model: str
    gpu: str
    gpus_per_replica: int
    title: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class PlannedHour:
    """usd, g: of this hour; g without embodied. deferred_tokens: wait at its end. watts: GPUs, without PUE."""

    start: datetime
    started: int
    stopped: int
    usd: float
    switch_usd: float
    g: float | None
    embodied_g: float | None
    watts: float | None
    tokens: float
    deferred_tokens: float


def planned_pools(plan: Mapping[str, Any]) -> list[PlannedPool]:
    """By fleet, model and size, such as run in any hour; empty where the plan is infeasible."""
    cards: dict[tuple[str, str, int], tuple[str, str]] = {}
    counts: dict[tuple[str, str, int], list[int]] = {}
    for number, hour in enumerate(plan["hours"]):
        for pool in hour["split"]["replicas"]:
            key = (pool["fleet"], pool["model"], pool["gpus_per_replica"])
            cards.setdefault(key, (pool["gpu"], pool["gpu_label"]))
            counts.setdefault(key, [0] * len(plan["hours"]))[number] += pool["count"]
    models = {model for _, model, _ in counts}
    return [
        PlannedPool(
            fleet=fleet, model=model, gpu=cards[fleet, model, size][0], gpus_per_replica=size,
            title=f"{fleet}: {size}x {cards[fleet, model, size][1]}" + (f", {model}" if len(models) > 1 else ""),
            counts=tuple(found),
        )
        for (fleet, model, size), found in sorted(counts.items())
    ]  # fmt: skip


def planned_hours(plan: Mapping[str, Any]) -> list[PlannedHour]:
    """Empty where the plan is infeasible."""
    return [
        PlannedHour(
            start=datetime.fromisoformat(hour["start"]),
            started=hour["started"],
            stopped=hour["stopped"],
            usd=hour["split"]["usd_per_hour"],
            switch_usd=hour["switch_usd"],
            g=hour["split"]["g_per_hour"],
            embodied_g=hour["split"]["embodied_g_per_hour"],
            watts=hour["split"]["watts"],
            tokens=units.per_hour(hour["split"]["tokens_per_s"]),
            deferred_tokens=sum(hour["deferred_tokens"].values()),
        )
        for hour in plan["hours"]
    ]


def plan_as_csv(plan: Mapping[str, Any]) -> str:
    """A row per hour, unrounded, with a column of replicas per fleet and size."""
    pools = planned_pools(plan)
    names = [f"replicas of {pool.title}" for pool in pools]
    return csv_text(
        ["start_utc", *names, *_COLUMNS],
        (
            [f"{hour.start:%Y-%m-%dT%H:%M:%SZ}", *(pool.counts[number] for pool in pools),
             *(getattr(hour, column) for column in _COLUMNS)]
            for number, hour in enumerate(planned_hours(plan))
        ),
    )  # fmt: skip


def saving_said(plan: Mapping[str, Any]) -> str:
    """What the plan spares, in a sentence without its full stop."""
    saving, held = plan["saving"], plan["static"]
    if saving is None:
        return f"There is nothing to compare it with: {held['reason']}"
    parts = [f"{signed(-saving['usd'], '+,.2f')} USD"]
    if held["totals"]["usd"]:
        parts.append(f"({signed(-saving['usd'] / held['totals']['usd'], '+.1%')})")
    if saving["g"] is not None:
        parts.append(f"and {signed(-saving['g'], '+,.0f')} gCO2e")
    return f"{' '.join(parts)} against the replicas of the busiest hour held in all hours"


def standing_on(plan: Mapping[str, Any]) -> list[str]:
    """Where load and grams of the hours come from, and what else was assumed, a sentence each."""
    assumed = plan["assumptions"]
    waiting = ", ".join(assumed["deferrable"])
    return [
        "The demand's rates are those of the busiest hour of the week.",
        *(f"Load of {name}: {_load_said(curve)}." for name, curve in plan["load"].items()),
        *(f"Grid of {name}: {grid['source']}." for name, grid in plan["grid"].items()),
        f"May wait: {waiting}." if waiting else "No class may wait (none is `deferrable`).",
        f"What is started runs for {assumed['min_up_hours']} hours at least.",
    ]  # fmt: skip


def _load_said(curve: Mapping[str, Any]) -> str:
    return str(curve["source"]) if curve["reason"] is None else f"the same in every hour, as {curve['reason']}"
