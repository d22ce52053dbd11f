"""A made-up answer of the plan: three hours of two fleets over the night in which Madrid puts its clocks back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# 02:00 summer time, 02:00 and 03:00 winter time in Madrid.
STARTS = ("2026-10-25T00:00:00+00:00", "2026-10-25T01:00:00+00:00", "2026-10-25T02:00:00+00:00")
MODEL = "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"
H100, RTX4090 = ("NVIDIA H100 PCIe", "H100 PCIe 80GB"), ("NVIDIA GeForce RTX 4090", "RTX 4090")


def a_replica(
    fleet: str, gpu: tuple[str, str], gpus: int, count: int, qps: float = 16.0, model: str = MODEL
) -> dict[str, Any]:
    return {
        "fleet": fleet, "gpu": gpu[0], "gpu_label": gpu[1], "model": model, "gpus_per_replica": gpus, "qps_point": qps,
        "count": count,
    }  # fmt: skip


def an_hour(number: int, replicas: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """$2 and 200 g of the hour, 1,000 tokens/s served, unless said otherwise. split: what its mix has else."""
    split = {"replicas": list(replicas), "usd_per_hour": 2.0, "g_per_hour": 200.0, "embodied_g_per_hour": 16.0,
             "tokens_per_s": 1000.0}  # fmt: skip
    said = {
        "start": STARTS[number], "load": {"chat": 0.5, "batch": 0.5}, "g_per_kwh": {"h100": 350.0, "rtx4090": 80.0},
        "started": 0, "stopped": 0, "switch_usd": 0.0, "deferred_tokens": {"batch": 0.0},
    }  # fmt: skip
    return said | more | {"split": split | more.get("split", {})}


def a_plan(**more: Any) -> dict[str, Any]:
    """One H100 all the time, and pairs of RTX 4090s, at two operating points in the last hour, for what waits."""
    h100 = a_replica("h100", H100, 1, 1)
    hours = [
        an_hour(0, [h100], started=1, deferred_tokens={"batch": 3.6e6}),
        an_hour(1, [a_replica("rtx4090", RTX4090, 2, 2), h100], started=2, switch_usd=0.1,
                g_per_kwh={"h100": 350.0, "rtx4090": 40.0}, deferred_tokens={"batch": 1.8e6}),
        an_hour(2, [h100, a_replica("rtx4090", RTX4090, 2, 3), a_replica("rtx4090", RTX4090, 2, 1, 3.5)], started=2,
                switch_usd=0.1, load={"chat": 1.0, "batch": 1.0}, split={"usd_per_hour": 3.0, "tokens_per_s": 2500.0}),
    ]  # fmt: skip
    static = {"usd": 12.0, "usd_per_mtok": 12 / 16.2, "switch_usd": 0.0, "objective_usd": 12.0, "g": 900.0,
              "embodied_g": 48.0, "tokens": 16.2e6}  # fmt: skip
    totals = static | {"usd": 7.0, "usd_per_mtok": 7 / 16.2, "switch_usd": 0.2, "objective_usd": 7.2, "g": 600.0}
    said = {
        "status": "feasible", "reason": None, "gap": 0.02, "bound_usd": 7.056, "totals": totals,
        "static": {"reason": None, "totals": static, "split": None},
        "saving": {"usd": 5.0, "objective_usd": 4.8, "g": 300.0},
        "hours": hours,
        "load": {name: {"source": "tokens of 650 hours of the last 28 days", "reason": None, "hours": 650}
                 for name in ("chat", "batch")},
        "grid": {
            "h100": {"zone": "DE", "hours_told": 0, "source": "the yearly value in 3 of 3 hours"},
            "rtx4090": {"zone": "FR", "hours_told": 3, "source": "Electricity Maps"},
        },
        "assumptions": {"min_up_hours": 2, "gap": 0.01, "time_limit_s": 10.0, "deferrable": ["batch"],
                        "requests_per_s": "of the busiest hour of the week"},
    }  # fmt: skip
    return said | more
