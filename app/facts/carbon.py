"""Facts of carbon: what a supplier's kWh emits, and what making a fleet's cards did."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from app.accounting.carbon import (
    COMPARABLE_METHOD,
    EMBODIED_LIFE_YEARS,
    EmbodiedMethod,
    EmbodiedPolicy,
    Spread,
)
from app.facts.fields import Positive
from app.validation import GramsPerKwh, Number, Strict

EmbodiedKg = Annotated[Number, Field(ge=0, le=1e6)]


class MarketFactor(Strict):
    """What the supplier of a fleet's electricity discloses; the fact's source says where."""

    g_per_kwh: GramsPerKwh


def check_kilograms(low: float | None, central: float | None, high: float | None) -> None:
    """Raises ValueError when a range has no figure within it, or does not hold it."""
    if central is None and (low is not None or high is not None):
        raise ValueError("kg_per_gpu beside kg_low and kg_high")
    if central is not None and not (central if low is None else low) <= central <= (central if high is None else high):
        raise ValueError("kg_low <= kg_per_gpu <= kg_high")


class Embodied(Strict):
    """Carbon of making a fleet's cards. kg_*: of one GPU with its share of the board; the tables' figures without them.

    method: whose figures; policy `sunk`: the cards were made anyway and count 0.
    """

    method: EmbodiedMethod = COMPARABLE_METHOD
    policy: EmbodiedPolicy = "full"
    life_years: Positive = EMBODIED_LIFE_YEARS
    kg_low: EmbodiedKg | None = None
    kg_high: EmbodiedKg | None = None
    kg_per_gpu: EmbodiedKg | None = None

    @property
    def kg(self) -> Spread | None:
        if self.kg_per_gpu is None:
            return None
        low = self.kg_per_gpu if self.kg_low is None else self.kg_low
        return Spread(low, self.kg_per_gpu, self.kg_per_gpu if self.kg_high is None else self.kg_high)

    @model_validator(mode="after")
    def _figures_agree(self) -> Embodied:
        if self.method == "user" and self.kg_per_gpu is None:
            raise ValueError("kg_per_gpu beside method user")
        check_kilograms(self.kg_low, self.kg_per_gpu, self.kg_high)
        return self
