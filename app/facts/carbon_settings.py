"""What wattmix.toml says of a fleet's supplier factor and of making its cards, and the facts that it makes."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, Field, model_validator

from app.accounting.carbon import EMBODIED_LIFE_YEARS, EmbodiedMethod, EmbodiedPolicy
from app.facts.carbon import Embodied, EmbodiedKg, MarketFactor, check_kilograms
from app.facts.fields import Moment, Positive, Words
from app.facts.settings import Wanted, source_of
from app.validation import GramsPerKwh, Strict


class MarketFactorSettings(Strict):
    """What the supplier of a fleet's electricity discloses, and from when on that counts."""

    g_per_kwh: GramsPerKwh
    source: Words
    valid_from: Moment | None = None

    def fact(self, fleet: str) -> Wanted:
        value = MarketFactor(g_per_kwh=self.g_per_kwh)
        return Wanted("market_factor", fleet, value, self.valid_from, source_of(self.source))


class EmbodiedSettings(Strict):
    """Carbon of making a fleet's cards. method None: that of [defaults]."""

    method: EmbodiedMethod | None = None
    policy: EmbodiedPolicy = "full"
    kg_per_gpu: EmbodiedKg | None = None
    kg_low: EmbodiedKg | None = None
    kg_high: EmbodiedKg | None = None
    life_years: Annotated[Positive, Field(validation_alias=AliasChoices("life_years", "lifetime_years"))] = (
        EMBODIED_LIFE_YEARS
    )
    valid_from: Moment | None = None
    source: Words | None = None

    def fact(self, fleet: str, default: EmbodiedMethod) -> Wanted:
        given = self.model_dump(exclude={"method", "valid_from", "source"})
        value = Embodied(method=self.method or default, **given)
        return Wanted("embodied", fleet, value, self.valid_from, source_of(self.source))

    @model_validator(mode="after")
    def _figures_agree(self) -> EmbodiedSettings:
        if self.method == "user" and self.kg_per_gpu is None:
            raise ValueError('kg_per_gpu beside method = "user"')
        check_kilograms(self.kg_low, self.kg_per_gpu, self.kg_high)
        return self
