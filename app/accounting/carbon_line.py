"""What the grams of an account stand on, in one line: the same in a report and on a page."""

from __future__ import annotations

from collections.abc import Mapping

from app.accounting.account import Account
from app.accounting.bill import View
from app.accounting.sums import NO_EMBODIED, NO_SUPPLIER_FACTOR

_IDLE: Mapping[View, str] = {
    "bill": "idle and unallocated time included",
    "used": "idle and unallocated time left out",
    "idle": "idle time only",
    "unallocated": "unallocated time only",
}


def carbon_line(account: Account) -> str:
    """Boundary, power method and coverage; factors with zone, year, kind, basis and PUE; embodied; idle rule; tokens.

    E.g. "boundary site (GPUs x PUE); power measured, coverage 99.5%; location-based: EU27 2024 average, 213.02 g/kWh
    lifecycle (default), PUE 1.2; market-based: no supplier factor; embodied: boavizta 566.7 kg a GPU over 4 years
    (default); idle and unallocated time included; tokens: total".
    """
    bill = account.bill
    host = "GPUs and hosts" if bill.has_host else "GPUs"
    power = bill.joules(boundary="site").method
    coverage = "none" if bill.coverage is None else f"{bill.coverage:.1%}"
    return "; ".join(
        (
            f"boundary site ({host} x PUE)",
            f"power {power}, coverage {coverage}",
            f"location-based: {_listed(bill.grids, 'no grid factor')}",
            f"market-based: {_listed(bill.markets, NO_SUPPLIER_FACTOR)}",
            f"embodied: {_listed(bill.embodieds, NO_EMBODIED)}",
            _IDLE[account.view],
            f"tokens: {account.basis}",
        )
    )


def _listed(labels: set[str], nothing: str) -> str:
    return " + ".join(sorted(labels)) or nothing
