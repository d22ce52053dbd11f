"""Which power readings to believe. Pure: times are given, in microseconds of one monotonic clock."""

from __future__ import annotations

# No single GPU or superchip module is known above this; a GB300 module's limit is 2900 W.
HIGHEST_LIMIT_MW = 3_000_000
# Transients above the limit are real, a multiple of it is not.
LIMIT_MARGIN = 1.5
STUCK_AFTER_US = 60_000_000
# A sensor that repeats a value is stuck only if the load has visibly changed meanwhile.
UTILISATION_SWING_PCT = 10


def believable_mw(limit_mw: int | None, max_limit_mw: int | None = None) -> int:
    """The highest power to believe, in mW, of a GPU with this limit in force and this highest settable limit."""
    known = [limit for limit in (limit_mw, max_limit_mw) if limit]
    return int(LIMIT_MARGIN * max(known, default=HIGHEST_LIMIT_MW))


class PowerSensor:
    """One power reading of one GPU over time; `problem` says in words why the last value was refused."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self.rejected = 0
        self._value: int | None = None
        self._since_us = 0
        self._utilisation: list[int] = []

    def believe(self, power_mw: int | None, mono_us: int, utilisation_pct: int | None, bound_mw: int) -> int | None:
        """`power_mw`, or None when it is out of bounds (counted in `rejected`) or has been stuck for a minute."""
        self.problem = None
        if power_mw is None:
            self._value = None
            return None
        if not 0 <= power_mw <= bound_mw:
            self.rejected += 1
            self.problem = f"a power outside 0 to {bound_mw / 1000:.0f} W was reported; check the driver"
            self._value = None
            return None
        if self._is_stuck(power_mw, mono_us, utilisation_pct):
            self.problem = "the power has not moved for a minute though the load did; reload the driver"
            return None
        return power_mw

    def _is_stuck(self, power_mw: int, mono_us: int, utilisation_pct: int | None) -> bool:
        if power_mw != self._value:
            self._value, self._since_us, self._utilisation = power_mw, mono_us, []
        if utilisation_pct is not None:
            seen = [*self._utilisation, utilisation_pct]
            self._utilisation = [min(seen), max(seen)]
        swing = self._utilisation[-1] - self._utilisation[0] if self._utilisation else 0
        return mono_us - self._since_us > STUCK_AFTER_US and swing >= UTILISATION_SWING_PCT
