"""Question: what is asked of us, and what do we have? Today's demand as measured, in the keys of demand.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from app import units
from app.answers.grid import grid_now
from app.answers.grid_sources import grid_sources
from app.answers.offers import at_prices_in_force, with_embodied
from app.answers.terms import fleet_site
from app.config import Config
from app.errors import DemandError
from app.facts.book import FactBook
from app.facts.fields import LAST_MOMENT
from app.facts.kinds import LatencySlo
from app.split.demand import Demand, parse_demand
from app.store.accounts import engine_rows
from app.store.choices import fleet_gpus
from app.store.database import Store
from app.store.moment import moment
from app.store.reader import Reader

# A week holds the busiest hour of its weekdays and of its weekend.
BUSIEST_OF = timedelta(days=7)
SEEN_WITHIN = timedelta(days=1)
_HOUR = timedelta(hours=1)
# Of a model whose engines count no requests, so many tokens are one.
TOKENS_OF_A_REQUEST = 1000.0
WHERE = "live demand"
Row = Mapping[str, Any]


@dataclass
class _Served:
    """What a model was asked for: tokens and finished requests of the week, and tokens of the busiest hour."""

    prompt: int = 0
    generated: int = 0
    finished: int = 0
    busiest: int = 0
    by_shape: dict[tuple[str, int], float] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return self.prompt + self.generated


def live_demand(store: Store, config: Config, book: FactBook, now: datetime) -> Demand:
    """Each model's traffic in the busiest full hour of the last week, on the fleets that have GPUs now.

    A class per model: the hour's tokens/s, as requests of the week's mean tokens, with the SLO in force. Fleets: price,
    zone with the grams of now, PUE and embodied carbon in force, GPUs seen in the last day, and the replicas of the
    last full hour. Raises DemandError where no model or no fleet was seen.
    """
    end = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    with moment(store) as reader:
        served = _served(reader, end)
        cards = _cards(reader, now)
        fleets = [_fleet(reader, config, book, name, *card, served, now) for name, card in cards.items()]
    if not served or not fleets:
        lacks = "no fleet with a GPU was seen in the last day" if served else "no model was served in the last week"
        raise DemandError(f"{WHERE}: {lacks}; accepted: a store that engines and fleets of wattmix.toml feed")
    content = {"class": list(_classes(served, book, now)), "fleet": fleets}
    demand = with_embodied(parse_demand(content, WHERE), book, config, now)
    return at_prices_in_force(demand, book, config.prices, now)


def _served(reader: Reader, end: datetime) -> dict[str, _Served]:
    hours = int(BUSIEST_OF / _HOUR)
    edges = [units.us_of_moment(end - (hours - number) * _HOUR) for number in range(hours + 1)]
    bounds = [(number, *span) for number, span in enumerate(pairwise(edges))]
    rows = [row for row in engine_rows(reader, bounds, by="none", known_at=LAST_MOMENT) if row["model"] is not None]
    totals: dict[int, int] = {}
    for row in rows:
        totals[row["position"]] = totals.get(row["position"], 0) + _tokens(row)
    busiest = max(totals, key=lambda number: (totals[number], number), default=None)
    found: dict[str, _Served] = {}
    for row in rows:
        one = found.setdefault(row["model"], _Served())
        one.prompt += row["prompt_tokens"] or 0
        one.generated += row["generated_tokens"] or 0
        one.finished += row["finished"] or 0
        if row["position"] == busiest:
            one.busiest += _tokens(row)
        if row["position"] == hours - 1 and row["fleet"] is not None and row["replica_gpus"] is not None:
            shape = (row["fleet"], row["replica_gpus"])
            one.by_shape[shape] = one.by_shape.get(shape, 0.0) + units.hours(row["seen_s"])
    return {model: one for model, one in sorted(found.items()) if one.tokens}


def _tokens(row: Row) -> int:
    return (row["prompt_tokens"] or 0) + (row["generated_tokens"] or 0)


def _cards(reader: Reader, now: datetime) -> dict[str, tuple[str, int]]:
    """Of each fleet the card that it has most of, and how many."""
    found: dict[str, tuple[str, int]] = {}
    for fleet, card, gpus in fleet_gpus(reader, now - SEEN_WITHIN, now):
        found.setdefault(fleet, (card, gpus))
    return found


def _classes(served: Mapping[str, _Served], book: FactBook, now: datetime) -> Iterator[dict[str, Any]]:
    names = _short_names(list(served))
    for model, one in served.items():
        requests = one.finished or one.tokens / TOKENS_OF_A_REQUEST
        slo = book.value("slo", model, now)
        yield {
            "name": names[model],
            "model": model,
            "requests_per_s": one.busiest / units.SECONDS_PER_HOUR * requests / one.tokens,
            "prompt_tokens": one.prompt / requests,
            "generated_tokens": one.generated / requests,
            "slo": [{"metric": slo.metric, "percentile": slo.percentile, "max_ms": slo.max_ms}]
            if isinstance(slo, LatencySlo)
            else [],
        }


def _short_names(models: Sequence[str]) -> dict[str, str]:
    """Without the organisation, where that leaves them different."""
    short = {model: model.rsplit("/", 1)[-1] for model in models}
    names = list(short.values())
    return {model: (name if names.count(name) == 1 else model)[:100] for model, name in short.items()}


def _fleet(
    reader: Reader,
    config: Config,
    book: FactBook,
    name: str,
    card: str,
    gpus: int,
    served: Mapping[str, _Served],
    now: datetime,
) -> dict[str, Any]:
    grid, pue = fleet_site(book, config, name, now)
    content: dict[str, Any] = {
        "name": name,
        "gpu": card,
        "max_gpus": gpus,
        "pue": pue,
        "today": list(_running(name, served)),
    }
    if grid.g_per_kwh is None:
        return content
    (found,) = grid_now(reader, config, [grid], now, None)
    current = found["current"]
    is_table = current["from"] == "table"
    told = {} if is_table else {"g_per_kwh": current["g_per_kwh"], "g_source": _g_source(current)}
    return content | {"zone": grid.zone, "marginal_g_per_kwh": _marginal(reader, config, grid.zone, now), **told}


def _g_source(current: Row) -> str:
    """E.g. "Electricity Maps, live"."""
    return f"{current['title']}, {current['from']}"


def _marginal(reader: Reader, config: Config, zone: str, now: datetime) -> float | None:
    """The newest marginal value of the last day; None where no provider tells one."""
    for source in grid_sources(reader, config, now, zones=(zone,)):
        newest = source["newest"]
        if newest is not None and newest["kind"] == "marginal" and newest["g_per_kwh"] is not None:
            return float(newest["g_per_kwh"])
    return None


def _running(fleet: str, served: Mapping[str, _Served]) -> Iterator[dict[str, Any]]:
    for model, one in served.items():
        for (name, gpus), replicas in sorted(one.by_shape.items()):
            if name == fleet and round(replicas):
                yield {"model": model, "gpus_per_replica": gpus, "replicas": round(replicas)}
