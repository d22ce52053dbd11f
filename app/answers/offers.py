"""Question: at what price is each fleet of a demand on offer, and what did making its cards emit?"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.accounting.cost import Rate
from app.answers.carbon_terms import fleet_embodied
from app.answers.card_prices import card_price
from app.answers.terms import planned_rate
from app.config import Config
from app.errors import DemandError
from app.facts.book import FactBook
from app.price_settings import PriceSettings
from app.split.demand import Demand, FleetOffer

OF_DEMAND = "the demand"


def at_prices_in_force(demand: Demand, book: FactBook, settings: PriceSettings, now: datetime) -> Demand:
    """The configured demand: the price in force of a fleet of that name wins over the one that the demand says.

    Raises DemandError where there is none at all.
    """
    return _repriced(demand, book, settings, now, keep_said=False)


def with_all_prices(demand: Demand, book: FactBook, settings: PriceSettings, now: datetime) -> Demand:
    """A demand that somebody asks for: what it says stands, and a fleet without a price has the one in force.

    Raises DemandError where there is none at all.
    """
    return _repriced(demand, book, settings, now, keep_said=True)


def with_embodied(demand: Demand, book: FactBook, config: Config, now: datetime) -> Demand:
    """Where a demand leaves out a fleet's embodied grams, those in force, else of its card by the shipped table."""
    return demand.model_copy(
        update={"fleets": tuple(_with_embodied(offer, book, config, now) for offer in demand.fleets)}
    )


def _with_embodied(offer: FleetOffer, book: FactBook, config: Config, now: datetime) -> FleetOffer:
    if offer.embodied_g_per_gpu_hour is not None or offer.embodied_policy == "sunk":
        return offer
    found = fleet_embodied(book, config, offer.name, offer.gpu, now)
    if found.g_per_gpu_hour is None:
        return offer
    return offer.model_copy(
        update={
            "embodied_g_per_gpu_hour": found.g_per_gpu_hour.central,
            "embodied_policy": found.policy,
            "embodied_source": found.label,
        }
    )


def prices_as_json(demand: Demand) -> dict[str, dict[str, Any]]:
    """Each fleet's price with its source."""
    return {
        offer.name: {
            "usd_per_gpu_hour": offer.usd_per_gpu_hour,
            "usd_per_kwh": offer.usd_per_kwh or None,
            "source": offer.price_source or OF_DEMAND,
        }
        for offer in demand.fleets
    }


def _repriced(demand: Demand, book: FactBook, settings: PriceSettings, now: datetime, *, keep_said: bool) -> Demand:
    fleets = tuple(
        offer if keep_said and offer.usd_per_gpu_hour is not None else _priced(offer, book, settings, now)
        for offer in demand.fleets
    )
    return demand.model_copy(update={"fleets": fleets})


def _priced(offer: FleetOffer, book: FactBook, settings: PriceSettings, now: datetime) -> FleetOffer:
    rate = planned_rate(book, offer.name, now)
    reason = rate and _why_not(rate)
    if rate is not None and reason is None:
        return _at(offer, rate, rate.source)
    if offer.usd_per_gpu_hour is not None:
        said = f"{offer.price_source or OF_DEMAND}; not the price of fleet {offer.name}: {reason}"
        return offer if reason is None else offer.model_copy(update={"price_source": said})
    asked = card_price(book, settings, offer.gpu, now)
    reason = reason or asked.reason
    if reason is not None:
        raise DemandError(f"fleet {offer.name}: {reason}; accepted: `usd_per_gpu_hour`, or a price of that fleet")
    return _at(offer, asked, asked.source)


def _why_not(rate: Rate) -> str | None:
    """Why nothing can be planned at this rate."""
    if rate.usd_per_gpu_hour is None:
        return rate.reason
    return "its electricity costs less than nothing" if (rate.tariff_usd_per_kwh or 0.0) < 0 else None


def _at(offer: FleetOffer, rate: Rate, source: str) -> FleetOffer:
    return offer.model_copy(
        update={
            "usd_per_gpu_hour": rate.usd_per_gpu_hour,
            "usd_per_kwh": rate.tariff_usd_per_kwh or 0.0,
            "price_source": source,
        }
    )
