"""Prices that markets asked, in the store: added when they say otherwise than before, and never changed.

So a price never changes an hour before it was told, and any earlier moment's knowledge can be asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import polars as pl

from app.facts.market_prices import MarketPrice
from app.store.database import Store
from app.store.reader import Reader

_MOMENT = pl.Datetime("us", "UTC")
_SCHEMA: dict[str, Any] = {
    "gpu_name": pl.String, "provider": pl.String, "market": pl.String, "usd_per_gpu_hour": pl.Float64,
    "count": pl.Int32, "as_of": _MOMENT, "known_at": _MOMENT,
}  # fmt: skip
_NAMES = ", ".join(field.name for field in fields(MarketPrice))
_Series = tuple[str, str, str]

# one row per price that was told
_ALL = f"SELECT {_NAMES} FROM market_price ORDER BY as_of, known_at"

# one row per card and market: what was told last
_LAST = f"""
    SELECT {_NAMES} FROM market_price
    QUALIFY row_number() OVER (PARTITION BY gpu_name, provider, market ORDER BY as_of DESC, known_at DESC) = 1
"""


def read_market_prices(reader: Reader) -> list[MarketPrice]:
    """All of them, whatever is known when."""
    return _prices(reader.query(_ALL))


def last_market_prices(reader: Reader) -> list[MarketPrice]:
    """Of each card and market what it said last, by card; none where that was ended."""
    found = _prices(reader.query(_LAST))
    return sorted((price for price in found if price.usd_per_gpu_hour is not None), key=_series)


def append_market_prices(store: Store, prices: Iterable[MarketPrice], confirmed_after: timedelta) -> int:
    """Add those that say otherwise than the last one of their card and market, and those that say the same after so
    long that it would grow old; all or none. How many were added.
    """
    with store.transaction(beside_ingest=True) as connection:
        last = _last(connection)
        news = [price for price in prices if _is_news(price, last.get(_series(price)), confirmed_after)]
        _insert(connection, news)
    store.facts_revision += bool(news)
    return len(news)


def end_market_prices(store: Store, kept: Collection[tuple[str, str]], now: datetime) -> int:
    """End the prices of all markets but those of `kept`: what they said counts up to `now`. How many were ended."""
    with store.transaction(beside_ingest=True) as connection:
        over = [
            replace(price, usd_per_gpu_hour=None, count=0, known_at=now, as_of=_after(price, now))
            for price in _last(connection).values()
            if price.usd_per_gpu_hour is not None and price.key not in kept
        ]
        _insert(connection, over)
    store.facts_revision += bool(over)
    return len(over)


def _after(price: MarketPrice, now: datetime) -> datetime:
    """Time only goes on, also where a clock was set back."""
    return max(now, price.as_of + timedelta(microseconds=1))


def _is_news(price: MarketPrice, last: MarketPrice | None, confirmed_after: timedelta) -> bool:
    if last is None:
        return True
    if price.as_of <= last.as_of:
        return False
    return price.usd_per_gpu_hour != last.usd_per_gpu_hour or price.as_of - last.as_of >= confirmed_after


def _last(connection: duckdb.DuckDBPyConnection) -> Mapping[_Series, MarketPrice]:
    return {_series(price): price for price in _prices(connection.sql(_LAST).pl())}


def _series(price: MarketPrice) -> _Series:
    return price.gpu_name, price.provider, price.market


def _insert(connection: duckdb.DuckDBPyConnection, prices: Sequence[MarketPrice]) -> None:
    if not prices:
        return
    connection.register("incoming_prices", pl.DataFrame(list(map(astuple, prices)), schema=_SCHEMA, orient="row"))
    connection.execute("INSERT INTO market_price BY NAME SELECT * FROM incoming_prices")
    connection.unregister("incoming_prices")


def _prices(rows: pl.DataFrame) -> list[MarketPrice]:
    return [
        MarketPrice(**row | {name: row[name].astimezone(UTC) for name in ("as_of", "known_at")})
        for row in rows.iter_rows(named=True)
    ]
