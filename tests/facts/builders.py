"""Facts for tests: each says only what the test is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.facts.fact import Fact
from app.facts.kinds import Kind, parse_value

EVER = datetime(1970, 1, 1, tzinfo=UTC)


def t(month: int, day: int = 1, hour: int = 0, minute: int = 0) -> datetime:
    """A moment of 2026, in UTC."""
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def fact(
    kind: Kind,
    subject: str,
    content: Mapping[str, Any] | None,
    valid_from: datetime = EVER,
    known_at: datetime = EVER,
    source: str = "test",
) -> Fact:
    return Fact(kind, subject, valid_from, known_at, source, None if content is None else parse_value(kind, content))


def rented(per_gpu_hour: float, **said: Any) -> dict[str, Any]:
    return {"plan": "rented", "per_gpu_hour": per_gpu_hour, **said}


def owned(**said: Any) -> dict[str, Any]:
    return {"plan": "owned", "purchase": 8760.0, "life_years": 1.0, **said}


def flat(per_kwh: float, **said: Any) -> dict[str, Any]:
    return {"plan": "flat", "per_kwh": per_kwh, **said}


def by_clock(per_kwh: float, *rules: tuple[str, str, str, float], tz: str = "Europe/Madrid") -> dict[str, Any]:
    """rules: days, from, to, price."""
    names = ("days", "from", "to", "per_kwh")
    told = [dict(zip(names, rule, strict=True)) for rule in rules]
    return {"plan": "time-of-use", "tz": tz, "per_kwh": per_kwh, "rules": told}
