"""A backend whose front, plan, shadow prices and robustness are made up, and that counts how often it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.backend.local import LocalBackend
from app.split.demand import Demand
from tests.answers.planned import a_plan


class CountingBackend(LocalBackend):
    """asked: how often each of what takes long was computed."""

    asked: Counter[str]

    def split_front(self, demand: Demand | None = None, *, against: str = "carbon") -> dict[str, Any]:
        self.asked[against] += 1
        answer = self.split(demand)
        if against != "carbon":
            slo = {"metric": "ttft", "percentile": 99.0, "max_ms": 60.0, "label": "p99 TTFT <= 60 ms"}
            costs = ((20.0, None), (41.2, 11.0), (60.0, 8.5))
            points = [{"max_ms": limit, "usd_per_hour": usd, "g_per_hour": None} for limit, usd in costs]
            return {"against": against, "reason": None, "class": "chat", "slo": slo, "points": points}
        kinds = ((8.5, 1200.0, "cheapest"), (9.0, 900.0, "between"), (12.0, 850.0, "greenest"))
        points = [
            {"usd_per_hour": usd, "g_per_hour": grams, "kind": kind, "is_knee": kind == "between", "split": answer}
            for usd, grams, kind in kinds
        ]
        return {"against": against, "reason": None, "knee": 1, "points": points}

    def split_shadow(self, demand: Demand | None = None) -> dict[str, Any]:
        self.asked["shadow"] += 1
        price = {
            "kind": "gpus", "name": "h100", "class": None, "from": 4, "to": 5, "unit": "GPUs",
            "saves_usd_per_hour": 1.1, "usd_per_hour_change": -1.1, "g_per_hour_change": None, "is_binding": True,
            "text": "One more h100 saves $1.10/h.",
        }  # fmt: skip
        return {"reason": None, "usd_per_hour": 8.5, "objective_usd_per_hour": 8.5, "prices": [price]}

    def split_plan(self, demand: Demand | None = None, *, hours: int = 24) -> dict[str, Any]:
        self.asked[f"plan {hours}"] += 1
        return a_plan()

    def split_robustness(self, demand: Demand | None = None, *, inputs: Sequence[str] | None = None) -> dict[str, Any]:
        names = ["rps.chat", "usd.h100"]
        asked = names if inputs is None else list(inputs)
        self.asked.update(asked or ["names"])
        text = "Below 3.1 req/s h100 costs less."
        nothing = {"text": None}
        return {
            "reason": None, "names": names, "replicas": {"h100: 1x H100 PCIe at 16 req/s": 1}, "fleets": ["h100"],
            "usd_per_hour": 8.5, "inputs": [_range(name) for name in asked],
            "break_even": [{"class": "batch", "cheaper": "rtx4090", "dearer": "h100", "load": {"text": text},
                            "price": nothing, "carbon": nothing, "grams": nothing}],
        }  # fmt: skip


def _range(name: str) -> dict[str, Any]:
    ends = {"low": {"factor": 0.8, "value": 4.0, "usd_per_hour": 8.0},
            "high": {"factor": 1.25, "value": 6.25, "usd_per_hour": None}}  # fmt: skip
    return {
        "name": name, "label": f"input {name}", "unit": "req/s", "value": 5.0, "low": 4.5, "high": 50.0,
        "low_factor": 0.9, "high_factor": 10.0, "low_is_open": False, "high_is_open": True, "reason": None,
        "tornado": ends, "solves": 3, "text": "It stays.",
    }  # fmt: skip
