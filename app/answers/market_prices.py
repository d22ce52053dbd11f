"""Question: what does a market ask for GPUs now, beside the list price and what counts, and is it to be believed?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from app.accounting.cost import Rate
from app.answers.card_prices import card_price
from app.facts.book import FactBook
from app.price_settings import PriceSettings
from app.reference.gpus import card_key, find_gpu, same_gpu
from app.reference.prices import list_prices
from collectors.http.problem import SourceProblem
from collectors.price.point import PricePoint
from collectors.price.provider import PriceProvider
from collectors.price.sanity import TablePrice, cautions, refusal, table_price_for

# A price that is not used, of which card, and why.
Refusal = tuple[str, str]


def market_prices(
    sources: Sequence[PriceProvider], now: datetime, book: FactBook, settings: PriceSettings, *, gpu: str | None = None
) -> dict[str, Any]:
    """{"generated_at", "prices", "problems", "notes"}: of `gpu` only, else of all cards. Failed sources: problems.

    A price is {"provider", "gpu", "market", "usd_per_gpu_hour", "count", "as_of", "region", "memory_gb", "per",
    "list_usd_per_gpu_hour", "list_price", "refused", "cautions", "in_force"}; refused: why it is not to be used, None
    where it is. in_force: what counts now for a fleet of such cards that has no price of its own.
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
        prices += [
            _price(point, now) | {"in_force": _in_force(card_price(book, settings, card_of(point), now))}
            for point in answer.points
            if gpu is None or same_gpu(point.gpu_name, gpu)
        ]
    return {"generated_at": now.isoformat(), "prices": prices, "problems": problems, "notes": notes}


def believed(points: Iterable[PricePoint], now: datetime) -> tuple[dict[str, PricePoint], list[Refusal]]:
    """By card the prices of one market that are used, and those that are not.

    Where a source tells cards of one name apart by their memory, and the reference tables do not, the one with most
    offers counts.
    """
    used: dict[str, PricePoint] = {}
    keys: set[str] = set()
    refused: list[Refusal] = []
    for point in sorted(points, key=lambda point: (-point.count, point.usd_per_gpu_hour, point.gpu_name)):
        card = card_of(point)
        why = refusal(point, table_price_for(point.market, _listed(card)), now)
        if why is None and card_key(card) in keys:
            why = f"{point.usd_per_gpu_hour:.4g} USD/GPU-h is of another card of this name: {_memory(point)}"
        if why is None:
            used[card] = point
            keys.add(card_key(card))
        else:
            refused.append((card, why))
    return used, refused


def card_of(point: PricePoint) -> str:
    """The card's name in the reference tables, also where that has its memory in it; else as the source spells it."""
    names = (point.gpu_name,) if point.memory_gb is None else (f"{point.gpu_name} {point.memory_gb}GB", point.gpu_name)
    return next((spec.name for spec in map(find_gpu, names) if spec is not None), point.gpu_name)


def _memory(point: PricePoint) -> str:
    return "its memory is not told" if point.memory_gb is None else f"{point.memory_gb} GB"


def _price(point: PricePoint, now: datetime) -> dict[str, Any]:
    listed = table_price_for(point.market, _listed(card_of(point)))
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


def _in_force(rate: Rate) -> dict[str, Any]:
    return {
        "usd_per_gpu_hour": rate.usd_per_gpu_hour, "method": rate.method, "source": rate.source, "reason": rate.reason,
    }  # fmt: skip


def _listed(gpu_name: str) -> Iterator[TablePrice]:
    return (
        TablePrice(price.usd_per_gpu_hour, price.provider_class, price.as_of)
        for price in list_prices()
        if same_gpu(price.gpu_name, gpu_name)
    )
