"""List prices of rented GPUs, dated. What a user sets always wins over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache

from app.accounting.cost import Rate
from app.reference.gpus import card_key, display_name, same_gpu
from app.reference.tables import read_table


@dataclass(frozen=True)
class ListPrice:
    gpu_name: str
    provider_class: str
    usd_per_gpu_hour: float
    as_of: date
    source: str


def list_price(gpu_name: str, on: date, max_age_days: int) -> Rate:
    """The newest list price that is not newer than `on` and, on that day, not too old; of one day the lowest.

    So a run keeps the price of its own time (design law 1). A Rate without price, and why, when there is none.
    """
    offers = [price for price in list_prices() if same_gpu(price.gpu_name, gpu_name)]
    known = [price for price in offers if price.as_of <= on]
    if not known:
        when = f" on or before {on}; the first is of {min(price.as_of for price in offers)}" if offers else ""
        return Rate(None, "default", "list prices", reason=f"no price for {display_name(gpu_name)}{when}")
    best = min(known, key=lambda price: (-price.as_of.toordinal(), price.usd_per_gpu_hour))
    if is_too_old(best.as_of, on, max_age_days):
        reason = (
            f"list price of {best.as_of} is {(on - best.as_of).days} days old; the limit is {max_age_days}"
            " (set a price of yours, or [prices] max_age_days)"
        )
        return Rate(None, "default", "list prices", reason=reason)
    return Rate(best.usd_per_gpu_hour, "default", f"list price, {best.provider_class}, {best.as_of}: {best.source}")


def is_too_old(as_of: date, on: date, max_age_days: int) -> bool:
    """Days are UTC days."""
    return (on - as_of).days > max_age_days


def moments_of(starts: Iterable[datetime], max_age_days: int) -> Iterator[datetime]:
    """When one price after the other begins to count, and when one does not any more, as none came in time.

    starts: of the prices of one card, in UTC.
    """
    begins = sorted(set(starts))
    for number, start in enumerate(begins, 1):
        yield start
        end = datetime.combine(start.date() + timedelta(days=max_age_days + 1), time(), UTC)
        if number == len(begins) or end < begins[number]:
            yield end


def list_price_moments(max_age_days: int) -> set[datetime]:
    """When a list price of any card begins or ends to count."""
    by_card: dict[str, list[datetime]] = {}
    for price in list_prices():
        by_card.setdefault(card_key(price.gpu_name), []).append(datetime.combine(price.as_of, time(), UTC))
    return {moment for starts in by_card.values() for moment in moments_of(starts, max_age_days)}


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
