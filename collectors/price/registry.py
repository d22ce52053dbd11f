"""The sources of prices by name: what each is called, which markets it has, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collectors.http.client import Http
from collectors.price import runpod, vast
from collectors.price.point import Market
from collectors.price.provider import PriceProvider
from collectors.price.runpod import RunPod
from collectors.price.vast import Vast


@dataclass(frozen=True)
class Known:
    """make: of an HTTP client and another address than the usual one, if any."""

    title: str
    markets: tuple[Market, ...]
    make: Callable[[Http, str | None], PriceProvider]


PROVIDERS: Mapping[str, Known] = {
    runpod.NAME: Known(
        "RunPod", runpod.MARKETS, lambda http, base_url: RunPod(http, base_url=base_url or runpod.BASE_URL)
    ),
    vast.NAME: Known("Vast", vast.MARKETS, lambda http, base_url: Vast(http, base_url=base_url or vast.BASE_URL)),
}
