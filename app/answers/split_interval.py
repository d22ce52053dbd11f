"""Question: how sure is the saving?"""

from __future__ import annotations

from typing import Any

from app.reference.gpus import same_gpu
from app.reference.prices import ListPrice, list_prices
from app.split.demand import Demand
from app.split.interval import saving_interval
from app.split.recommend import Recommendation


def saving_as_json(recommendation: Recommendation, baseline: str) -> dict[str, Any] | None:
    """{low, high, includes: [...], fits, text} in USD/h, against a baseline; None when either split is infeasible.

    fits: whether the mix still has GPUs enough when every point is as slow as its sample allows.
    """
    demand = recommendation.demand
    found = saving_interval(demand, recommendation.answer, recommendation.baselines[baseline], price_ranges(demand))
    if found is None:
        return None
    return {
        "low": found.low,
        "high": found.high,
        "includes": list(found.includes),
        "fits": not found.short,
        "text": found.text,
    }


def price_ranges(demand: Demand) -> dict[str, tuple[float, float]]:
    """Per rented fleet the lowest and highest of its price and of the newest list price of its card in each class of
    provider. An owned fleet (one that pays its electricity) has no range."""
    found: dict[str, tuple[float, float]] = {}
    for offer in demand.fleets:
        newest: dict[str, ListPrice] = {}
        for price in sorted(list_prices(), key=lambda price: price.as_of):
            if same_gpu(price.gpu_name, offer.gpu):
                newest[price.provider_class] = price
        if offer.usd_per_gpu_hour is not None and newest and not offer.usd_per_kwh:
            prices = [offer.usd_per_gpu_hour, *(price.usd_per_gpu_hour for price in newest.values())]
            found[offer.name] = (min(prices), max(prices))
    return found
