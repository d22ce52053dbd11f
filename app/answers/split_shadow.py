"""Question: what is one unit more of each limit worth?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.split.demand import Demand
from app.split.options import Option
from app.split.shadow import ShadowPrice, shadow_prices


def split_shadow(demand: Demand, options: Sequence[Option]) -> dict[str, Any]:
    """{reason, usd_per_hour, objective_usd_per_hour, prices: [...]}; reason: why there are no prices.

    A price: {kind: gpus|slo|watts|usd|grams|share|load, name, class, from, to, unit, saves_usd_per_hour,
    usd_per_hour_change, g_per_hour_change, is_binding, text}. saves_usd_per_hour is of what is minimised, carbon price
    included: below 0 it costs so much more, null where the unit more fits nowhere. The largest saving is first; what
    one request/s more of each class costs (kind load) is last.
    """
    base, prices = shadow_prices(demand, options)
    return {
        "reason": base.reason,
        "usd_per_hour": base.usd_per_hour,
        "objective_usd_per_hour": base.objective_usd_per_hour,
        "prices": [_price(price) for price in prices],
    }


def _price(price: ShadowPrice) -> dict[str, Any]:
    more = price.more
    return {
        "kind": more.kind,
        "name": more.name,
        "class": more.class_name,
        "from": more.start,
        "to": more.end,
        "unit": more.unit,
        "saves_usd_per_hour": price.saves_usd_per_hour,
        "usd_per_hour_change": price.usd_per_hour,
        "g_per_hour_change": price.g_per_hour,
        "is_binding": price.is_binding,
        "text": price.text,
    }
