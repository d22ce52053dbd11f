"""Values of facts in words, as pages and commands show them."""

from __future__ import annotations

from app.facts.carbon import Embodied, MarketFactor
from app.facts.cells import write_rules
from app.facts.kinds import (
    ExchangeRate,
    FactValue,
    FlatTariff,
    HostedPrice,
    LatencySlo,
    Membership,
    OwnedPrice,
    Pue,
    RentedPrice,
    TariffHour,
    TimeOfUseTariff,
    ZoneFact,
    value_content,
)

ENDED = "ended"


def in_words(value: FactValue | None) -> str:
    """E.g. "rented, 2 USD per GPU-hour"."""
    match value:
        case None:
            return ENDED
        case RentedPrice() | OwnedPrice():
            return _price(value)
        case FlatTariff() | TariffHour():
            return f"{value.per_kwh:g} {value.currency}/kWh"
        case TimeOfUseTariff():
            rules = write_rules(value_content(value)["rules"])
            return f"{value.per_kwh:g} {value.currency}/kWh, and by the clock of {value.tz}: {rules}"
        case Pue():
            return f"PUE {value.pue:g}"
        case ZoneFact():
            return f"zone {value.zone}"
        case _:
            return _other(value)


def _price(price: RentedPrice | OwnedPrice) -> str:
    hourly = f"{price.per_gpu_hour:.6g} {price.currency} per GPU-hour"
    if isinstance(price, RentedPrice):
        increment = price.billing_increment_s
        return f"rented, {hourly}" + (f", billed by {increment:g} s" if increment else "")
    dates = ((price.in_service, "in service from"), (price.retired, "retired"))
    said = "".join(f", {what} {when:%Y-%m-%d}" for when, what in dates if when)
    return f"owned, {hourly} and electricity{said}"


def _embodied(embodied: Embodied) -> str:
    if embodied.policy == "sunk":
        return "sunk: the cards were made anyway and count 0"
    kg = embodied.kg
    spread = "" if kg is None or kg.low == kg.high else f" ({kg.low:g} to {kg.high:g})"
    figure = "the tables' figure of the card" if kg is None else f"{kg.central:g} kg per GPU{spread}"
    return f"{embodied.method}, {figure}, over {embodied.life_years:g} years"


def _other(value: MarketFactor | Embodied | Membership | ExchangeRate | HostedPrice | LatencySlo) -> str:
    match value:
        case MarketFactor():
            return f"supplier's {value.g_per_kwh:g} g/kWh"
        case Embodied():
            return _embodied(value)
        case Membership():
            return f"in fleet {value.fleet}"
        case ExchangeRate():
            return f"{value.usd_per_unit:g} USD for one"
        case HostedPrice():
            return f"{value.input_usd_per_mtok:g} USD/Mtok in, {value.output_usd_per_mtok:g} USD/Mtok out"
        case LatencySlo():
            return f"p{value.percentile:g} {value.metric.upper()} <= {value.max_ms:g} ms"
