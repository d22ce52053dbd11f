"""List prices of rented GPUs, dated. What a user sets always wins over them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache

from app.accounting.cost import Rate
from app.reference.gpus import display_name, same_gpu
from app.reference.tables import read_table


@dataclass(frozen=True)
class ListPrice:
    gpu_name: str
    provider_class: str
    usd_per_gpu_hour: float
    as_of: date
    source: str


def list_price(gpu_name: str, on: date | None) -> Rate:
    """The newest list price that is not newer than `on` (None: the newest), of one day the lowest.

    So a run keeps the price of its own time (design law 1). A Rate without price, and why, when there is none.
    """
    offers = [price for price in list_prices() if same_gpu(price.gpu_name, gpu_name)]
    known = [price for price in offers if on is None or price.as_of <= on]
    if not known:
        when = f" on or before {on}; the first is of {min(price.as_of for price in offers)}" if offers else ""
        return Rate(None, "default", "list prices", reason=f"no price for {display_name(gpu_name)}{when}")
    best = min(known, key=lambda price: (-price.as_of.toordinal(), price.usd_per_gpu_hour))
    return Rate(best.usd_per_gpu_hour, "default", f"list price, {best.provider_class}, {best.as_of}: {best.source}")


@cache
def list_prices() -> tuple[ListPrice, ...]:
    return tuple(
        ListPrice(
            gpu_name=row["gpu_name"],
            provider_class=row["provider_class"],
            usd_per_gpu_hour=float(row["usd_per_gpu_hour"]),
            as_of=_start_of(row["as_of"]),
            source=row["source"],
        )
        for row in read_table("gpu_prices")
    )


def _start_of(period: str) -> date:
    """2025, 2025-05 or 2025-05-17 -> its first day."""
    year, month, day = [*(int(part) for part in period.split("-")), 1, 1][:3]
    return date(year, month, day)
