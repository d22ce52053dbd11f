"""Question: which replicas should run in which of the next hours, and when should work that may wait be done?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app import units
from app.answers.load_curve import LoadCurve, load_curves
from app.answers.split import mix_as_json
from app.config import Config
from app.errors import DemandError
from app.split.demand import Demand, FleetOffer
from app.split.options import Option
from app.split.plan import Course, HourPlan, plan
from app.split.timeline import MOST_HOURS, PlanHour
from app.store.database import Store
from app.store.grid import hourly_factors
from app.store.moment import moment
from app.store.reader import Reader
from collectors.grid.registry import PROVIDERS

HOURS, MIN_UP_HOURS = 24, 2
GAP, TIME_LIMIT_S = 0.01, 10.0
# How the source of grams ends that a user gave: no forecast changes them.
IN_EVERY_HOUR = "in every hour"
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class FleetGrid:
    """hours: start -> g/kWh as it is told for it. source: who tells, or why nobody is asked."""

    zone: str | None
    hours: Mapping[datetime, float]
    source: str

    def as_json(self) -> dict[str, Any]:
        return {"zone": self.zone, "hours_told": len(self.hours), "source": self.source}


def split_plan(
    store: Store, config: Config, demand: Demand, options: Sequence[Option], now: datetime, hours: int = HOURS
) -> dict[str, Any]:
    """{status, reason, gap, bound_usd, totals, static, saving, hours: [...], load: {class: ...}, grid: {fleet: ...},
    assumptions}. Hours begin with the first full one after `now`.

    requests_per_s counts as that of a class's busiest hour of the week. static: the split of the busiest hours, held
    all the time; saving: what the plan spares against it. An hour: {start, load, g_per_kwh, started, stopped,
    switch_usd, deferred_tokens, split}. Raises DemandError for a number of hours that is not planned.
    """
    if not 1 <= hours <= MOST_HOURS:
        raise DemandError(f"`hours`: given {hours}; accepted: 1 to {MOST_HOURS}")
    first = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + _HOUR
    starts = [first + number * _HOUR for number in range(hours)]
    with moment(store) as held:
        of_models = load_curves(held, sorted({one.model for one in demand.classes}), now)
        grids = {offer.name: _grid(held, config, offer, starts) for offer in demand.fleets}
    curves = {one.name: of_models[one.model] for one in demand.classes}
    slots = [_slot(start, curves, grids) for start in starts]
    found = plan(demand, options, slots, min_up_hours=MIN_UP_HOURS, gap=GAP, time_limit_s=TIME_LIMIT_S)
    own = {option.fleet.name: option.fleet.g_per_kwh for option in options}
    return {
        "status": found.status,
        "reason": found.reason,
        "gap": found.gap,
        "bound_usd": found.bound_usd,
        "totals": None if found.course is None else _totals(found.course),
        "static": _static(found.static, found.static_reason),
        "saving": _saving(found.course, found.static),
        "hours": [
            _hour(hour, slot, own) for hour, slot in zip(found.course.hours, slots, strict=True)
        ] if found.course else [],
        "load": {name: curve.as_json() for name, curve in curves.items()},
        "grid": {name: known.as_json() for name, known in grids.items()},
        "assumptions": {
            "min_up_hours": MIN_UP_HOURS,
            "gap": GAP,
            "time_limit_s": TIME_LIMIT_S,
            "requests_per_s": "of the busiest hour of the week",
            "deferrable": [one.name for one in demand.classes if one.deferrable],
        },
    }  # fmt: skip


def _slot(start: datetime, curves: Mapping[str, LoadCurve], grids: Mapping[str, FleetGrid]) -> PlanHour:
    return PlanHour(
        start=start,
        load={name: curve.at(start) for name, curve in curves.items()},
        g_per_kwh={name: known.hours.get(start) for name, known in grids.items()},
    )


def _grid(reader: Reader, config: Config, offer: FleetOffer, starts: Sequence[datetime]) -> FleetGrid:
    """What a user says of a fleet's grams counts in all hours; what a provider said of now yields to its forecast."""
    if offer.zone is None:
        return FleetGrid(None, {}, "no zone is set")
    zone = config.grid_factor(offer.zone).zone
    if offer.g_per_kwh is not None and not _is_told(offer):
        return FleetGrid(zone, {}, f"{offer.g_per_kwh:g} g/kWh ({offer.g_source or 'user'}) {IN_EVERY_HOUR}")
    start_us, end_us = units.us_of_moment(starts[0]), units.us_of_moment(starts[-1] + _HOUR)
    rows = hourly_factors(reader, [zone], start_us, end_us, None, providers=config.grid_providers())
    told = {units.moment_of_us(row["hour_us"]): float(row["g_per_kwh"]) for row in rows.iter_rows(named=True)}
    names = sorted({_title(name) for name in rows["provider"]}) if told else []
    rest = "the same value" if offer.g_per_kwh is not None else "the yearly value"
    if len(told) < len(starts):
        names.append(f"{rest} in {len(starts) - len(told)} of {len(starts)} hours")
    return FleetGrid(zone, told, " + ".join(names))


def _title(provider: str) -> str:
    return PROVIDERS[provider].title if provider in PROVIDERS else provider


def _is_told(offer: FleetOffer) -> bool:
    """Whether its grams are a provider's of now, as today's demand has them."""
    return any((offer.g_source or "").startswith(f"{one.title}, ") for one in PROVIDERS.values())


def _totals(course: Course) -> dict[str, Any]:
    """tokens: served in all hours."""
    tokens = sum(units.per_hour(hour.answer.tokens_per_s) for hour in course.hours)
    return {
        "usd": course.usd,
        "usd_per_mtok": course.usd / units.mtok(tokens) if tokens else None,
        "switch_usd": course.switch_usd,
        "objective_usd": course.objective_usd,
        "g": course.g,
        "embodied_g": course.embodied_g,
        "tokens": tokens,
    }


def _static(course: Course | None, reason: str | None) -> dict[str, Any]:
    if course is None:
        return {"reason": reason, "totals": None, "split": None}
    return {"reason": None, "totals": _totals(course), "split": mix_as_json(course.hours[0].answer)}


def _saving(course: Course | None, static: Course | None) -> dict[str, Any] | None:
    if course is None or static is None:
        return None
    known = course.g is not None and static.g is not None
    return {
        "usd": static.usd - course.usd,
        "objective_usd": static.objective_usd - course.objective_usd,
        "g": (static.g or 0.0) - (course.g or 0.0) if known else None,
    }


def _hour(hour: HourPlan, slot: PlanHour, own: Mapping[str, float | None]) -> dict[str, Any]:
    return {
        "start": hour.start.isoformat(),
        "load": dict(slot.load),
        "g_per_kwh": {name: own.get(name) if value is None else value for name, value in slot.g_per_kwh.items()},
        "started": hour.started,
        "stopped": hour.stopped,
        "switch_usd": hour.switch_usd,
        "deferred_tokens": hour.deferred_tokens,
        "split": mix_as_json(hour.answer),
    }
