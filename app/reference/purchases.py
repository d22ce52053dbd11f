"""What GPUs are reported to cost new, and what a kWh costs where: estimates, for renting against buying."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from app.reference.gpus import display_name, words
from app.reference.tables import read_table

# Who runs GPUs pays as a business does.
_BUSINESS = ("commercial", "non_household")


@dataclass(frozen=True)
class PurchaseEstimate:
    usd: float
    as_of: str
    source: str


@dataclass(frozen=True)
class ElectricityEstimate:
    per_kwh: float
    currency: str
    period: str
    source: str


def purchase_estimate(gpu_name: str) -> PurchaseEstimate | None:
    """The reported price of a new card; None where the table has none."""
    card = words(display_name(gpu_name))
    for names, forms, estimate in _purchases():
        fits_form = not forms or any(word.startswith(form) for word in card for form in forms)
        if fits_form and any(set(name) <= set(card) for name in names):
            return estimate
    return None


def electricity_estimate(zone: str) -> ElectricityEstimate | None:
    """The yearly average of a business in the zone; None where the table has none."""
    for row in read_table("electricity_prices"):
        if row["zone"].casefold() == zone.casefold() and row["customer_class"] in _BUSINESS:
            return ElectricityEstimate(float(row["price_per_kwh"]), row["currency"], row["period"], row["source"])
    return None


@cache
def _purchases() -> tuple[tuple[list[tuple[str, ...]], tuple[str, ...], PurchaseEstimate], ...]:
    """Rows as (names of the card, forms that it comes in, estimate): `H100 (SXM/PCIe)`, `GB10 / DGX Spark`."""
    found = []
    for row in read_table("gpu_purchase_estimates"):
        split = re.fullmatch(r"([^()]+?)\s*(?:\(([^()]+)\))?", row["gpu"])
        if split is None:
            raise ValueError(f"gpu_purchase_estimates.csv: a card with its forms in brackets, not {row['gpu']!r}")
        names = [words(name) for name in split[1].split(" / ")]
        forms = tuple(form.casefold() for form in (split[2] or "").split("/") if form)
        found.append((names, forms, PurchaseEstimate(float(row["usd"]), row["as_of"], row["source"])))
    return tuple(found)
