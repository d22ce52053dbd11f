"""A clock that only tests set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NOW = datetime(2026, 11, 30, 10, 7, tzinfo=UTC)


@dataclass
class Clock:
    now: datetime = NOW
    monotonic: float = 1000.0

    def utc_now(self) -> datetime:
        return self.now

    def monotonic_s(self) -> float:
        return self.monotonic

    def go_on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.monotonic += seconds


def utc(written: str) -> datetime:
    """`10:30` of the samples' day, or a whole ISO time."""
    return datetime.fromisoformat(f"2026-11-30T{written}:00+00:00" if len(written) == 5 else written)
