"""Question: which markets are asked what GPUs cost, what did they say last, and how is asking them going?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from app.answers.asking import as_text, asking_as_json, failure, not_asked
from app.answers.findings import Finding, finding
from app.config import Config
from app.facts.market_prices import MarketPrice
from app.price_settings import PriceSource
from app.reference.gpus import display_name
from app.store.market_prices import last_market_prices
from app.store.reader import Reader
from app.store.source_states import PriceState, read_price_states
from collectors.price.registry import PROVIDERS

# A person reads so many of them; the rest are counted.
MOST_REFUSED = 5


def price_sources(reader: Reader, config: Config, now: datetime) -> list[dict[str, Any]]:
    """Each `[[prices.source]]` in its order, with the last price of each card and its findings."""
    if not config.prices.source:
        return []
    states, last = read_price_states(reader), last_market_prices(reader)
    return [
        _source(
            settings,
            states.get(settings.key, PriceState(*settings.key)),
            [price for price in last if price.key == settings.key],
            now,
        )
        for settings in config.prices.source
    ]


def _source(settings: PriceSource, state: PriceState, prices: list[MarketPrice], now: datetime) -> dict[str, Any]:
    source = {
        "provider": settings.provider,
        "title": PROVIDERS[settings.provider].title,
        "market": settings.market,
        "poll_s": settings.poll_s,
        **asking_as_json(state, now),
        "prices": [_price(price) for price in prices],
        "refused": [{"gpu": card, "reason": why} for card, why in state.refused],
    }  # fmt: skip
    source["state"] = _state(source)
    return source | {"findings": list(_findings(source))}


def _price(price: MarketPrice) -> dict[str, Any]:
    return {
        "gpu": price.gpu_name,
        "usd_per_gpu_hour": price.usd_per_gpu_hour,
        "count": price.count,
        "as_of": as_text(price.as_of),
        "known_at": as_text(price.known_at),
    }


def prices_told(sources: list[dict[str, Any]]) -> Iterator[MarketPrice]:
    """The last prices again, from an answer that may have come from a hub."""
    for source in sources:
        for price in source["prices"]:
            as_of, known_at = (datetime.fromisoformat(price[name]) for name in ("as_of", "known_at"))
            yield MarketPrice(
                price["gpu"], source["provider"], source["market"], price["usd_per_gpu_hour"], price["count"],
                as_of, known_at,
            )  # fmt: skip


def _state(source: Mapping[str, Any]) -> str:
    """failing, waiting (not asked yet) or ok."""
    if source["problem"] is not None:
        return "failing"
    return "waiting" if source["asked_at"] is None else "ok"


def _findings(source: Mapping[str, Any]) -> Iterator[Finding]:
    if source["state"] == "failing":
        kept = "what it said last, and list prices, count meanwhile" if source["prices"] else "list prices count"
        yield finding("warning", failure(source), f"{source['advice']}; until then {kept}")
    yield from not_asked(source)
    refused = source["refused"]
    remedy = "other prices of the card count; a price of yours (wattmix facts) counts before all"
    for one in refused[:MOST_REFUSED]:
        yield finding("note", f"its price of {display_name(one['gpu'])} is not used: {one['reason']}", remedy)
    if len(refused) > MOST_REFUSED:
        what = f"{len(refused) - MOST_REFUSED} more of its prices are not used"
        yield finding("note", what, "`wattmix status --format json` has each with its reason")
