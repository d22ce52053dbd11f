"""Account lines made up for tests: each says only what the test is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from app.accounting.figure import Figure, missing
from app.accounting.latency import Quantile
from app.accounting.line import AccountLine
from app.accounting.periods import Period

NOW = datetime(2026, 2, 4, 5, 0, tzinfo=UTC)
DAY = Period(datetime(2026, 2, 2, 23, tzinfo=UTC), datetime(2026, 2, 3, 23, tzinfo=UTC), "2026-02-03")


def figure(value: float | None, unit: str = "", reason: str = "not told by the engine") -> Figure:
    return missing(unit, "measured", reason) if value is None else Figure(value, unit, "measured")


FIGURES: dict[str, Figure] = {
    "gpu_hours": figure(48.0), "prompt_tokens": figure(1_500_000), "cached_tokens": figure(250_000),
    "generated_tokens": figure(500_000), "requests": figure(1000), "failed_requests": figure(3),
    "energy_kwh": figure(1.0), "energy_idle_kwh": figure(0.25), "cost": figure(96.0), "cost_used": figure(60.0),
    "cost_working": figure(20.0), "cost_slack": figure(40.0), "cost_idle": figure(36.0),
    "cost_unallocated": figure(0.0), "usd_per_mtok": figure(48.0), "tokens_per_joule": figure(2e6 / 3.6e6),
    "carbon_g": figure(213.02), "g_per_mtok": figure(106.51), "carbon_market_g": figure(50.0),
    "embodied_g": figure(800.0), "embodied_low_g": figure(300.0), "embodied_high_g": figure(900.0),
    "sci_g_per_mtok": figure(506.51),
}  # fmt: skip


def line(**said: Any) -> AccountLine:
    """48 GPU-hours of h100 for one model: 1 kWh, 2 M tokens, $96. said: figures by name, and other fields."""
    figures = {name: said.pop(name) for name in FIGURES if name in said}
    known: dict[str, Any] = {
        "period": DAY, "fleet": "h100", "model": "org/model", "boundary": "it", "basis": "total",
        "figures": FIGURES | figures,
        "ttft": {
            50.0: Quantile(0.05, 0.04, 0.06, 1000), 90.0: Quantile(0.08, 0.06, 0.1, 1000),
            99.0: Quantile(0.12, 0.1, 0.2, 1000),
        },
        "coverage": 0.995, "method": "measured", "price_source": "wattmix.toml, fleet h100",
        "grid": "EU27 213.02 g/kWh, PUE 1.2", "carbon_basis": "boundary site (GPUs x PUE); tokens: total",
    }  # fmt: skip
    return AccountLine(**known | said)


class Account:
    """In place of the store's account: one line per period, and what it was asked for."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.asked: list[Period] = []
        self.problem = problem

    def __call__(
        self, periods: Sequence[Period], *, boundary: str, basis: str, now: datetime, known_at: datetime | None
    ) -> Sequence[AccountLine]:
        if self.problem is not None:
            raise self.problem
        self.asked += periods
        return [line(period=period, boundary=boundary, basis=basis) for period in periods]
