"""The hours of a plan as rows, which page and command show alike, and as CSV."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app import units
from app.spreadsheet import csv_text

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class PlanPool:
    """Replicas of a fleet, model and size, at whatever operating points. name: e.g. "h100: 1x H100 PCIe 80GB"."""

    fleet: str
    model: str
    gpu: str
    gpus_per_replica: int
    name: str

    def count(self, hour: Answer) -> int:
        mine = (self.fleet, self.gpus_per_replica, self.model)
        return sum(one["count"] for one in hour["split"]["replicas"] if _shape(one) == mine)


def plan_pools(answer: Answer) -> list[PlanPool]:
    """Those that run in any of the hours, by fleet and size; their names hold the model where there are several."""
    seen: dict[tuple[str, int, str], Answer] = {}
    for hour in answer["hours"]:
        for one in hour["split"]["replicas"]:
            seen.setdefault(_shape(one), one)
    several = len({model for _, _, model in seen}) > 1
    return [
        PlanPool(
            fleet, model, one["gpu"], gpus,
            f"{fleet}: {gpus}x {one['gpu_label']}" + (f", {model.rsplit('/', 1)[-1]}" if several else ""),
        )
        for (fleet, gpus, model), one in sorted(seen.items())
    ]  # fmt: skip


def _shape(replica: Answer) -> tuple[str, int, str]:
    return replica["fleet"], replica["gpus_per_replica"], replica["model"]


def loads(hour: Answer) -> list[float]:
    """Parts of the busiest hour's load, each once: classes of a model share theirs."""
    return list(dict.fromkeys(hour["load"].values()))


def arriving_tokens_per_s(hours: Sequence[Answer]) -> list[float]:
    """Of all classes: what is served in the hour, and by how much more waits at its end than at its start."""
    waiting = [0.0, *(math.fsum(hour["deferred_tokens"].values()) for hour in hours)]
    return [
        hour["split"]["tokens_per_s"] + (waiting[number + 1] - waiting[number]) / units.per_hour(1.0)
        for number, hour in enumerate(hours)
    ]


def plan_as_csv(answer: Answer) -> str:
    """A row per hour: what the page's table shows, unrounded, and what the hour was planned with."""
    pools = plan_pools(answer)
    waits, classes, fleets = answer["assumptions"]["deferrable"], list(answer["load"]), list(answer["grid"])
    header = [
        "start_utc", *(f"replicas {pool.name}" for pool in pools), "started", "stopped", "usd", "switch_usd", "g",
        "embodied_g", "tokens_per_s", *(f"deferred_tokens {name}" for name in waits),
        *(f"load {name}" for name in classes), *(f"g_per_kwh {name}" for name in fleets),
    ]  # fmt: skip

    def cells(hour: Answer) -> Iterable[object]:
        split = hour["split"]
        yield hour["start"]
        yield from (pool.count(hour) for pool in pools)
        yield from (hour["started"], hour["stopped"], split["usd_per_hour"], hour["switch_usd"])
        yield from (split["g_per_hour"], split["embodied_g_per_hour"], split["tokens_per_s"])
        yield from (hour["deferred_tokens"][name] for name in waits)
        yield from (hour["load"][name] for name in classes)
        yield from (hour["g_per_kwh"][name] for name in fleets)

    return csv_text(header, map(cells, answer["hours"]))
