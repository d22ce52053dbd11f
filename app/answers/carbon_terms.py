"""What making a card emitted and what its fleet's supplier discloses, by the facts in force at a moment."""

from __future__ import annotations

from datetime import datetime

from app.accounting.carbon import EmbodiedCarbon, MarketFactor
from app.config import Config
from app.facts import carbon
from app.facts.book import FactBook
from app.reference.embodied import embodied_kg


def fleet_market(book: FactBook, fleet: str | None, moment: datetime) -> MarketFactor | None:
    """The supplier's factor; None where there is none."""
    fact = book.at("market_factor", fleet, moment)
    if fact is None or not isinstance(fact.value, carbon.MarketFactor):
        return None
    return MarketFactor(fact.value.g_per_kwh, fact.source)


def fleet_embodied(book: FactBook, config: Config, fleet: str | None, card: str, moment: datetime) -> EmbodiedCarbon:
    """By the fleet's own fact, else that of all fleets, else the settings; without kilograms by the shipped table."""
    value = book.value("embodied", fleet, moment)
    said = value if isinstance(value, carbon.Embodied) else carbon.Embodied(method=config.defaults.embodied_method)
    if said.kg is not None or said.policy == "sunk":
        return EmbodiedCarbon(said.kg, said.method, "user", said.life_years, said.policy)
    found = embodied_kg(card, said.method)
    if isinstance(found, str):
        return EmbodiedCarbon(None, said.method, "default", said.life_years, reason=found)
    return EmbodiedCarbon(found, said.method, "default", said.life_years)
