"""`[prices]` of wattmix.toml: how old a price may be, and which markets are asked."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from app.validation import BaseUrl, Number, Strict, Whole, known_in
from collectors.http.client import Http
from collectors.price.point import Market
from collectors.price.provider import PriceProvider
from collectors.price.registry import PROVIDERS

DEFAULT_MAX_AGE_DAYS = 365
DEFAULT_POLL_S = 21_600.0
# A price that stays as it is, is written down again after so long, so that it does not grow old.
_CONFIRMED_AFTER = timedelta(days=7)


class PriceSource(Strict):
    """One market of one provider of collectors.price; markets are never mixed."""

    provider: Annotated[str, known_in(PROVIDERS)]
    market: Market
    base_url: BaseUrl | None = None
    poll_s: Annotated[Number, Field(ge=3_600, le=86_400)] = DEFAULT_POLL_S

    @model_validator(mode="after")
    def _has_the_market(self) -> PriceSource:
        markets = PROVIDERS[self.provider].markets
        if self.market not in markets:
            raise ValueError(f"a market that {self.provider} has: {', '.join(markets)}")
        return self

    @property
    def key(self) -> tuple[str, str]:
        return self.provider, self.market

    def make(self, http: Http) -> PriceProvider:
        return PROVIDERS[self.provider].make(http, self.base_url)


def _markets_that_differ(sources: tuple[PriceSource, ...]) -> tuple[PriceSource, ...]:
    keys = [source.key for source in sources]
    doubled = {f"{provider} {market}" for provider, market in keys if keys.count((provider, market)) > 1}
    if doubled:
        raise ValueError(f"markets that differ ({', '.join(sorted(doubled))} appears twice)")
    return sources


class PriceSettings(Strict):
    """max_age_days: a price older than that at the moment asked is not used. source: the one that counts
    first first.
    """

    max_age_days: Annotated[Whole, Field(ge=1, le=36_600)] = DEFAULT_MAX_AGE_DAYS
    source: Annotated[tuple[PriceSource, ...], AfterValidator(_markets_that_differ)] = ()

    @property
    def confirmed_after(self) -> timedelta:
        return min(_CONFIRMED_AFTER, timedelta(days=self.max_age_days) / 2)

    def rank(self, key: tuple[str, str]) -> int:
        """The place of a provider and market among the sources; those that are none come last."""
        keys = [source.key for source in self.source]
        return keys.index(key) if key in keys else len(keys)
