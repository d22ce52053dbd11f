"""Which terms held when: price, electricity, PUE, carbon and SLOs, from dated facts, lists and settings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from app.accounting.carbon import GridFactor
from app.accounting.cost import Rate
from app.accounting.figure import Method
from app.accounting.periods import Period
from app.accounting.plans import usd
from app.accounting.segments import Segment, cut, edges_of
from app.accounting.terms import Terms
from app.answers.carbon_terms import fleet_embodied, fleet_market
from app.answers.card_prices import card_price, price_moments
from app.config import Config
from app.errors import UnknownName
from app.facts.book import FactBook
from app.facts.fact import Fact
from app.facts.kinds import (
    FLEET_KINDS,
    FlatTariff,
    Kind,
    LatencySlo,
    OwnedPrice,
    Pue,
    RentedPrice,
    TimeOfUseTariff,
    ZoneFact,
)

_OTHERS: tuple[Kind, ...] = ("exchange_rate", "slo")


class DatedTerms:
    """The terms of the fleets in [start, end): constant within an epoch, that is between two of `changes`.

    Epochs in which all is the same have the same state: what was used in them may be summed before it is priced.
    """

    def __init__(
        self, book: FactBook, config: Config, fleets: Sequence[str | None], start: datetime, end: datetime
    ) -> None:
        self._book = book
        self._config = config
        self._fleets = fleets
        moments = {
            moment for fleet in fleets for kind in FLEET_KINDS for moment in book.changes(kind, fleet, start, end)
        }
        for kind in _OTHERS:
            for subject in book.subjects(kind):
                moments |= set(book.changes(kind, subject, start, end))
        self._price_moments = price_moments(book, config.prices)
        moments |= {moment for moment in self._price_moments if start < moment < end}
        self._edges = edges_of(moments)
        self.changes = sorted(moments)
        self._moments: list[datetime] = []
        self._states = self._numbered([start, *self._edges])
        self._terms: dict[tuple[int, str | None, str], Terms] = {}

    def state_of(self, segment: Segment) -> int:
        return self._states[bisect_right(self._edges, segment.start)]

    def moment_of(self, state: int) -> datetime:
        """One at which the state holds."""
        return self._moments[state]

    def plans(self, fleet: str) -> list[RentedPrice | OwnedPrice]:
        """The prices that the fleet has in any state."""
        values = (self._book.value("price", fleet, moment) for moment in self._moments)
        return [value for value in values if isinstance(value, RentedPrice | OwnedPrice)]

    def plan(self, state: int, fleet: str | None) -> RentedPrice | OwnedPrice | None:
        """The price that the fleet has in the state."""
        value = self._book.value("price", fleet, self._moments[state])
        return value if isinstance(value, RentedPrice | OwnedPrice) else None

    def grid(self, state: int, fleet: str | None) -> GridFactor:
        """Where the fleet's electricity comes from in the state, by the name that the tables have for it."""
        return fleet_grid(self._book, self._config, fleet, self._moments[state])

    def slo(self, model: str | None, moment: datetime) -> LatencySlo | None:
        value = None if model is None else self._book.value("slo", model, moment)
        return value if isinstance(value, LatencySlo) else None

    @property
    def slo_metrics(self) -> set[str]:
        """Of all SLOs in force at any time."""
        found = (self.slo(model, moment) for model in self._book.subjects("slo") for moment in self._moments)
        return {slo.metric for slo in found if slo is not None}

    def cut_by_slo(self, periods: Sequence[Period]) -> list[Segment]:
        """The segments in which no SLO changes: latencies are not priced."""
        start, end = periods[0].start, periods[-1].end
        models = self._book.subjects("slo")
        return cut(periods, (moment for model in models for moment in self._book.changes("slo", model, start, end)))

    def of(self, state: int, fleet: str | None, card: str) -> Terms:
        """The terms of a card in a fleet."""
        key = (state, fleet, card)
        if key not in self._terms:
            self._terms[key] = fleet_terms(self._book, self._config, fleet, card, self._moments[state])
        return self._terms[key]

    def _numbered(self, firsts: list[datetime]) -> list[int]:
        """The state of each epoch by its first moment."""
        numbers: dict[object, int] = {}
        states = []
        for moment in firsts:
            state = self._state(moment)
            if state not in numbers:
                numbers[state] = len(numbers)
                self._moments.append(moment)
            states.append(numbers[state])
        return states

    def _state(self, moment: datetime) -> object:
        asked = bisect_right(self._price_moments, moment)
        slos = (self._book.value("slo", model, moment) for model in self._book.subjects("slo"))
        return asked, *slos, *(self._fleet_state(fleet, moment) for fleet in self._fleets)

    def _fleet_state(self, fleet: str | None, moment: datetime) -> object:
        price, electricity = self._book.at("price", fleet, moment), self._book.electricity(fleet, moment)
        value = price.value if price else None
        currencies = {electricity.currency} if electricity else set()
        if isinstance(value, RentedPrice | OwnedPrice):
            currencies.add(value.currency)
        return (
            value,
            price and price.source,
            isinstance(value, OwnedPrice) and value.serves(moment),
            electricity and (electricity.per_kwh, electricity.currency),
            self._book.value("pue", fleet, moment),
            self._book.value("zone", fleet, moment),
            fleet_market(self._book, fleet, moment),
            self._book.value("embodied", fleet, moment),
            tuple((currency, self._book.usd_per_unit(currency, moment)) for currency in sorted(currencies)),
        )


def fleet_terms(book: FactBook, config: Config, fleet: str | None, card: str, moment: datetime) -> Terms:
    """The terms in force at a moment: the fleet's own price, else that of the card then; and its carbon."""
    market, embodied = fleet_market(book, fleet, moment), fleet_embodied(book, config, fleet, card, moment)
    return replace(_priced_terms(book, config, fleet, card, moment), market=market, embodied=embodied)


def _priced_terms(book: FactBook, config: Config, fleet: str | None, card: str, moment: datetime) -> Terms:
    grid, pue_number = fleet_site(book, config, fleet, moment)
    host_w = config.host_w_per_gpu(fleet)
    price = book.at("price", fleet, moment)
    if price is None or not isinstance(price.value, RentedPrice | OwnedPrice):
        rate = card_price(book, config.prices, card, moment)
        return Terms(rate.usd_per_gpu_hour, rate.method, rate.source, grid, pue_number, host_w, rate.reason)
    hourly, reason = _in_usd(book, price.value.per_gpu_hour, price.value.currency, moment)
    source = _source(price, fleet)
    method: Method = "user"
    if isinstance(price.value, RentedPrice):
        increment_s = price.value.billing_increment_s
        return Terms(hourly, method, source, grid, pue_number, host_w, reason, billing_increment_s=increment_s)
    usd_per_kwh, no_tariff = _tariff(book, fleet, moment)
    in_service = price.value.serves(moment)
    return Terms(
        usd_per_gpu_hour=hourly if in_service else 0.0,
        method=method,
        source=source,
        grid=grid,
        pue=pue_number,
        host_w=host_w,
        reason=reason,
        is_owned=True,
        usd_per_kwh=usd_per_kwh,
        no_tariff=no_tariff,
        in_service=in_service,
    )


def planned_rate(book: FactBook, fleet: str | None, moment: datetime) -> Rate | None:
    """The fleet's own price in force at a moment, to plan with; None without one.

    So it does not hang on the hour in which it is asked: a tariff by the clock counts at the mean of its week, and
    owned GPUs cost the same before they serve and once they are retired.
    """
    price = book.at("price", fleet, moment)
    if price is None or not isinstance(price.value, RentedPrice | OwnedPrice):
        return None
    hourly, reason = _in_usd(book, price.value.per_gpu_hour, price.value.currency, moment)
    source = _source(price, fleet)
    if isinstance(price.value, RentedPrice):
        return Rate(hourly, "user", source, reason=reason)
    usd_per_kwh, no_tariff = _mean_tariff(book, fleet, moment)
    if usd_per_kwh is None:
        return Rate(None, "user", source, reason=reason or no_tariff)
    return Rate(hourly, "user", source, usd_per_kwh, reason)


def fleet_site(book: FactBook, config: Config, fleet: str | None, moment: datetime) -> tuple[GridFactor, float]:
    """Grid and PUE in force at a moment."""
    pue = book.value("pue", fleet, moment)
    return fleet_grid(book, config, fleet, moment), pue.pue if isinstance(pue, Pue) else config.defaults.pue


def fleet_grid(book: FactBook, config: Config, fleet: str | None, moment: datetime) -> GridFactor:
    """The yearly value of the zone in force. One that the tables no longer have leaves grams unknown, and no more."""
    value = book.value("zone", fleet, moment)
    zone = value.zone if isinstance(value, ZoneFact) else config.defaults.zone
    try:
        return config.grid_factor(zone)
    except UnknownName as problem:
        return GridFactor(zone, None, "", None, "default", "", reason=str(problem))


def _source(price: Fact, fleet: str | None) -> str:
    return f"{price.source}, fleet {fleet}{' (owned)' if isinstance(price.value, OwnedPrice) else ''}"


def _mean_tariff(book: FactBook, fleet: str | None, moment: datetime) -> tuple[float | None, str | None]:
    """USD for a kWh over the week of the tariff in force, else in this very hour; None, and why."""
    tariff = book.value("tariff", fleet, moment)
    if isinstance(tariff, FlatTariff | TimeOfUseTariff):
        return _in_usd(book, tariff.tariff.mean_per_kwh(), tariff.currency, moment)
    return _tariff(book, fleet, moment)


def _tariff(book: FactBook, fleet: str | None, moment: datetime) -> tuple[float | None, str | None]:
    """USD for a kWh; None, and why."""
    electricity = book.electricity(fleet, moment)
    if electricity is None:
        return None, f"no tariff of fleet {fleet}"
    return _in_usd(book, electricity.per_kwh, electricity.currency, moment)


def _in_usd(book: FactBook, amount: float, currency: str, moment: datetime) -> tuple[float | None, str | None]:
    converted = usd(amount, book.usd_per_unit(currency, moment))
    return converted, f"no exchange rate for {currency} on {moment.date()}" if converted is None else None
