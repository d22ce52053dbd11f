"""A CSV to start from: an example row of each form that a fact can have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from app.facts import table
from app.facts.fact import Fact
from app.facts.fields import moment_of
from app.facts.kinds import Kind, parse_value

_Example = tuple[Kind, str, str, str, Mapping[str, Any] | None]
_HOURS = [
    {"days": "mon-fri", "from": "18:00", "to": "22:00", "per_kwh": 0.32},
    {"days": "all", "from": "23:00", "to": "07:00", "per_kwh": 0.09},
]
_OWNED = {
    "plan": "owned", "currency": "EUR", "purchase": 1800.0, "residual": 300.0, "life_years": 4.0,
    "fixed_per_hour": 0.02, "in_service": "2026-01-15", "retired": "2029-12-31",
}  # fmt: skip
_EMBODIED = {"method": "user", "kg_low": 164.0, "kg_per_gpu": 350.0, "kg_high": 575.0, "life_years": 5.0}
_HOSTED = {"input_usd_per_mtok": 0.10, "output_usd_per_mtok": 0.20}
_EXAMPLES: tuple[_Example, ...] = (
    ("membership", "rack1-node7", "2026-01-01", "asset list", {"fleet": "h100"}),
    ("membership", "rack1-node8", "2026-02-01T13:37+01:00", "moved out of the rack", None),
    ("price", "h100", "2026-01-01", "contract 17",
     {"plan": "rented", "per_gpu_hour": 2.0, "billing_increment_s": 60.0}),
    ("price", "home", "2026-01-15", "invoice 2026-004", _OWNED),
    ("tariff", "rtx4090", "2026-01-01", "utility bill", {"plan": "flat", "per_kwh": 0.16}),
    ("tariff", "home", "2026-01-01", "utility bill",
     {"plan": "time-of-use", "currency": "EUR", "per_kwh": 0.18, "tz": "Europe/Madrid", "rules": _HOURS}),
    ("tariff_hour", "home", "2026-01-01T13:00Z", "day-ahead market", {"currency": "EUR", "per_kwh": -0.004}),
    ("pue", "h100", "2026-01-01", "data centre's report", {"pue": 1.2}),
    ("zone", "h100", "2026-01-01", "address of the data centre", {"zone": "EU27"}),
    ("market_factor", "h100", "2026-01-01", "supplier's disclosure 2025", {"g_per_kwh": 45.0}),
    ("embodied", "h100", "2026-01-01", "vendor's footprint", _EMBODIED),
    ("embodied", "home", "2026-01-15", "bought for games", {"policy": "sunk"}),
    ("exchange_rate", "EUR", "2026-01-02", "ECB reference rate", {"usd_per_unit": 1.08}),
    ("hosted_price", "example-ai/llama-3.1-8b", "2026-01-02", "its price list", _HOSTED),
    ("slo", "meta-llama/Llama-3.1-8B-Instruct", "2026-01-02", "agreed with the chat team", {"max_ms": 200.0}),
)  # fmt: skip


def template(now: datetime) -> str:
    """The columns with an example of every kind: replace the rows by your own."""
    return table.write(_examples(now))


def _examples(now: datetime) -> Iterator[Fact]:
    for kind, subject, valid_from, source, content in _EXAMPLES:
        value = None if content is None else parse_value(kind, content)
        yield Fact(kind, subject, moment_of(valid_from), now, source, value)
