"""Question: which part of the tokens does each fleet make with how many replicas, and what would be recommended?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from app.accounting.account import Account
from app.accounting.figure import missing
from app.accounting.periods import Period
from app.answers.account import accounts_of
from app.answers.figures import as_json
from app.answers.query import AccountQuery, Step
from app.config import Config
from app.split.demand import Demand
from app.split.scenario import what_if
from app.store.accounts import engine_rows, moment
from app.store.database import Store

_FIGURES = ("prompt_tokens", "generated_tokens", "usd_per_hour")
# A longer range is looked at by days; a piece of an hour counts as at least so long.
_MOST_HOURS, _LEAST_S = 1000, 1800.0
Split = Callable[[Demand], Mapping[str, Any]]


@dataclass
class _Fleet:
    """tokens_per_s: by model. replicas: mean number over the range."""

    tokens_per_s: dict[str, float] = field(default_factory=dict)
    replicas: float = 0.0
    kinds: set[tuple[str, int]] = field(default_factory=set)
    usd_per_hour: dict[str, Any] = field(default_factory=lambda: as_json(missing("USD/h", "measured", "no GPU")))


@dataclass(frozen=True)
class _Busiest:
    """The step of the range with most tokens: its local start, and tokens/s by model."""

    start: str
    step: Step
    tokens_per_s: Mapping[str, float]


def split_today(
    store: Store, config: Config, query: AccountQuery, now: datetime, demand: Demand, split: Split
) -> dict[str, Any]:
    """Measured over the range, of all fleets and models; beside it what `split` says of `demand`.

    Where engines serve every model of the demand, its classes are scaled to the tokens of the busiest step, which a
    split has to carry, each class keeping its part of its model's: `is_scaled`.
    """
    asked = replace(query, by="fleet", fleet=None, model=None, view="bill", basis="total", step=None, figures=_FIGURES)
    measured, busiest = _measured(store, config, asked, now)
    mean_rate = sum(sum(fleet.tokens_per_s.values()) for fleet in measured.values())
    changes = dict(_scaled(demand, busiest.tokens_per_s))
    answer = split(what_if(demand, changes))
    return {
        "fleets": list(_rows(measured, answer, mean_rate)),
        "tokens_per_s": mean_rate,
        "busiest": {"start": busiest.start, "step": busiest.step, "tokens_per_s": sum(busiest.tokens_per_s.values())},
        "demand_tokens_per_s": answer["tokens_per_s"],
        "is_scaled": bool(changes),
        "models": sorted({one.model for one in demand.classes}),
        "changes": changes,
        "status": answer["status"],
        "reason": answer["reason"],
        "usd_per_hour": answer["usd_per_hour"],
    }


def _measured(
    store: Store, config: Config, query: AccountQuery, now: datetime
) -> tuple[dict[str | None, _Fleet], _Busiest]:
    """The fleets over the range, and its busiest hour or, of a long range, day."""
    by_fleet = accounts_of(store, config, query, [Period(query.start, query.end, "")], now)
    fleets = {dict(key)["fleet"]: _of(by_fleet.line(0, key)) for key in by_fleet.keys}
    seconds = (min(query.end, now) - query.start).total_seconds()
    step: Step = "hour" if query.points("hour") <= _MOST_HOURS else "day"
    periods = replace(query, step=step).periods()
    steps: list[dict[str, float]] = [{} for _ in periods]
    for row in _engines(store, config, query, periods, now):
        fleet = fleets.setdefault(row["fleet"], _Fleet())
        tokens = (row["prompt_tokens"] or 0) + (row["generated_tokens"] or 0)
        if row["model"] is not None:
            fleet.tokens_per_s[row["model"]] = fleet.tokens_per_s.get(row["model"], 0.0) + tokens / seconds
            mine = steps[row["position"]]
            mine[row["model"]] = mine.get(row["model"], 0.0) + tokens / _seconds(periods[row["position"]], now)
        fleet.replicas += row["seen_s"] / seconds
        if row["gpu_name"] is not None:
            fleet.kinds.add((row["gpu_name"], row["replica_gpus"]))
    busiest = max(range(len(periods)), key=lambda number: sum(steps[number].values()))
    return fleets, _Busiest(periods[busiest].label, step, steps[busiest])


def _engines(
    store: Store, config: Config, query: AccountQuery, periods: Sequence[Period], now: datetime
) -> list[dict[str, Any]]:
    oldest_us = int((now - timedelta(days=config.store.minute_days)).timestamp() * 1e6)
    bounds = [(number, *_bounds_us(period)) for number, period in enumerate(periods)]
    with moment(store) as reader:
        return engine_rows(reader, bounds, by="fleet", known_at=query.known_at or now, oldest_minute_us=oldest_us)


def _bounds_us(period: Period) -> tuple[int, int]:
    return int(period.start.timestamp() * 1e6), int(period.end.timestamp() * 1e6)


def _seconds(period: Period, now: datetime) -> float:
    """How long it was so far; at least some minutes, so that a short piece of an hour is not its busiest."""
    return max((min(period.end, now) - period.start).total_seconds(), _LEAST_S)


def _of(account: Account) -> _Fleet:
    return _Fleet(usd_per_hour=as_json(account.figure("usd_per_hour")))


def _scaled(demand: Demand, served: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Requests/s of each class, so that each model has the tokens/s that it is served; none where a model has none."""
    wanted: dict[str, float] = {}
    for one in demand.classes:
        wanted[one.model] = wanted.get(one.model, 0.0) + one.tokens_per_s
    found = {model: _served(model, served) for model in wanted}
    if not all(found.values()) or not all(wanted.values()):
        return
    for one in demand.classes:
        yield f"rps.{one.name}", one.requests_per_s * found[one.model] / wanted[one.model]


def _served(model: str, served: Mapping[str, float]) -> float:
    """Tokens/s of the engines that serve a model, whatever organisation stands before its name."""
    name = model.rsplit("/", 1)[-1].casefold()
    return sum(rate for one, rate in served.items() if one.rsplit("/", 1)[-1].casefold() == name)


def _rows(measured: Mapping[str | None, _Fleet], answer: Mapping[str, Any], tokens: float) -> Iterator[dict[str, Any]]:
    pools: dict[str | None, list[Mapping[str, Any]]] = {}
    for pool in answer["replicas"]:
        pools.setdefault(pool["fleet"], []).append(pool)
    planned = sum(share["tokens_per_s"] for share in answer["shares"])
    for name in sorted({*measured, *pools}, key=lambda name: (name is None, name or "")):
        fleet, mine = measured.get(name, _Fleet()), pools.get(name, [])
        made = sum(fleet.tokens_per_s.values())
        carried = sum(share["tokens_per_s"] for share in answer["shares"] if share["fleet"] == name)
        yield {
            "fleet": name,
            "tokens_per_s": made,
            "token_share": made / tokens if tokens else None,
            "replicas": fleet.replicas,
            "kinds": [{"card": card, "gpus": gpus} for card, gpus in sorted(fleet.kinds)],
            "usd_per_hour": fleet.usd_per_hour,
            "recommended_token_share": carried / planned if planned else None,
            "recommended_replicas": sum(pool["count"] for pool in mine),
            "recommended_kinds": [{"card": pool["gpu"], "gpus": pool["gpus_per_replica"]} for pool in mine],
            "recommended_usd_per_hour": sum(pool["usd_per_hour"] for pool in mine),
        }
