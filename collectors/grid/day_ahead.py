"""Day-ahead electricity prices of Energy-Charts: wholesale, without grid fees and taxes; negative ones are real."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from collectors.grid.energy_charts import BASE_URL, NAME, deprecation, read_starts
from collectors.grid.fields import a_list, an_object, text
from collectors.grid.http import Ask, Http
from collectors.grid.problem import UnusableAnswer
from collectors.grid.provider import DAY_S, HOUR_S, checked_base_url
from collectors.grid.series import step_of

_UNIT = re.compile(r"([A-Z]{3}) ?/ ?MWh")
_QUARTER_HOUR, _DAY = timedelta(minutes=15), timedelta(days=1)
# The European market allows -500 to 5,000 EUR/MWh at most times; more is another unit or a fault.
_LARGEST_PER_MWH = 100_000.0


@dataclass(frozen=True)
class DayAheadPrice:
    """per_kwh: in `currency`; None where the provider has no usable value."""

    start: datetime
    end: datetime
    currency: str
    per_kwh: float | None


@dataclass(frozen=True)
class DayAheadPrices:
    """licence: to be shown beside the prices; it depends on the zone. age_s: how long ago they were read."""

    prices: tuple[DayAheadPrice, ...]
    licence: str
    age_s: float = 0.0
    notes: tuple[str, ...] = ()


def day_ahead_prices(
    http: Http, bidding_zone: str, start: datetime, end: datetime, *, base_url: str = BASE_URL
) -> DayAheadPrices:
    """The prices of a bidding zone, such as DE-LU, that start in [start, end). Raises SourceProblem."""
    days = {"start": _day(start - _DAY), "end": _day(end + _DAY)}
    ask = Ask(
        NAME, checked_base_url(base_url), "/price", f"bidding zone {bidding_zone}, prices",
        {"bzn": bidding_zone, **days}, fresh_s=HOUR_S, stale_s=DAY_S,
    )  # fmt: skip
    fetched = http.get(ask, partial(_read, start=start, end=end))
    return DayAheadPrices(fetched.value.prices, fetched.value.licence, fetched.age_s, fetched.value.notes)


def _read(data: Any, _: datetime, *, start: datetime, end: datetime) -> DayAheadPrices:
    read = read_prices(data)
    within = tuple(price for price in read.prices if start <= price.start < end)
    if not within:
        raise UnusableAnswer("the answer holds nothing of the time that was asked for", "empty")
    return DayAheadPrices(within, read.licence, notes=read.notes)


def read_prices(data: Any) -> DayAheadPrices:
    """All prices of an answer. Raises UnusableAnswer."""
    answer = an_object(data, "the answer")
    starts, values = read_starts(answer), a_list(answer.get("price"), "`price`")
    if len(values) != len(starts):
        raise UnusableAnswer(f"`price` has {len(values)} values for {len(starts)} times")
    unit = _UNIT.fullmatch(text(answer.get("unit"), "`unit`"))
    if unit is None:
        raise UnusableAnswer(f"`unit` is {str(answer['unit'])[:40]!r}; a currency per MWh is read, such as EUR / MWh")
    step = step_of(starts, _QUARTER_HOUR)
    by_start = {
        start: DayAheadPrice(start, start + step, unit[1], _per_kwh(value))
        for start, value in zip(starts, values, strict=True)
    }
    licence = text(answer.get("license_info"), "`license_info`")
    return DayAheadPrices(tuple(by_start[start] for start in sorted(by_start)), licence, notes=deprecation(answer))


def _per_kwh(per_mwh: object) -> float | None:
    if isinstance(per_mwh, bool) or not isinstance(per_mwh, int | float):
        return None
    return per_mwh / 1000 if abs(per_mwh) <= _LARGEST_PER_MWH else None  # NaN is not


def _day(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%d")
