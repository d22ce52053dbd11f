"""`wattmix prices`: what RunPod and Vast ask for GPUs now, beside the list price and what counts. It sets nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answers.findings import duration
from app.answers.market_prices import market_prices
from app.answers.price_sources import prices_told
from app.commands.opening import opened
from app.config import Config, load_config
from app.errors import BadParameter
from app.facts.book import FactBook
from app.formatting import MISSING, usd
from collectors.http.client import Http
from collectors.http.transport import Bounds
from collectors.price.registry import PROVIDERS

# A person waits.
BOUNDS = Bounds(connect_s=5.0, read_s=10.0, total_s=15.0)


def show(
    source: str | None,
    gpu: str | None,
    base_url: str | None,
    db: Path | None,
    config_file: Path | None,
    *,
    as_json: bool,
) -> int:
    """The exit code: 1 where no source answered."""
    if source is not None and source not in PROVIDERS:
        raise BadParameter(f"`--source`: given {source!r}; accepted: {', '.join(PROVIDERS)}")
    if base_url is not None and source is None:
        raise BadParameter(f"`--base-url` needs a `--source`; accepted: {', '.join(PROVIDERS)}")
    config = load_config(config_file)
    sources = _sources(config, db, config_file)
    http = Http(bounds=BOUNDS)
    asked = [known.make(http, base_url) for name, known in PROVIDERS.items() if source in (None, name)]
    told = FactBook([], market_prices=prices_told(sources))
    answer = market_prices(asked, datetime.now(UTC), told, config.prices, gpu=gpu)
    answer |= {"max_age_days": config.prices.max_age_days, "sources": sources}
    if as_json:
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))
    else:
        console = Console(soft_wrap=True)
        for part in _parts(answer):
            console.print(part)
    return 0 if answer["prices"] or not answer["problems"] else 1


def _sources(config: Config, db: Path | None, config_file: Path | None) -> list[dict[str, Any]]:
    """What the hub asks, with what it was told; without any, the store is left alone."""
    if not config.prices.source:
        return []
    with opened(db, config, config_file) as backend:
        sources: list[dict[str, Any]] = backend.health()["prices"]
    return sources


def _parts(answer: dict[str, Any]) -> Iterator[Text | Table]:
    if answer["prices"]:
        yield _table(answer["prices"])
        yield from _remarks(answer["prices"])
        yield Text("USD per GPU and hour, as asked now. Nothing was set: a price of yours is a fact (wattmix facts).")
    elif not answer["problems"]:
        yield Text("no price for this card")
    yield Text(_counting(answer))
    for note in answer["notes"]:
        yield Text(note)
    for problem in answer["problems"]:
        yield Text(f"{problem['provider']}: {problem['problem']}", "yellow")


def _counting(answer: dict[str, Any]) -> str:
    """What counts for a fleet without a price of its own."""
    age = f"at most {answer['max_age_days']} days old"
    if not answer["sources"]:
        return f"No [[prices.source]] is configured: a fleet without a price of its own has the list price, {age}."
    markets = ", ".join(
        f"{one['title']} {one['market']} ({one['state']}, cards: {len(one['prices'])}, every {duration(one['poll_s'])})"
        for one in answer["sources"]
    )
    counting = f"a fleet without a price of its own has the first of these, else the list price, {age}"
    return f"The hub asks {markets}; {counting}."


def _table(prices: Iterable[dict[str, Any]]) -> Table:
    table = Table("GPU", "source", "market", "$/GPU-h", "list price", "offers", "in force", header_style="bold")
    for price in prices:
        listed = f"{usd(price['list_usd_per_gpu_hour'])} ({price['list_price']})" if price["list_price"] else MISSING
        asked = Text(usd(price["usd_per_gpu_hour"], 3), "red" if price["refused"] else "")
        table.add_row(
            Text(price["gpu"]), price["provider"], price["market"], asked, listed, str(price["count"]), _in_force(price)
        )
    return table


def _in_force(price: dict[str, Any]) -> Text:
    """E.g. "$0.34 (list price, neocloud_community, 2026-09-25)"."""
    rate = price["in_force"]
    if rate["usd_per_gpu_hour"] is None:
        return Text(f"{MISSING} ({rate['reason']})")
    return Text(f"{usd(rate['usd_per_gpu_hour'])} ({rate['source'].partition(':')[0]})")


def _remarks(prices: Iterable[dict[str, Any]]) -> Iterator[Text]:
    for price in prices:
        named = f"{price['gpu']}, {price['provider']} {price['market']}: "
        if price["refused"]:
            yield Text(f"{named}not to be used: {price['refused']}", "red")
        for caution in price["cautions"]:
            yield Text(f"{named}{caution}", "yellow")
