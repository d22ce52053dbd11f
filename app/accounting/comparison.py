"""What an account is held against: the period before, a hosted price, renting instead of buying, its own load. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from app import units
from app.accounting.figure import Figure, Method, missing, weakest
from app.accounting.periods import ONE_DAY, Period, day_start

HOURS_PER_MONTH = units.HOURS_PER_YEAR / 12


def previous_period(start: datetime, end: datetime, zone: ZoneInfo) -> Period:
    """The period of the same length that ends where this one begins: of as many local days, where it is local days."""
    first, after = start.astimezone(zone).date(), end.astimezone(zone).date()
    if start < end and day_start(first, zone) == start and day_start(after, zone) == end:
        before = first - (after - first).days * ONE_DAY
        return Period(day_start(before, zone), start, before.isoformat())
    before_start = start - (end - start)
    return Period(before_start, start, before_start.astimezone(zone).isoformat(timespec="minutes"))


def hosted_usd_per_mtok(
    input_usd_per_mtok: float, output_usd_per_mtok: float, prompt_tokens: float, generated_tokens: float
) -> float | None:
    """What a provider would ask for a million tokens of that mix; None without any."""
    tokens = prompt_tokens + generated_tokens
    paid = input_usd_per_mtok * prompt_tokens + output_usd_per_mtok * generated_tokens
    return paid / tokens if tokens else None


def break_even_tokens_per_hour(
    usd_per_hour: Figure, hosted: float | None, marginal_usd_per_mtok: float = 0.0
) -> Figure:
    """The load from which on own GPUs cost less per token than a hosted model.

    usd_per_hour: what they cost whatever they do; marginal_usd_per_mtok: what each million tokens adds (electricity);
    hosted: what the provider asks for a million tokens of the same mix.
    At the load L: usd_per_hour + marginal x L = hosted x L.
    """
    unit = "tokens/h"
    if usd_per_hour.value is None:
        return missing(unit, usd_per_hour.method, str(usd_per_hour.reason))
    if hosted is None:
        return missing(unit, usd_per_hour.method, "no tokens, so no mix to price")
    if hosted <= marginal_usd_per_mtok:
        return missing(unit, usd_per_hour.method, "hosted tokens cost less than the electricity of own ones")
    mtok_per_hour = usd_per_hour.value / (hosted - marginal_usd_per_mtok)
    return Figure(mtok_per_hour * units.TOKENS_PER_MTOK, unit, weakest((usd_per_hour.method, "estimated")))


@dataclass(frozen=True)
class Purchase:
    """A GPU as it is bought, in US dollars; tariff_usd_per_kwh is of site energy."""

    purchase_usd: float
    residual_usd: float
    life_years: float
    fixed_usd_per_hour: float
    tariff_usd_per_kwh: float

    @property
    def usd_per_month(self) -> float:
        """What it costs in a month without running."""
        depreciation = (self.purchase_usd - self.residual_usd) / (self.life_years * 12)
        return depreciation + self.fixed_usd_per_hour * HOURS_PER_MONTH

    def electricity_usd_per_hour(self, site_power_w: float) -> float:
        return units.kw(site_power_w) * self.tariff_usd_per_kwh


def owning_hours_per_month(purchase: Purchase, rent_usd_per_hour: float, site_power_w: float) -> Figure:
    """The running hours in a month from which on owning a GPU costs less than renting one for just these hours."""
    saved_per_hour = rent_usd_per_hour - purchase.electricity_usd_per_hour(site_power_w)
    if saved_per_hour <= 0:
        return missing("h/month", "estimated", "renting costs less than the electricity of an own GPU")
    hours = purchase.usd_per_month / saved_per_hour
    if hours > HOURS_PER_MONTH:
        return missing("h/month", "estimated", f"never: it would take {hours:.0f} hours, and a month has 730")
    return Figure(hours, "h/month", "estimated")


def owning_months(purchase: Purchase, rent_usd_per_hour: float, site_power_w: float, hours_per_month: float) -> Figure:
    """Months of that use after which a bought GPU has cost less than renting, what it still fetches left out."""
    saved_per_hour = rent_usd_per_hour - purchase.electricity_usd_per_hour(site_power_w)
    saved = saved_per_hour * hours_per_month - purchase.fixed_usd_per_hour * HOURS_PER_MONTH
    if saved <= 0:
        return missing("months", "estimated", "never: renting costs less in each month of this use")
    return Figure(purchase.purchase_usd / saved, "months", "estimated")


@dataclass(frozen=True)
class LoadMoment:
    """What one replica made and drew over `seconds`."""

    tokens_per_s: float
    power_w: float
    seconds: float


@dataclass(frozen=True)
class LoadPoint:
    """Mean load and power of the moments whose load lies in one bin; seconds: how long those were."""

    tokens_per_s: float
    power_w: float
    seconds: float

    @property
    def tokens_per_joule(self) -> float | None:
        return self.tokens_per_s / self.power_w if self.power_w else None


def power_against_load(moments: Iterable[LoadMoment], bins: int = 20) -> list[LoadPoint]:
    """Power of a replica type by its load, in ascending order: idle moments apart, the rest in equally wide bins."""
    known = [moment for moment in moments if moment.seconds > 0]
    top = max((moment.tokens_per_s for moment in known), default=0.0)
    gathered: dict[int, list[LoadMoment]] = {}
    for moment in known:
        place = 0 if moment.tokens_per_s <= 0 else min(int(moment.tokens_per_s / top * bins), bins - 1) + 1
        gathered.setdefault(place, []).append(moment)
    return [_mean(gathered[place]) for place in sorted(gathered)]


def _mean(moments: list[LoadMoment]) -> LoadPoint:
    seconds = sum(moment.seconds for moment in moments)
    return LoadPoint(
        sum(moment.tokens_per_s * moment.seconds for moment in moments) / seconds,
        sum(moment.power_w * moment.seconds for moment in moments) / seconds,
        seconds,
    )


def against(now: Figure, before: Figure) -> Figure:
    """Relative change, e.g. 0.1 for a tenth more than before; of a share in percentage points."""
    method: Method = weakest((now.method, before.method))
    is_share = now.unit == "share"
    if now.value is None or before.value is None:
        unit = "points" if is_share else "share"
        return missing(unit, method, str(now.reason or f"before: {before.reason}"))
    if is_share:
        return Figure(100 * (now.value - before.value), "points", method)
    if before.value == 0:
        return missing("share", method, "it was 0 before")
    return Figure(now.value / before.value - 1, "share", method)
