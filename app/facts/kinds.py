"""The kinds of facts and the form of their values; every validator's message says what is accepted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, TypeAdapter, model_validator

from app.accounting.plans import MINUTES_PER_DAY, Tariff, TariffRule, owned_rate_per_hour
from app.facts.carbon import Embodied, MarketFactor
from app.facts.fields import (
    FIRST_MOMENT,
    Clock,
    Currency,
    Days,
    Moment,
    Money,
    PerKwh,
    Positive,
    TimeZone,
    Words,
    minute_of_day,
    weekdays,
)
from app.validation import Number, Strict
from app.validation import Pue as PueNumber
from collectors.samples import LatencyMetric

Kind = Literal[
    "membership", "price", "tariff", "tariff_hour", "pue", "zone", "market_factor", "embodied", "exchange_rate",
    "hosted_price", "slo",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
# What a fleet has one of at any moment.
FLEET_KINDS: tuple[Kind, ...] = ("price", "tariff", "pue", "zone", "market_factor", "embodied")
# The subject that speaks for every fleet without a fact of its own, and for GPUs of no fleet.
ANY_FLEET = "*"
USD = "USD"
HOUR = timedelta(hours=1)
MAX_RULES = 100


def check_service(in_service: datetime | None, retired: datetime | None) -> None:
    """Raises ValueError when GPUs would be retired before they serve."""
    if retired is not None and retired <= (in_service or FIRST_MOMENT):
        raise ValueError("retired after in_service")


class Membership(Strict):
    """The fleet that a node belongs to."""

    fleet: Words


class RentedPrice(Strict):
    """Pay by the hour, electricity included. billing_increment_s: a provisioned stretch is rounded up to it."""

    plan: Literal["rented"] = "rented"
    currency: Currency = USD
    per_gpu_hour: Money
    billing_increment_s: Annotated[Number, Field(ge=0, le=2_678_400)] = 0.0


class OwnedPrice(Strict):
    """Bought: depreciation and fixed cost in every hour from in_service to retired, and electricity by the tariff.

    in_service None: each GPU from when it was first seen.
    """

    plan: Literal["owned"] = "owned"
    currency: Currency = USD
    purchase: Money
    residual: Money = 0.0
    life_years: Positive
    fixed_per_hour: Money = 0.0
    in_service: Moment | None = None
    retired: Moment | None = None

    @property
    def per_gpu_hour(self) -> float:
        """Cost of one GPU for one hour, before electricity."""
        return owned_rate_per_hour(self.purchase, self.residual, self.life_years, self.fixed_per_hour)

    def serves(self, moment: datetime) -> bool:
        """Whether its GPUs are in service then."""
        begun = self.in_service is None or self.in_service <= moment
        return begun and (self.retired is None or moment < self.retired)

    @model_validator(mode="after")
    def _dates_in_order(self) -> OwnedPrice:
        check_service(self.in_service, self.retired)
        return self


class FlatTariff(Strict):
    plan: Literal["flat"] = "flat"
    currency: Currency = USD
    per_kwh: PerKwh

    @property
    def tariff(self) -> Tariff:
        return Tariff(self.currency, self.per_kwh)


class TariffHours(Strict):
    """A price for hours of the local clock, on the days on which they begin; `to` before `from`: past midnight."""

    days: Days = "all"
    from_: Annotated[Clock, Field(alias="from")]
    to: Clock
    per_kwh: PerKwh

    @property
    def rule(self) -> TariffRule:
        return TariffRule(weekdays(self.days), minute_of_day(self.from_), minute_of_day(self.to), self.per_kwh)

    @model_validator(mode="after")
    def _has_hours(self) -> TariffHours:
        if minute_of_day(self.from_) % MINUTES_PER_DAY == minute_of_day(self.to):
            raise ValueError("`from` and `to` that differ; a whole day is 00:00 to 24:00")
        if minute_of_day(self.from_) == MINUTES_PER_DAY:
            raise ValueError("`from` of 00:00 to 23:59")
        return self


def _some_rules(rules: tuple[TariffHours, ...]) -> tuple[TariffHours, ...]:
    if not 1 <= len(rules) <= MAX_RULES:
        raise ValueError(f"1 to {MAX_RULES} rules")
    return rules


class TimeOfUseTariff(Strict):
    """The first rule that holds counts; per_kwh: the price outside of all of them."""

    plan: Literal["time-of-use"] = "time-of-use"
    currency: Currency = USD
    tz: TimeZone
    per_kwh: PerKwh
    rules: Annotated[tuple[TariffHours, ...], AfterValidator(_some_rules)]

    @cached_property
    def tariff(self) -> Tariff:
        return Tariff(self.currency, self.per_kwh, self.tz, tuple(hours.rule for hours in self.rules))


class TariffHour(Strict):
    """The price of exactly one UTC hour; it wins over the tariff."""

    currency: Currency = USD
    per_kwh: PerKwh


class Pue(Strict):
    pue: PueNumber


class ZoneFact(Strict):
    zone: Words


class ExchangeRate(Strict):
    """US dollars for one unit of the currency that is the fact's subject."""

    usd_per_unit: Positive


class HostedPrice(Strict):
    """What a provider asks for the same model, to compare with."""

    input_usd_per_mtok: Money
    output_usd_per_mtok: Money


class LatencySlo(Strict):
    """At least `percentile` % of a model's requests have `metric` at or under max_ms."""

    metric: LatencyMetric = "ttft"
    percentile: Annotated[Number, Field(gt=0, le=100)] = 99.0
    max_ms: Positive


FactValue = (
    Membership | RentedPrice | OwnedPrice | FlatTariff | TimeOfUseTariff | TariffHour | Pue | ZoneFact
    | MarketFactor | Embodied | ExchangeRate | HostedPrice | LatencySlo
)  # fmt: skip
Price = RentedPrice | OwnedPrice
TariffPlan = FlatTariff | TimeOfUseTariff
_PRICE = Annotated[Price, Field(discriminator="plan")]
_TARIFF = Annotated[TariffPlan, Field(discriminator="plan")]


@dataclass(frozen=True)
class Form:
    """How facts of a kind look. subject: what they are about, in words; values: the models of their value."""

    subject: str
    values: tuple[type[Strict], ...]
    adapter: TypeAdapter[Any]
    about_fleets: bool = False
    has_default: bool = False


FORMS: Mapping[Kind, Form] = {
    "membership": Form("a node's name", (Membership,), TypeAdapter(Membership)),
    "price": Form("a fleet", (RentedPrice, OwnedPrice), TypeAdapter(_PRICE), about_fleets=True),
    "tariff": Form("a fleet", (FlatTariff, TimeOfUseTariff), TypeAdapter(_TARIFF), about_fleets=True),
    "tariff_hour": Form("a fleet", (TariffHour,), TypeAdapter(TariffHour), about_fleets=True),
    "pue": Form("a fleet, or *", (Pue,), TypeAdapter(Pue), about_fleets=True, has_default=True),
    "zone": Form("a fleet, or *", (ZoneFact,), TypeAdapter(ZoneFact), about_fleets=True, has_default=True),
    "market_factor": Form("a fleet", (MarketFactor,), TypeAdapter(MarketFactor), about_fleets=True),
    "embodied": Form("a fleet, or *", (Embodied,), TypeAdapter(Embodied), about_fleets=True, has_default=True),
    "exchange_rate": Form("a currency's code", (ExchangeRate,), TypeAdapter(ExchangeRate)),
    "hosted_price": Form("provider/model", (HostedPrice,), TypeAdapter(HostedPrice)),
    "slo": Form("a model", (LatencySlo,), TypeAdapter(LatencySlo)),
}


def parse_value(kind: Kind, content: Mapping[str, Any]) -> FactValue:
    """The value of a fact of `kind`. Raises pydantic's ValidationError."""
    value: FactValue = FORMS[kind].adapter.validate_python(dict(content))
    return value


def value_content(value: FactValue) -> dict[str, Any]:
    """The value as JSON has it, with the keys of `parse_value`; what is not set is left out."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def check_subject(kind: Kind, subject: str) -> str | None:
    """What is accepted where `subject` does not suit the kind; None where it does."""
    if not subject.strip() or len(subject) > 200 or not subject.isprintable():
        return f"{FORMS[kind].subject}: 1 to 200 printable characters"
    if subject == ANY_FLEET and not FORMS[kind].has_default:
        return f"{FORMS[kind].subject}; * is for {', '.join(name for name in KINDS if FORMS[name].has_default)}"
    if kind == "exchange_rate" and (subject == USD or not re.fullmatch("[A-Z]{3}", subject)):
        return "the code (ISO 4217) of a currency other than USD, such as EUR"
    if kind == "hosted_price" and not re.fullmatch(r"[^/]+/.+", subject):
        return "provider/model, such as example-ai/llama-3.1-8b"
    return None


def check_valid_from(kind: Kind, valid_from: datetime) -> str | None:
    """What is accepted where `valid_from` does not suit the kind; None where it does."""
    if kind == "tariff_hour" and valid_from != valid_from.replace(minute=0, second=0, microsecond=0):
        return "the start of a whole hour in UTC, such as 2026-03-01T13:00Z"
    return None
