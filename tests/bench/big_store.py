"""A store of 1,000 GPUs and 30 days, put straight into its tables: what a hub would hold, with made-up noise.

Hours of all 30 days; minutes of the last day, and of the hours in which a range begins or a price changes; samples of
the last hours. Nothing here is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl

from app.answers.facts import take_over
from app.facts.fact import Fact
from app.facts.kinds import parse_value
from app.store.database import Store
from app.store.facts import append_facts
from tests.bench.big_fleet import CONFIG, DAY_US, FIRST_US, HOUR_US, MINUTE_US, NOW, NOW_US, make
from tests.bench.big_rows import HOURS, MINUTES, REGISTER, SAMPLES, TEMPORARY

# The price of one fleet falls in the middle of the month, at no whole hour.
PRICE_FELL_US = NOW_US - 14 * DAY_US - 57 * MINUTE_US


def build(path: Path) -> Store:
    """The store, without samples."""
    store = Store.open(path)
    with _tables(store) as connection:
        this_hour_us = NOW_US // HOUR_US * HOUR_US
        _fill(connection, HOURS, FIRST_US, this_hour_us)
        for hour_us in (FIRST_US, PRICE_FELL_US // HOUR_US * HOUR_US):
            _fill(connection, MINUTES, hour_us, hour_us + HOUR_US)
        _fill(connection, MINUTES, this_hour_us - DAY_US, NOW_US)
    take_over(store, CONFIG, NOW)
    lower = parse_value("price", {"plan": "rented", "per_gpu_hour": 2.0})
    fell_at = datetime.fromtimestamp(PRICE_FELL_US / 1e6, UTC)
    append_facts(store, [Fact("price", "h100-east", fell_at, NOW, "a contract", lower)])
    return store


def add_samples(store: Store, start_us: int, end_us: int) -> int:
    """Samples of [start, end): a row a second of each GPU, one every five seconds of each engine; how many rows."""
    with _tables(store) as connection:
        _fill(connection, SAMPLES, start_us, end_us)
    return raw_rows(store)


def raw_rows(store: Store) -> int:
    tables = ("gpu_sample", "engine_sample", "engine_latency_sample")
    counts = (f"(SELECT count(*) FROM {table})" for table in tables)
    return int(store.query(f"SELECT {' + '.join(counts)} AS n")["n"][0])


@contextmanager
def _tables(store: Store) -> Iterator[duckdb.DuckDBPyConnection]:
    """A transaction in which the made nodes, GPUs and engines are tables; the store has them, too."""
    made = make()
    with store.transaction() as connection:
        for name in ("nodes", "gpus", "engines"):
            connection.register(f"made_{name}", pl.DataFrame(getattr(made, name)))
        for statement in (*TEMPORARY, *REGISTER):
            connection.execute(statement)
        yield connection
        for name in ("nodes", "gpus", "engines"):
            connection.unregister(f"made_{name}")


def _fill(connection: duckdb.DuckDBPyConnection, statements: Sequence[str], start_us: int, end_us: int) -> None:
    """Fill tables with their rows of [start, end)."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE bench_span AS SELECT {start_us} AS start_us, {end_us} AS end_us")
    for statement in statements:
        connection.execute(statement)
