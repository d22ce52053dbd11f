"""Question: what did each fleet do for each model in these periods, and what did it cost in dollars, joules, grams?"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta

from app import units
from app.accounting.account import PERCENTILES, Account
from app.accounting.carbon_line import carbon_line
from app.accounting.energy import Boundary
from app.accounting.figure import weakest
from app.accounting.line import AccountLine
from app.accounting.periods import Period
from app.accounting.segments import cut
from app.accounting.tokens import Basis
from app.answers.accounts import Accounts
from app.answers.intensity import intensity_of
from app.answers.query import AccountQuery
from app.answers.reading import Reading, Slots
from app.answers.terms import DatedTerms
from app.config import Config
from app.facts.market_prices import joined_labels
from app.store.database import Store
from app.store.facts import fact_book
from app.store.moment import moment
from app.store.reader import Reader

# What a line of a report holds, beside its quantiles.
LINE_FIGURES = (
    "gpu_hours", "prompt_tokens", "cached_tokens", "generated_tokens", "requests", "failed_requests", "energy_kwh",
    "energy_idle_kwh", "cost", "cost_used", "cost_working", "cost_slack", "cost_idle", "cost_unallocated",
    "usd_per_mtok", "tokens_per_joule", "carbon_g", "g_per_mtok",
    "carbon_market_g", "embodied_g", "embodied_low_g", "embodied_high_g", "sci_g_per_mtok",
)  # fmt: skip


def accounts_of(
    store: Store,
    config: Config,
    query: AccountQuery,
    periods: Sequence[Period],
    now: datetime,
    at: Reader | None = None,
    *,
    engines: bool = True,
) -> Accounts:
    """The accounts of `periods`, which follow each other in time, by what the query asks for.

    now: the hub's clock: minutes older than [store] minute_days are read from hours. at: a moment of the store, where
    several accounts are of one. engines: without them, what GPUs were used for and cost is right, and the rest missing.
    """
    found = Accounts(query, periods, now)
    if not periods:
        return found
    book = fact_book(store, query.known_at)
    fleets: list[str | None] = [query.fleet] if query.fleet is not None else [None, *book.fleets]
    start, end = periods[0].start, periods[-1].end
    oldest_minute_us = units.us_of_moment(now - timedelta(days=config.store.minute_days))

    def made() -> DatedTerms:
        return DatedTerms(book, config, fleets, start, end)

    with nullcontext(at) if at else moment(store) as reader:
        # Of an earlier knowledge each question has a book of its own.
        is_latest = book is fact_book(store)
        dated = reader.once(("terms", id(book), id(config), *fleets, start, end), made) if is_latest else made()
        slots = Slots.of(cut(periods, dated.changes), dated)
        intensity = intensity_of(reader, config, dated, slots.places, fleets, periods, query.known_at)
        reading = Reading(reader, found, dated, slots, oldest_minute_us, intensity)
        reading.add_use(engines=engines)
        reading.add_off(fleets)
        reading.add_rounding(fleets)
        if engines:
            reading.add_latencies()
    return found


def account_lines(
    store: Store,
    config: Config,
    periods: Sequence[Period],
    *,
    boundary: Boundary = "it",
    basis: Basis = "total",
    now: datetime,
    known_at: datetime | None = None,
) -> list[AccountLine]:
    """A line per period, fleet and model, in that order; GPUs without an engine have a line without a model.

    known_at: knowledge of prices, factors and fleets up to then (None: all).
    """
    if not periods:
        return []
    query = AccountQuery(
        start=periods[0].start,
        end=periods[-1].end,
        by="fleet_model",
        basis=basis,
        boundary=boundary,
        known_at=known_at,
        figures=(*LINE_FIGURES, "ttft_n"),
    )
    found = accounts_of(store, config, query, periods, now)
    order = {key: number for number, key in enumerate(found.keys)}
    return [
        _line(periods[number], dict(key), account)
        for (number, key), account in sorted(found.lines.items(), key=lambda item: (item[0][0], order[item[0][1]]))
    ]


def _line(period: Period, key: dict[str, str | None], account: Account) -> AccountLine:
    bill = account.bill
    return AccountLine(
        period=period,
        fleet=key["fleet"],
        model=key["model"],
        boundary=bill.boundary,
        basis=account.basis,
        figures={name: account.figure(name) for name in LINE_FIGURES},
        ttft={float(percentile): account.quantile("ttft", percentile) for percentile in PERCENTILES},
        coverage=bill.coverage,
        method=weakest((bill.energy_method, bill.split_method, account.served.method)),
        price_source="; ".join(joined_labels(bill.price_sources)),
        grid="; ".join(sorted(bill.grids)),
        carbon_basis=carbon_line(account),
    )
