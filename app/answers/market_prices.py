"""Question: what does a market ask for GPUs now, beside the dated list price, and is that to be believed?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from app.reference.gpus import same_gpu
from app.reference.prices import list_prices
from collectors.http.problem import SourceProblem
from collectors.price.point import PricePoint
from collectors.price.provider import PriceProvider
from collectors.price.sanity import TablePrice, cautions, refusal, table_price_for


def market_prices(sources: Sequence[PriceProvider], now: datetime, *, gpu: str | None = None) -> dict[str, Any]:
    """{"generated_at", "prices", "problems", "notes"}: of `gpu` only, else of all cards. Failed sources: problems.

    A price is {"provider", "gpu", "market", "usd_per_gpu_hour", "count", "as_of", "region", "memory_gb", "per",
    "list_usd_per_gpu_hour", "list_price", "refused", "cautions"}; refused: why it is not to be used, None where it is.
    """
    prices: list[dict[str, Any]] = []
    problems: list[dict[str, str]] = []
    notes: list[str] = []
    for source in sources:
        try:
            answer = source.prices()
        except SourceProblem as problem:
            problems.append({"provider": source.name, "problem": str(problem)})
            continue
        notes += [f"{source.name}: {note}" for note in answer.notes]
        if answer.problem is not None:
            problems.append({"provider": source.name, "problem": str(answer.problem)})
        prices += [_price(point, now) for point in answer.points if gpu is None or same_gpu(point.gpu_name, gpu)]
    return {"generated_at": now.isoformat(), "prices": prices, "problems": problems, "notes": notes}


def _price(point: PricePoint, now: datetime) -> dict[str, Any]:
    listed = table_price_for(point.market, _listed(point.gpu_name))
    return {
        "provider": point.provider,
        "gpu": point.gpu_name,
        "market": point.market,
        "usd_per_gpu_hour": point.usd_per_gpu_hour,
        "count": point.count,
        "as_of": point.as_of.isoformat(),
        "region": point.region,
        "memory_gb": point.memory_gb,
        "per": point.per,
        "list_usd_per_gpu_hour": listed.usd_per_gpu_hour if listed else None,
        "list_price": f"{listed.provider_class}, {listed.as_of}" if listed else None,
        "refused": refusal(point, listed, now),
        "cautions": list(cautions(point, listed)),
    }


def _listed(gpu_name: str) -> Iterator[TablePrice]:
    return (
        TablePrice(price.usd_per_gpu_hour, price.provider_class, price.as_of)
        for price in list_prices()
        if same_gpu(price.gpu_name, gpu_name)
    )
