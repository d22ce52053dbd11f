"""One value of carbon intensity, for one zone and one stretch of time, with how it came about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

Basis = Literal["lifecycle", "direct", "provider"]
Kind = Literal["average", "marginal"]
How = Literal["measured", "estimated", "forecast"]

# The dirtiest grids are near 1,000 g/kWh and single plants near 1,500; more is another unit or a fault.
MAX_G_PER_KWH = 3000.0
FORECAST = "forecast"


@dataclass(frozen=True)
class IntensityPoint:
    """Grams of CO2 (equivalent) per kWh in [start, end) of a zone.

    zone:       as it is named here, not as the provider spells it.
    g_per_kwh:  None: the provider has no usable value; `reason` says why. 0 is a value.
    basis:      lifecycle or direct (combustion only); `provider` where the provider does not say.
    kind:       average, or marginal: of the next kWh, which belongs in no total.
    estimated:  not from measurements of that time; estimation_method in the provider's word.
    is_forecast: the value was said before it could be known; always estimated as well.
    fetched_at: when it was asked for. revised_at: when the provider last changed it. issued_at: of a forecast.
    """

    zone: str
    start: datetime
    end: datetime
    g_per_kwh: float | None
    basis: Basis
    kind: Kind
    estimated: bool
    estimation_method: str | None
    is_forecast: bool
    provider: str
    fetched_at: datetime
    revised_at: datetime | None = None
    issued_at: datetime | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        for name in ("start", "end", "fetched_at", "revised_at", "issued_at"):
            _check_utc(name, getattr(self, name))
        if not self.zone or not self.provider:
            raise ValueError("a point names its zone and its provider")
        if self.start >= self.end:
            raise ValueError(f"a point ends after it starts, not at {self.end.isoformat()}")
        if self.basis not in get_args(Basis) or self.kind not in get_args(Kind):
            raise ValueError(f"{self.basis!r}, {self.kind!r} are no basis and kind")
        if self.g_per_kwh is not None and not 0 <= self.g_per_kwh <= MAX_G_PER_KWH:
            raise ValueError(f"{self.g_per_kwh} g/kWh is not within 0 and {MAX_G_PER_KWH:g}")
        if (self.g_per_kwh is None) != bool(self.reason):
            raise ValueError("a point has a value or the reason why it has none")
        if self.is_forecast and not self.estimated:
            raise ValueError("a forecast is estimated")

    @property
    def how(self) -> How:
        return how_known(is_forecast=self.is_forecast, estimated=self.estimated)


def how_known(*, is_forecast: bool, estimated: bool) -> How:
    """A forecast is estimated, too."""
    return "forecast" if is_forecast else "estimated" if estimated else "measured"


def judged(value: object, factor: float = 1.0) -> tuple[float | None, str | None]:
    """(g/kWh, None) of a provider's number, or (None, why it is not used). factor: g/kWh per unit of `value`."""
    if value is None:
        return None, "the provider has no value for this time"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"not a number: {str(value)[:40]!r}"
    try:
        grams = float(value) * factor
    except OverflowError:
        grams = math.inf
    if not 0 <= grams <= MAX_G_PER_KWH:  # NaN is not, either
        return None, f"{grams:g} g/kWh is not within 0 and {MAX_G_PER_KWH:g}"
    return grams, None


def _check_utc(name: str, moment: datetime | None) -> None:
    if moment is not None and moment.utcoffset() != timedelta(0):
        raise ValueError(f"`{name}` of a point is in UTC, not {moment.isoformat()}")
