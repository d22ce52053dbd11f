"""Question: what did each fleet do for each model in these periods, and what did it cost in dollars, joules, grams?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from app import units
from app.accounting.cost import Rate
from app.accounting.energy import Boundary, MeteredEnergy
from app.accounting.fleet import EngineUse, GpuUse, Terms, account_line
from app.accounting.latency import Bucket
from app.accounting.line import AccountLine, Period
from app.accounting.tokens import Basis
from app.config import Config
from app.reference.prices import list_price
from app.store.database import Store
from app.store.usage import usage

Key = tuple[int, str | None, str | None]


def account_lines(
    store: Store,
    config: Config,
    periods: Sequence[Period],
    *,
    boundary: Boundary = "it",
    basis: Basis = "total",
    now: datetime,
    known_at: datetime | None = None,
) -> list[AccountLine]:
    """A line per period, fleet and model, in that order; GPUs without an engine have a line without a model.

    now: the hub's clock: minutes older than [store] minute_days are read from hours. known_at: knowledge of fleets and
    GPUs up to then (None: all).
    """
    oldest_minute_us = int(now.timestamp() * 1e6) - int(config.store.minute_days * units.SECONDS_PER_DAY * 1e6)
    found = usage(store, periods, known_at=known_at or now, oldest_minute_us=oldest_minute_us)
    gpus = _grouped(found.gpus)
    engines = {_key(row): row for row in found.engines}
    ttft = _grouped(found.ttft)
    return [
        account_line(
            periods[key[0]],
            key[1],
            key[2],
            [_gpu_use(row) for row in gpus.get(key, [])],
            _engine_use(engines[key], ttft.get(key, [])) if key in engines else None,
            _terms(config, key[1], {row["name"] for row in gpus.get(key, [])}, periods[key[0]].start.date()),
            boundary=boundary,
            basis=basis,
        )
        for key in sorted(gpus.keys() | engines.keys(), key=_order)
    ]


def rate_of(config: Config, fleet: str | None, gpu_name: str, on: date) -> Rate:
    """The fleet's price of wattmix.toml, else the list price of the day."""
    known = next((one for one in config.fleet if one.name == fleet), None)
    return known.price.rate(known.name) if known and known.price else list_price(gpu_name, on)


def _terms(config: Config, fleet: str | None, gpu_names: set[str], on: date) -> Terms:
    known = next((one for one in config.fleet if one.name == fleet), None)
    zone = known.zone if known and known.zone else config.defaults.zone
    pue = known.pue if known else config.defaults.pue
    rates = {name: rate_of(config, fleet, name, on) for name in gpu_names}
    return Terms(rates, config.grid_factor(zone), pue)


def _key(row: Mapping[str, Any]) -> Key:
    return row["position"], row["fleet"], row["model"]


def _order(key: Key) -> tuple[Any, ...]:
    """By period, then fleets and models by name, what has none last."""
    position, fleet, model = key
    return position, fleet is None, fleet or "", model is None, model or ""


def _grouped(rows: Sequence[Mapping[str, Any]]) -> dict[Key, list[Mapping[str, Any]]]:
    groups: dict[Key, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_key(row), []).append(row)
    return groups


def _gpu_use(row: Mapping[str, Any]) -> GpuUse:
    columns = ("measured_j", "interpolated_j", "covered_s", "bridged_s", "provisioned_s")
    metered = MeteredEnergy(**{name: row[name] for name in columns})
    return GpuUse(row["name"], metered, simulated=row["simulated"], shared=row["shared"])


def _engine_use(row: Mapping[str, Any], ttft: Sequence[Mapping[str, Any]]) -> EngineUse:
    counts = ("prompt_tokens", "generated_tokens", "cached_tokens", "prefix_query_tokens", "prefix_hit_tokens")
    return EngineUse(
        **{name: row[name] for name in counts},
        finished=row["finished"],
        failed=row["failed"],
        gap_s=row["gap_s"],
        unplaced=row["unplaced"],
        simulated=row["simulated"],
        ttft=tuple(_buckets(ttft)),
    )


def _buckets(rows: Sequence[Mapping[str, Any]]) -> Iterator[Bucket]:
    for row in rows:
        upper_s = math.inf if row["upper_us"] is None else units.seconds_of_us(row["upper_us"])
        yield Bucket(units.seconds_of_us(row["lower_us"]), upper_s, row["n"])
