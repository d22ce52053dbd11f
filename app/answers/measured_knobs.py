"""Question: where are the what-if knobs of the split now, as far as something measures them or sets them by fact?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.answers.grid import grid_now
from app.answers.offers import OF_DEMAND
from app.answers.query import AccountQuery
from app.answers.split_today import served_rates
from app.config import Config
from app.split.demand import Demand
from app.store.database import Store
from app.store.moment import moment

_LOOKED_AT = timedelta(hours=24)


@dataclass(frozen=True)
class Measured:
    """source: where the value is from, in words."""

    value: float
    source: str


def measured_knobs(store: Store, config: Config, demand: Demand, now: datetime) -> dict[str, Measured]:
    """By the knob's name: requests/s of the busiest hour of the last day, prices in force, grids now. A knob of which
    nothing is known but what the demand says is left out."""
    return {
        **dict(_rates(store, config, demand, now)),
        **dict(_prices(demand)),
        **dict(_grids(store, config, demand, now)),
    }


def _rates(store: Store, config: Config, demand: Demand, now: datetime) -> Iterator[tuple[str, Measured]]:
    end = now.replace(second=0, microsecond=0)
    query = AccountQuery(start=end - _LOOKED_AT, end=end)
    rates, began = served_rates(store, config, query, now, demand)
    for knob, value in rates.items():
        hour = f"busiest hour of the last 24, from {began.astimezone(UTC):%b %d %H:%M} UTC"
        yield knob, Measured(_as_shown(value), f"measured: {hour}")


def _prices(demand: Demand) -> Iterator[tuple[str, Measured]]:
    for fleet in demand.fleets:
        source = fleet.price_source or OF_DEMAND
        if fleet.usd_per_gpu_hour is not None and not source.startswith(OF_DEMAND):
            yield f"usd.{fleet.name}", Measured(fleet.usd_per_gpu_hour, f"price in force: {source}")


def _grids(store: Store, config: Config, demand: Demand, now: datetime) -> Iterator[tuple[str, Measured]]:
    """Of fleets whose zone has a live or a lately cached value; the yearly table measures nothing of today."""
    fleets = [fleet for fleet in demand.fleets if fleet.g_per_kwh is None and fleet.zone is not None]
    factors = {fleet.zone: config.grid_factor(fleet.zone) for fleet in fleets if fleet.zone is not None}
    with moment(store) as reader:
        current = {one["zone"]: one["current"] for one in grid_now(reader, config, factors.values(), now, None)}
    for fleet in fleets:
        found = current[factors[str(fleet.zone)].zone]
        if found["from"] != "table" and found["g_per_kwh"] is not None:
            title = f"{found['from']}, {found['title']}"
            yield f"g.{fleet.name}", Measured(_as_shown(found["g_per_kwh"]), f"grid of {fleet.zone} now: {title}")


def _as_shown(value: float) -> float:
    """To the five digits that a slider shows, so that what is shown is what is asked, and a link to it is short."""
    return float(f"{value:.5g}")
