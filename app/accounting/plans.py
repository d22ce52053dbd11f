"""Price plans and tariffs: what an hour of a GPU and a kWh cost at a moment, and when that changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from app import units

MINUTES_PER_DAY = 1440
_ONE_DAY = timedelta(days=1)
_JUST_BEFORE = timedelta(microseconds=1)
# Sums of seconds carry rounding errors; a stretch this little past an increment has not begun the next one.
_ROUNDING_S = 1e-6


@dataclass(frozen=True)
class TariffRule:
    """A price for some hours of the local clock.

    weekdays: on which the hours begin, 0 is Monday. from_minute, to_minute: of the local day; where `to` is not after
    `from`, the hours go on past midnight.
    """

    weekdays: frozenset[int]
    from_minute: int
    to_minute: int
    per_kwh: float

    def holds(self, weekday: int, minute: float) -> bool:
        if self.from_minute < self.to_minute:
            return weekday in self.weekdays and self.from_minute <= minute < self.to_minute
        began_today = weekday in self.weekdays and minute >= self.from_minute
        return began_today or ((weekday - 1) % 7 in self.weekdays and minute < self.to_minute)


@dataclass(frozen=True)
class Tariff:
    """Price of electricity by the local clock: the first rule that holds counts, else `per_kwh`; without rules flat.

    It follows what a clock on the wall shows: an hour that autumn repeats has the same price both times.
    """

    currency: str
    per_kwh: float
    tz: str = "UTC"
    rules: tuple[TariffRule, ...] = ()

    def price_at(self, moment: datetime) -> float:
        """Price of a kWh at a moment, in `currency`; may be negative."""
        if not self.rules:
            return self.per_kwh
        local = moment.astimezone(ZoneInfo(self.tz))
        minute = local.hour * 60 + local.minute + (local.second + local.microsecond / 1e6) / 60
        weekday = local.weekday()
        return next((rule.per_kwh for rule in self.rules if rule.holds(weekday, minute)), self.per_kwh)

    def edges(self, start: datetime, end: datetime) -> list[datetime]:
        """The moments strictly between `start` and `end` at which the price changes, in UTC and in order."""
        if not self.rules:
            return []
        within = {moment for moment in self._candidates(start, end) if start < moment < end}
        return [moment for moment in sorted(within) if self._changes_at(moment)]

    def mean_per_kwh(self) -> float:
        """The mean over the minutes of a week whose days all have 24 hours."""
        return _mean_per_kwh(self)

    def _changes_at(self, moment: datetime) -> bool:
        return self.price_at(moment) != self.price_at(moment - _JUST_BEFORE)

    def _candidates(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Where a rule may begin or end: at its times, in both of a repeated hour, and where the clock is changed."""
        zone = ZoneInfo(self.tz)
        minutes = {minute for rule in self.rules for minute in (rule.from_minute, rule.to_minute % MINUTES_PER_DAY)}
        times = [time(*divmod(minute, 60)) for minute in minutes | {0}]
        for day in _days(start.astimezone(zone).date() - _ONE_DAY, end.astimezone(zone).date() + _ONE_DAY):
            for clock in times:
                for fold in (0, 1):
                    yield datetime.combine(day, clock, zone).replace(fold=fold).astimezone(UTC)
        yield from _clock_changes(zone, start, end)


@lru_cache(maxsize=256)
def _mean_per_kwh(tariff: Tariff) -> float:
    """Computed once: a page asks it for each of hundreds of runs."""
    minutes = ((weekday, minute) for weekday in range(7) for minute in range(MINUTES_PER_DAY))
    prices = [
        next((rule.per_kwh for rule in tariff.rules if rule.holds(*moment)), tariff.per_kwh) for moment in minutes
    ]
    return math.fsum(prices) / len(prices)


def owned_rate_per_hour(purchase: float, residual: float, life_years: float, fixed_per_hour: float = 0.0) -> float:
    """Hourly cost of an owned GPU before electricity: straight-line depreciation plus fixed cost.

    Source: design section 4, Cost. The result has the currency of what is given.
    """
    return (purchase - residual) / (life_years * units.HOURS_PER_YEAR) + fixed_per_hour


def rounded_s(stretches_s: Iterable[float], increment_s: float) -> float:
    """Seconds that are billed for provisioned stretches, each rounded up to the billing increment (0: none)."""
    if increment_s <= 0:
        return math.fsum(stretches_s)
    return math.fsum(math.ceil((stretch - _ROUNDING_S) / increment_s) * increment_s for stretch in stretches_s)


def service_s(in_service: datetime, retired: datetime | None, start: datetime, end: datetime) -> float:
    """Seconds of [start, end) in which an owned GPU is in service, switched on or not."""
    last = end if retired is None else min(end, retired)
    return max((last - max(start, in_service)).total_seconds(), 0.0)


def usd(amount: float, usd_per_unit: float | None) -> float | None:
    """An amount of another currency in US dollars; None where no rate is known."""
    return None if usd_per_unit is None else amount * usd_per_unit


def _days(first: date, last: date) -> Iterator[date]:
    return (first + number * _ONE_DAY for number in range((last - first).days + 1))


def _clock_changes(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[datetime]:
    """The moments, to the second, at which the zone's offset changes."""
    before = start.astimezone(UTC).replace(microsecond=0) - _ONE_DAY
    while before < end:
        after = before + _ONE_DAY
        if _offset(before, zone) != _offset(after, zone):
            yield _first_after(zone, before, after)
        before = after


def _first_after(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second with the offset of `after`, by bisection."""
    while after - before > timedelta(seconds=1):
        middle = (before + (after - before) / 2).replace(microsecond=0)
        if _offset(middle, zone) == _offset(after, zone):
            after = middle
        else:
            before = middle
    return after


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta | None:
    return moment.astimezone(zone).utcoffset()
