"""What is in force when, by the knowledge of a moment; searched by bisection: years of hourly prices are cheap."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.facts.fact import Fact
from app.facts.kinds import (
    ANY_FLEET,
    FORMS,
    HOUR,
    USD,
    ExchangeRate,
    FactValue,
    FlatTariff,
    Kind,
    Membership,
    OwnedPrice,
    TariffHour,
    TimeOfUseTariff,
)
from app.facts.market_prices import MarketPrice, MarketPrices

_JUST_BEFORE = timedelta(microseconds=1)


@dataclass(frozen=True)
class ElectricityPrice:
    """Price of a kWh at a moment. fact: the tariff, or the hour's own price, that says so."""

    per_kwh: float
    currency: str
    fact: Fact


@dataclass(frozen=True)
class _Series:
    """Facts of one kind and subject in order of valid_from, one for each: the last known."""

    times: list[datetime]
    facts: list[Fact]

    def before(self, moment: datetime) -> Fact | None:
        """The last fact valid from `moment` or earlier."""
        position = bisect_right(self.times, moment) - 1
        return self.facts[position] if position >= 0 else None

    def between(self, start: datetime, end: datetime) -> list[Fact]:
        """Those valid from a moment strictly between the two."""
        return self.facts[bisect_right(self.times, start) : bisect_left(self.times, end)]


_NOTHING = _Series([], [])


class FactBook:
    """Facts by the knowledge of `known_at` (None: all). In force at t is, of those valid from t or earlier, the one
    with the greatest (valid_from, known_at). `subject` None: a GPU that no fleet claims.

    market_prices: what markets asked for cards, by the same knowledge.
    """

    def __init__(
        self, facts: Iterable[Fact], known_at: datetime | None = None, market_prices: Iterable[MarketPrice] = ()
    ) -> None:
        self.known_at = known_at
        self.market_prices = MarketPrices(
            price for price in market_prices if known_at is None or price.known_at <= known_at
        )
        self._given: dict[tuple[Kind, str], list[Fact]] = defaultdict(list)
        for fact in facts:
            if known_at is None or fact.known_at <= known_at:
                self._given[fact.kind, fact.subject].append(fact)
        self._series: dict[tuple[Kind, str], _Series] = {}

    @property
    def facts(self) -> Iterator[Fact]:
        """All that is known, in no order."""
        return (fact for facts in self._given.values() for fact in facts)

    @property
    def fleets(self) -> list[str]:
        """Every fleet that a fact names, ended or not."""
        named = {subject for kind, subject in self._given if FORMS[kind].about_fleets} - {ANY_FLEET}
        values = (fact.value for fact in self.facts if fact.kind == "membership")
        return sorted(named | {value.fleet for value in values if isinstance(value, Membership) and value.fleet})

    def subjects(self, kind: Kind) -> list[str]:
        return sorted(subject for known, subject in self._given if known == kind)

    def at(self, kind: Kind, subject: str | None, moment: datetime) -> Fact | None:
        """The fact in force; None where there is none or it was ended.

        A fleet without a PUE or zone of its own has that of all fleets.
        """
        own = None if subject is None else self.own(kind, subject, moment)
        if own is None and FORMS[kind].has_default:
            return self.own(kind, ANY_FLEET, moment)
        return own

    def own(self, kind: Kind, subject: str, moment: datetime) -> Fact | None:
        """The subject's own fact in force, without that of all fleets."""
        fact = self._series_of(kind, subject).before(moment)
        if fact is None or fact.value is None:
            return None
        return None if kind == "tariff_hour" and moment >= fact.valid_from + HOUR else fact

    def value(self, kind: Kind, subject: str | None, moment: datetime) -> FactValue | None:
        fact = self.at(kind, subject, moment)
        return fact.value if fact else None

    def electricity(self, fleet: str | None, moment: datetime) -> ElectricityPrice | None:
        """Price of a kWh for a fleet: that of the very hour where one is listed, else by its tariff."""
        for kind in ("tariff_hour", "tariff"):
            fact = self.at(kind, fleet, moment)
            if fact is not None and isinstance(fact.value, TariffHour):
                return ElectricityPrice(fact.value.per_kwh, fact.value.currency, fact)
            if fact is not None and isinstance(fact.value, FlatTariff | TimeOfUseTariff):
                tariff = fact.value.tariff
                return ElectricityPrice(tariff.price_at(moment), tariff.currency, fact)
        return None

    def usd_per_unit(self, currency: str, moment: datetime) -> float | None:
        """US dollars for one unit of `currency`; None where no rate is known."""
        if currency == USD:
            return 1.0
        value = self.value("exchange_rate", currency, moment)
        return value.usd_per_unit if isinstance(value, ExchangeRate) else None

    def changes(self, kind: Kind, subject: str | None, start: datetime, end: datetime) -> list[datetime]:
        """The moments strictly between `start` and `end` at which what is in force changes, in order.

        For a tariff also where its clock or an hour's own price changes the price; for an owned price also where its
        GPUs come into service and retire.
        """
        moments = {moment for moment in self._candidates(kind, subject, start, end) if start < moment < end}
        return [
            moment
            for moment in sorted(moments)
            if self._state(kind, subject, moment) != self._state(kind, subject, moment - _JUST_BEFORE)
        ]

    def _series_of(self, kind: Kind, subject: str) -> _Series:
        key = (kind, subject)
        if key not in self._given:
            return _NOTHING
        if key not in self._series:
            last = {fact.valid_from: fact for fact in sorted(self._given[key], key=lambda fact: fact.order)}
            self._series[key] = _Series(list(last), list(last.values()))
        return self._series[key]

    def _candidates(self, kind: Kind, subject: str | None, start: datetime, end: datetime) -> Iterator[datetime]:
        kinds: tuple[Kind, ...] = ("tariff", "tariff_hour") if kind == "tariff" else (kind,)
        for one in kinds:
            for named in {subject, ANY_FLEET if FORMS[one].has_default else None} - {None}:
                yield from self._edges(self._series_of(one, str(named)), start, end)

    def _edges(self, series: _Series, start: datetime, end: datetime) -> Iterator[datetime]:
        """Where a fact of the series comes into force, and what changes while it is."""
        first = series.before(start)
        facts = ([first] if first else []) + series.between(start, end)
        for position, fact in enumerate(facts, 1):
            after = facts[position].valid_from if position < len(facts) else end
            yield fact.valid_from
            if isinstance(fact.value, TariffHour):
                yield fact.valid_from + HOUR
            elif isinstance(fact.value, TimeOfUseTariff):
                yield from fact.value.tariff.edges(max(start, fact.valid_from), after)
            elif isinstance(fact.value, OwnedPrice):
                yield from (moment for moment in (fact.value.in_service, fact.value.retired) if moment)

    def _state(self, kind: Kind, subject: str | None, moment: datetime) -> object:
        """What is compared to see a change."""
        if kind == "tariff":
            price = self.electricity(subject, moment)
            return price and (price.per_kwh, price.currency)
        value = self.value(kind, subject, moment)
        return (value, value.serves(moment)) if isinstance(value, OwnedPrice) else value
