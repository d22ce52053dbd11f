"""Question: is it cheaper to rent the GPUs of a fleet, or to own them?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.accounting.account import Account
from app.accounting.comparison import HOURS_PER_MONTH, Purchase, owning_hours_per_month, owning_months
from app.accounting.figure import Figure, missing
from app.accounting.periods import Period
from app.answers.account import accounts_of
from app.answers.card_prices import card_price
from app.answers.figures import as_json
from app.answers.query import AccountQuery
from app.config import Config
from app.facts.book import FactBook
from app.facts.kinds import FlatTariff, OwnedPrice, RentedPrice, TimeOfUseTariff, ZoneFact
from app.reference.gpus import display_name
from app.reference.purchases import electricity_estimate, purchase_estimate
from app.store.choices import fleet_cards
from app.store.database import Store
from app.store.facts import fact_book

# What an estimate of a purchase assumes: `[embodied] lifetime_years` by default, and nothing left after them.
LIFE_YEARS = 4.0


@dataclass(frozen=True)
class _Told:
    """A number with whence it is, or why there is none."""

    value: float | None
    said: str


@dataclass(frozen=True)
class _Bought:
    """What buying one GPU costs, and whence that is known."""

    usd: float
    residual_usd: float
    life_years: float
    fixed_usd_per_hour: float
    said: str


def rent_or_own(store: Store, config: Config, query: AccountQuery, now: datetime) -> list[dict[str, Any]]:
    """A row per fleet and card: running hours a month from which on owning costs less, and months to pay it back.

    Owned fleets are held against what renting such a card costs; rented ones against what the card costs new by the
    table of estimates. Power is the mean of the fleet's site energy over the hours for which its GPUs were there.
    """
    book, moment = fact_book(store, query.known_at), min(query.end, now)
    asked = replace(query, by="fleet", view="bill", boundary="site", step=None, figures=("gpu_hours", "energy_kwh"))
    found = accounts_of(store, config, asked, [Period(query.start, query.end, "")], now)
    accounts = {dict(key)["fleet"]: found.line(0, key) for key in found.keys}
    cards = [one for one in fleet_cards(store, moment) if one[0] in accounts]
    return [_row(_Question(book, config, fleet, card, moment), accounts[fleet]) for fleet, card in cards]


@dataclass(frozen=True)
class _Question:
    book: FactBook
    config: Config
    fleet: str
    card: str
    moment: datetime

    @property
    def price(self) -> RentedPrice | OwnedPrice | None:
        value = self.book.value("price", self.fleet, self.moment)
        return value if isinstance(value, RentedPrice | OwnedPrice) else None

    @property
    def rent(self) -> _Told:
        """USD an hour for which the card is rented, or could be."""
        if isinstance(self.price, RentedPrice):
            usd = self.in_usd(self.price.per_gpu_hour, self.price.currency)
            return _Told(usd, f"price of fleet {self.fleet}" if usd is not None else self.no_rate(self.price.currency))
        asked = card_price(self.book, self.config.prices, self.card, self.moment)
        return _Told(asked.usd_per_gpu_hour, asked.reason or asked.source)

    @property
    def purchase(self) -> _Bought | str:
        """What it costs to own one; why that is not known."""
        if isinstance(self.price, OwnedPrice):
            rate = self.in_usd(1.0, self.price.currency)
            if rate is None:
                return self.no_rate(self.price.currency)
            price, said = self.price, f"price of fleet {self.fleet}"
            return _Bought(
                price.purchase * rate, price.residual * rate, price.life_years, price.fixed_per_hour * rate, said
            )
        estimate = purchase_estimate(self.card)
        if estimate is None:
            return f"no purchase price of {display_name(self.card)} is known: a price of plan owned says it"
        said = f"estimate of {estimate.as_of}: {estimate.source}; {LIFE_YEARS:g} years, nothing left after them"
        return _Bought(estimate.usd, 0.0, LIFE_YEARS, 0.0, said)

    @property
    def tariff(self) -> _Told:
        """USD for a kWh: the mean of the fleet's tariff, else the yearly average of its zone."""
        own = self.book.value("tariff", self.fleet, self.moment)
        if isinstance(own, FlatTariff | TimeOfUseTariff):
            usd = self.in_usd(own.tariff.mean_per_kwh(), own.currency)
            return _Told(usd, f"tariff of fleet {self.fleet}" if usd is not None else self.no_rate(own.currency))
        zone = self.book.value("zone", self.fleet, self.moment)
        name = zone.zone if isinstance(zone, ZoneFact) else self.config.defaults.zone
        estimate = electricity_estimate(name)
        if estimate is None:
            return _Told(None, f"no tariff of fleet {self.fleet}, and none of {name} in the table")
        usd = self.in_usd(estimate.per_kwh, estimate.currency)
        said = f"average of businesses in {name}, {estimate.period}"
        return _Told(usd, said if usd is not None else self.no_rate(estimate.currency))

    def in_usd(self, amount: float, currency: str) -> float | None:
        rate = self.book.usd_per_unit(currency, self.moment)
        return None if rate is None else amount * rate

    def no_rate(self, currency: str) -> str:
        return f"no exchange rate for {currency} on {self.moment.date()}"


def _row(question: _Question, account: Account) -> dict[str, Any]:
    rent, tariff, bought, power = question.rent, question.tariff, question.purchase, _power(account)
    purchase = None if isinstance(bought, str) else bought
    hours, months = _compared(rent, tariff, bought, power)
    return {
        "fleet": question.fleet,
        "card": question.card,
        "plan": "owned" if isinstance(question.price, OwnedPrice) else "rented",
        "rent_usd_per_hour": rent.value,
        "rent_source": rent.said,
        "purchase_usd": purchase and purchase.usd,
        "purchase_source": bought if isinstance(bought, str) else bought.said,
        "life_years": purchase and purchase.life_years,
        "tariff_usd_per_kwh": tariff.value,
        "tariff_source": tariff.said,
        "site_power_w": as_json(power),
        "hours_per_month": as_json(hours),
        "months_to_pay_back": as_json(months),
    }


def _power(account: Account) -> Figure:
    """Mean site power of a GPU while it was there."""
    energy, seconds = account.joules(), account.bill.provisioned_s
    if energy.value is None or seconds <= 0:
        return missing("W", energy.method, energy.reason or "no GPU was seen")
    return Figure(energy.value / seconds, "W", energy.method, coverage=energy.coverage)


def _compared(rent: _Told, tariff: _Told, bought: _Bought | str, power: Figure) -> tuple[Figure, Figure]:
    if isinstance(bought, str) or rent.value is None or tariff.value is None or power.value is None:
        reason = "; ".join(_unknown(rent, tariff, bought, power))
        return missing("h/month", "estimated", reason), missing("months", "estimated", reason)
    purchase = Purchase(bought.usd, bought.residual_usd, bought.life_years, bought.fixed_usd_per_hour, tariff.value)
    return (
        owning_hours_per_month(purchase, rent.value, power.value),
        owning_months(purchase, rent.value, power.value, HOURS_PER_MONTH),
    )


def _unknown(rent: _Told, tariff: _Told, bought: _Bought | str, power: Figure) -> Iterator[str]:
    if isinstance(bought, str):
        yield bought
    yield from (told.said for told in (rent, tariff) if told.value is None)
    if power.value is None:
        yield str(power.reason)
