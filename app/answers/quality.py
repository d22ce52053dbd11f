"""How well an account is known: shares by how seconds, joules, prices and grid factors were got; and what to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from app import units
from app.accounting.account import Account
from app.accounting.bill import Bill
from app.accounting.carbon import SUNK
from app.accounting.carbon_line import carbon_line
from app.answers.accounts import Accounts
from app.config import Config
from app.facts.market_prices import joined_labels
from app.formatting import number, percent


def quality_of(account: Account) -> dict[str, Any]:
    """Shares that sum to 1, or None where there is nothing to share.

    coverage: seconds with a measured energy. gpu_seconds: by how their energy is known, those of simulated GPUs as
    such; joules: the same of joules. prices: GPU-seconds by how their price is known; grid: joules by how their grid
    factor is. simulated: share of GPU-seconds. carbon_basis: what the grams stand on, in a line.
    """
    bill = account.bill
    return {
        "coverage": bill.coverage,
        "gpu_seconds": _shares(bill.energy_s),
        "joules": _shares(bill.energy_j),
        "prices": _shares({method or "missing": seconds for method, seconds in bill.priced_s.items()}),
        "grid": _shares({str(method): joules for method, joules in bill.grid_j.items()}),
        "simulated": bill.simulated_s / bill.provisioned_s if bill.provisioned_s else None,
        "price_sources": joined_labels(bill.price_sources),
        "grids": sorted(bill.grids),
        "carbon_basis": carbon_line(account),
    }  # fmt: skip


def notes_of(found: Accounts, config: Config) -> list[str]:
    """What to know before the figures are used."""
    return list(_notes(found, config))


def _notes(found: Accounts, config: Config) -> Iterator[str]:
    query, bills = found.query, [account.bill for account in found.totals.values()]
    if not bills:
        yield "no GPU and no engine was seen in this range"
        return
    if query.end > found.now:
        yield "the range is not over"
    oldest_minute = found.now - timedelta(days=config.store.minute_days)
    if query.start < oldest_minute:
        yield f"minutes before {oldest_minute.date()} are gone: there, an hour counts where it begins"
    simulated_s, provisioned_s = (
        sum(getattr(bill, name) for bill in bills) for name in ("simulated_s", "provisioned_s")
    )
    if simulated_s:
        yield f"{percent(simulated_s / provisioned_s)} of the GPU-hours are simulated"
    yield from _of_prices(bills)
    yield from _of_carbon(bills)
    if query.boundary != "gpu" and not any(bill.has_host for bill in bills):
        yield "the hosts' own power is not in it: set host_w_per_gpu in wattmix.toml"
    unplaced = max(account.served.unplaced for account in found.totals.values())
    if unplaced:
        yield f"{unplaced} engines ran on GPUs that are not known: their tokens divide no cost"


def _of_carbon(bills: list[Bill]) -> Iterator[str]:
    if any(label.startswith(SUNK) for bill in bills for label in bill.embodieds):
        yield "cards of a fleet count as made anyway (sunk): their embodied carbon is 0 by assumption"


def _of_prices(bills: list[Bill]) -> Iterator[str]:
    listed_s = sum(bill.priced_s.get("default", 0.0) for bill in bills)
    if listed_s:
        yield f"{number(units.hours(listed_s), 1)} GPU-hours are priced by a list: no price of their fleet is known"
    asked_s = sum(bill.priced_s.get("market", 0.0) for bill in bills)
    if asked_s:
        hours = number(units.hours(asked_s), 1)
        yield f"{hours} GPU-hours are priced by what a market asks: no price of their fleet is known"
    off_s = sum(bill.off_s for bill in bills)
    if off_s:
        hours = number(units.hours(off_s), 1)
        yield f"{hours} GPU-hours of owned GPUs were off and are paid; `retired` ends that for GPUs that are gone"


def _shares(parts: Mapping[str, float]) -> dict[str, float] | None:
    whole = sum(parts.values())
    return {name: value / whole for name, value in parts.items()} if whole else None
