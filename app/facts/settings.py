"""What wattmix.toml says of prices, tariffs, exchange rates, hosted prices and SLOs, and the facts that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from app.facts import kinds
from app.facts.book import FactBook
from app.facts.fact import Fact
from app.facts.fields import FIRST_MOMENT, Currency, Moment, Money, PerKwh, Positive, TimeZone, Words
from app.facts.kinds import MAX_RULES, USD, FactValue, Kind, TariffHours, check_service, check_subject
from app.validation import Number, Strict

SOURCE = "wattmix.toml"


@dataclass(frozen=True)
class Wanted:
    """A fact that the settings want in force. valid_from None: since ever, or since it was first seen as a change."""

    kind: Kind
    subject: str
    value: FactValue
    valid_from: datetime | None = None
    source: str = SOURCE


def _not_too_many(rules: tuple[TariffHours, ...]) -> tuple[TariffHours, ...]:
    if len(rules) > MAX_RULES:
        raise ValueError(f"at most {MAX_RULES} rules")
    return rules


class TariffSettings(Strict):
    """A price of electricity: a number, or a table with hours of another price."""

    per_kwh: PerKwh
    tz: TimeZone = "UTC"
    rules: Annotated[tuple[TariffHours, ...], AfterValidator(_not_too_many)] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, given: Any) -> Any:
        if isinstance(given, int | float):
            return {"per_kwh": given}
        if not isinstance(given, dict | TariffSettings):
            raise ValueError("a price per kWh, or a table with per_kwh, tz and rules")
        return given

    def plan(self, currency: str) -> kinds.TariffPlan:
        if self.rules:
            return kinds.TimeOfUseTariff(currency=currency, tz=self.tz, per_kwh=self.per_kwh, rules=self.rules)
        return kinds.FlatTariff(currency=currency, per_kwh=self.per_kwh)


# Keys that say their currency, and those that leave it to `currency`.
_IN_USD = {
    "usd_per_gpu_hour": "per_gpu_hour",
    "purchase_usd": "purchase",
    "residual_usd": "residual",
    "fixed_usd_per_hour": "fixed_per_hour",
    "tariff_usd_per_kwh": "tariff",
}


def _or_in_usd(name: str) -> AliasChoices:
    return AliasChoices(name, *(in_usd for in_usd, neutral in _IN_USD.items() if neutral == name))


class _Priced(Strict):
    currency: Currency = USD
    valid_from: Moment | None = None

    @model_validator(mode="before")
    @classmethod
    def _usd_in_a_name_is_usd(cls, given: Any) -> Any:
        named = [key for key in given if key in _IN_USD] if isinstance(given, dict) else []
        if named and given.get("currency", USD) != USD:
            neutral = ", ".join(_IN_USD[key] for key in named)
            raise ValueError(f"{neutral} beside another currency; {', '.join(named)} would be in USD")
        return given


class RentedPrice(_Priced):
    """Pay by the hour, electricity included. billing_increment_s: a provisioned stretch is rounded up to it."""

    plan: Literal["rented"]
    per_gpu_hour: Annotated[Money, Field(validation_alias=_or_in_usd("per_gpu_hour"))]
    billing_increment_s: Annotated[Number, Field(ge=0, le=2_678_400)] = 0.0

    def facts(self, fleet: str) -> Iterator[Wanted]:
        given = self.model_dump(exclude={"valid_from"})
        yield Wanted("price", fleet, kinds.RentedPrice(**given), self.valid_from)


class OwnedPrice(_Priced):
    """Bought: depreciation and fixed cost from in_service to retired, and electricity on top."""

    plan: Literal["owned"]
    purchase: Annotated[Money, Field(validation_alias=_or_in_usd("purchase"))]
    residual: Annotated[Money, Field(validation_alias=_or_in_usd("residual"))] = 0.0
    life_years: Positive
    fixed_per_hour: Annotated[Money, Field(validation_alias=_or_in_usd("fixed_per_hour"))] = 0.0
    tariff: Annotated[TariffSettings, Field(validation_alias=_or_in_usd("tariff"))]
    in_service: Moment | None = None
    retired: Moment | None = None

    @property
    def fact_value(self) -> kinds.OwnedPrice:
        return kinds.OwnedPrice(**self.model_dump(exclude={"valid_from", "tariff"}))

    def facts(self, fleet: str) -> Iterator[Wanted]:
        yield Wanted("price", fleet, self.fact_value, self.valid_from)
        yield Wanted("tariff", fleet, self.tariff.plan(self.currency), self.valid_from)

    @model_validator(mode="after")
    def _dates_in_order(self) -> OwnedPrice:
        check_service(self.in_service, self.retired)
        return self


Price = Annotated[RentedPrice | OwnedPrice, Field(discriminator="plan")]


def _foreign_currency(code: str) -> str:
    if said := check_subject("exchange_rate", code):
        raise ValueError(said)
    return code


def _hosted_model(name: str) -> str:
    if said := check_subject("hosted_price", name):
        raise ValueError(said)
    return name


class ExchangeRateSettings(Strict):
    """US dollars for one unit of a currency."""

    currency: Annotated[str, AfterValidator(_foreign_currency)]
    usd_per_unit: Positive
    valid_from: Moment | None = None
    source: Words | None = None

    def fact(self) -> Wanted:
        value = kinds.ExchangeRate(usd_per_unit=self.usd_per_unit)
        return Wanted("exchange_rate", self.currency, value, self.valid_from, source_of(self.source))


class HostedPriceSettings(Strict):
    """What a provider asks per million tokens of a model, to compare with."""

    model: Annotated[Words, AfterValidator(_hosted_model)]
    input_usd_per_mtok: Money
    output_usd_per_mtok: Money
    valid_from: Moment | None = None
    source: Words | None = None

    def fact(self) -> Wanted:
        given = self.model_dump(include={"input_usd_per_mtok", "output_usd_per_mtok"})
        return Wanted("hosted_price", self.model, kinds.HostedPrice(**given), self.valid_from, source_of(self.source))


class SloSettings(kinds.LatencySlo):
    """What a model's latencies should be, and from when on that counts."""

    model: Words
    valid_from: Moment | None = None

    def fact(self) -> Wanted:
        value = kinds.LatencySlo(metric=self.metric, percentile=self.percentile, max_ms=self.max_ms)
        return Wanted("slo", self.model, value, self.valid_from)


def is_of_settings(fact: Fact) -> bool:
    """Whether wattmix.toml has said it."""
    return fact.source == SOURCE or fact.source.startswith(f"{SOURCE}: ")


def changes(facts: Iterable[Fact], wanted: Sequence[Wanted], now: datetime) -> list[Fact]:
    """The facts that make the settings' word hold, where it differs from the last that they said themselves.

    facts: all that is known. What others say is left alone, so that a fact from elsewhere is not fought at every start.
    The first word on a subject is valid since 1970, so that the past has a price; a change from now on, or from its own
    valid_from; what is no longer in the settings ends now, if it is still in force. Settings that want nothing end
    nothing. Memberships are not among them: they are of nodes, which the settings name by patterns only.
    """
    if not wanted:
        return []
    book = FactBook(facts)
    words = _words(book)
    news: list[Fact] = []
    for one in wanted:
        earlier = words.pop((one.kind, one.subject), [])
        if not earlier or _differs(earlier[-1], one):
            valid_from = one.valid_from or (now if earlier else FIRST_MOMENT)
            fact = Fact(one.kind, one.subject, valid_from, now, one.source, one.value)
            news += [fact, *_again(earlier, fact)]
    for (kind, subject), earlier in words.items():
        in_force = book.own(kind, subject, now)
        if earlier[-1].value is not None and (in_force is None or is_of_settings(in_force)):
            fact = Fact(kind, subject, now, now, SOURCE, None)
            news += [fact, *_again(earlier, fact)]
    return news


def _words(book: FactBook) -> dict[tuple[Kind, str], list[Fact]]:
    """What the settings said of each subject, the last word last."""
    words: dict[tuple[Kind, str], list[Fact]] = {}
    for fact in sorted(book.facts, key=lambda one: (one.known_at, *one.order)):
        if is_of_settings(fact) and fact.kind != "membership":
            words.setdefault((fact.kind, fact.subject), []).append(fact)
    return words


def _differs(said: Fact, wanted: Wanted) -> bool:
    if said.value != wanted.value or said.source != wanted.source:
        return True
    return wanted.valid_from is not None and wanted.valid_from != said.valid_from


def _again(earlier: Iterable[Fact], fact: Fact) -> list[Fact]:
    """The same fact for each later moment of which the settings once said otherwise: it holds from then on, too."""
    later = {one.valid_from: one for one in earlier if one.valid_from > fact.valid_from}
    return [replace(fact, valid_from=moment) for moment, one in later.items() if one.value != fact.value]


def source_of(words: str | None) -> str:
    """The source of a fact that the settings say, with their own words for it."""
    return f"{SOURCE}: {words}" if words else SOURCE
