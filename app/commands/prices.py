"""`wattmix prices`: what RunPod and Vast ask for GPUs now, beside the list price. It sets nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answers.market_prices import market_prices
from app.errors import BadParameter
from app.formatting import MISSING, usd
from collectors.http.client import Http
from collectors.http.transport import Bounds
from collectors.price import runpod, vast
from collectors.price.provider import PriceProvider
from collectors.price.runpod import RunPod
from collectors.price.vast import Vast

# A person waits.
BOUNDS = Bounds(connect_s=5.0, read_s=10.0, total_s=15.0)
_SOURCES: Mapping[str, Callable[[Http, str | None], PriceProvider]] = {
    "runpod": lambda http, base_url: RunPod(http, base_url=base_url or runpod.BASE_URL),
    "vast": lambda http, base_url: Vast(http, base_url=base_url or vast.BASE_URL),
}


def show(source: str | None, gpu: str | None, base_url: str | None, *, as_json: bool) -> int:
    """The exit code: 1 where no source answered."""
    if source is not None and source not in _SOURCES:
        raise BadParameter(f"`--source`: given {source!r}; accepted: {', '.join(_SOURCES)}")
    if base_url is not None and source is None:
        raise BadParameter(f"`--base-url` needs a `--source`; accepted: {', '.join(_SOURCES)}")
    http = Http(bounds=BOUNDS)
    asked = [make(http, base_url) for name, make in _SOURCES.items() if source in (None, name)]
    answer = market_prices(asked, datetime.now(UTC), gpu=gpu)
    if as_json:
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))
    else:
        console = Console(soft_wrap=True)
        for part in _parts(answer):
            console.print(part)
    return 0 if answer["prices"] or not answer["problems"] else 1


def _parts(answer: dict[str, Any]) -> Iterator[Text | Table]:
    if answer["prices"]:
        yield _table(answer["prices"])
        yield from _remarks(answer["prices"])
        yield Text("USD per GPU and hour, as asked now. Nothing was set: a price of yours is a fact (wattmix facts).")
    elif not answer["problems"]:
        yield Text("no price for this card")
    for note in answer["notes"]:
        yield Text(note)
    for problem in answer["problems"]:
        yield Text(f"{problem['provider']}: {problem['problem']}", "yellow")


def _table(prices: Iterable[dict[str, Any]]) -> Table:
    table = Table("GPU", "source", "market", "$/GPU-h", "list price", "offers", header_style="bold")
    for price in prices:
        listed = f"{usd(price['list_usd_per_gpu_hour'])} ({price['list_price']})" if price["list_price"] else MISSING
        asked = Text(usd(price["usd_per_gpu_hour"], 3), "red" if price["refused"] else "")
        table.add_row(Text(price["gpu"]), price["provider"], price["market"], asked, listed, str(price["count"]))
    return table


def _remarks(prices: Iterable[dict[str, Any]]) -> Iterator[Text]:
    for price in prices:
        named = f"{price['gpu']}, {price['provider']} {price['market']}: "
        if price["refused"]:
            yield Text(f"{named}not to be used: {price['refused']}", "red")
        for caution in price["cautions"]:
            yield Text(f"{named}{caution}", "yellow")
