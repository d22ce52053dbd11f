"""Bills made up for tests: each says only what the test is about."""

from __future__ import annotations

from typing import Any

from app.accounting.account import Account
from app.accounting.bill import Bill
from app.accounting.carbon import GridFactor
from app.accounting.served import Served
from app.accounting.terms import GpuUse, Terms

HOUR_S = 3600.0
GRID = GridFactor("DE", 400.0, "lifecycle", 2025, "default", "a table")


def rented(usd_per_gpu_hour: float | None = 2.0, **said: Any) -> Terms:
    return Terms(usd_per_gpu_hour, "user", "a contract", said.pop("grid", GRID), **said)


def owned(usd_per_gpu_hour: float, usd_per_kwh: float | None, **said: Any) -> Terms:
    return rented(usd_per_gpu_hour, is_owned=True, usd_per_kwh=usd_per_kwh, **said)


def use(hours: float, used_hours: float = 0.0, *, used_w: float = 0.0, idle_w: float = 0.0, **said: Any) -> GpuUse:
    """GPU-hours of an engine's GPUs, all measured: at used_w while it worked, at idle_w else."""
    idle_j = idle_w * (hours - used_hours) * HOUR_S
    known: dict[str, Any] = {
        "allocated": True, "provisioned_s": hours * HOUR_S, "used_s": used_hours * HOUR_S,
        "known_j": used_w * used_hours * HOUR_S + idle_j, "idle_j": idle_j, "covered_s": hours * HOUR_S,
    }  # fmt: skip
    return GpuUse(**known | said)


def bill(*parts: tuple[GpuUse, Terms], share: float | None = None, boundary: Any = "it") -> Bill:
    """The bill of uses under their terms, each of a replica type that works at `share` of its best rate."""
    made = Bill(boundary)
    for one, terms in parts:
        made.add(one, terms, share, None if share is not None else "no best rate is known")
    return made


def served(prompt: int | None = 0, generated: int | None = 0, model: str = "m", **said: Any) -> Served:
    made = Served()
    counts: dict[str, Any] = {"prompt_tokens": prompt, "generated_tokens": generated}
    rest = {name: said.pop(name) for name in ("gap_s", "unplaced", "simulated") if name in said}
    made.add(model, counts | said, **{"gap_s": 0.0, "unplaced": 0, "simulated": False} | rest)
    return made


def account(of: Bill, tokens: Served | None = None, **said: Any) -> Account:
    known: dict[str, Any] = {"basis": "total", "view": "bill", "seconds": HOUR_S}
    return Account(of, **known | said, served=tokens or Served())
