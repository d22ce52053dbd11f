"""Question: which part of the tokens does each fleet make with how many replicas, and what would be recommended?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from app import units
from app.accounting.account import Account
from app.accounting.figure import Figure, missing, total
from app.accounting.periods import Period
from app.answers.account import accounts_of
from app.answers.figures import as_json
from app.answers.query import AccountQuery, Step
from app.config import Config
from app.split.demand import Demand
from app.split.scenario import what_if
from app.store.accounts import engine_rows
from app.store.database import Store
from app.store.moment import moment

_FIGURES = ("prompt_tokens", "generated_tokens", "usd_per_hour")
# A longer range is looked at by days; a piece of an hour counts as at least so long.
_MOST_HOURS, _LEAST_S = 1000, 1800.0
Split = Callable[[Demand], Mapping[str, Any]]


@dataclass
class _Part:
    """What one fleet did for one model. replicas: mean number over the range."""

    usd_per_hour: Figure = field(default_factory=lambda: missing("USD/h", "measured", "no GPU was seen"))
    tokens_per_s: float = 0.0
    replicas: float = 0.0
    kinds: set[tuple[str, int]] = field(default_factory=set)


@dataclass(frozen=True)
class _Measured:
    """parts: by fleet and model (None: GPUs without an engine). steps: tokens/s by model in each of periods."""

    parts: Mapping[tuple[str | None, str | None], _Part]
    periods: Sequence[Period]
    step: Step
    steps: Sequence[Mapping[str, float]]

    @property
    def busiest(self) -> int:
        return max(range(len(self.steps)), key=lambda number: sum(self.steps[number].values()))


def split_today(
    store: Store, config: Config, query: AccountQuery, now: datetime, demand: Demand, split: Split
) -> dict[str, Any]:
    """Measured over the range, of all fleets and models; beside it what `split` says of `demand`.

    Where engines serve every model of the demand, its classes are scaled to the tokens of the busiest step, which a
    split has to carry, each class keeping its part of its model's: `is_scaled`. Then only these models are compared,
    without GPUs that have no engine; `left_out` are the others.
    """
    asked = replace(
        query, by="fleet_model", fleet=None, model=None, view="bill", basis="total", step=None, figures=_FIGURES
    )
    measured = _measured(store, config, asked, now)
    busiest = measured.steps[measured.busiest]
    changes = dict(_scaled(demand, busiest))
    answer = split(what_if(demand, changes))
    models = {model for _, model in measured.parts}
    compared = {model for model in models if _is_of(model, demand)} if changes else models
    parts = {key: part for key, part in measured.parts.items() if key[1] in compared}
    return {
        "fleets": list(_rows(parts, answer)),
        "tokens_per_s": sum(part.tokens_per_s for part in parts.values()),
        "busiest": measured.periods[measured.busiest].label,
        "step": measured.step,
        "demand_tokens_per_s": answer["tokens_per_s"],
        "is_scaled": bool(changes),
        "models": sorted({one.model for one in demand.classes}),
        "left_out": sorted(model for model in models - compared if model is not None),
        "changes": changes,
        "status": answer["status"],
        "reason": answer["reason"],
        "usd_per_hour": answer["usd_per_hour"],
    }


def served_rates(
    store: Store, config: Config, query: AccountQuery, now: datetime, demand: Demand
) -> tuple[dict[str, float], datetime]:
    """Requests/s of the classes by their knobs as their models were served in the busiest step of the range, and when
    that began; none unless engines serve every model of the demand."""
    measured = _measured(store, config, replace(query, by="fleet_model", figures=_FIGURES), now)
    return dict(_scaled(demand, measured.steps[measured.busiest])), measured.periods[measured.busiest].start


def _measured(store: Store, config: Config, query: AccountQuery, now: datetime) -> _Measured:
    found = accounts_of(store, config, query, [Period(query.start, query.end, "")], now)
    parts = {(key["fleet"], key["model"]): _of(found.line(0, one)) for one in found.keys for key in [dict(one)]}
    seconds = (min(query.end, now) - query.start).total_seconds()
    step: Step = "hour" if query.points("hour") <= _MOST_HOURS else "day"
    periods = replace(query, step=step).periods()
    steps: list[dict[str, float]] = [{} for _ in periods]
    for row in _engines(store, config, query, periods, now):
        part, position = parts.setdefault((row["fleet"], row["model"]), _Part()), row["position"]
        tokens = (row["prompt_tokens"] or 0) + (row["generated_tokens"] or 0)
        part.tokens_per_s += tokens / seconds
        part.replicas += row["seen_s"] / seconds
        if row["gpu_name"] is not None:
            part.kinds.add((row["gpu_name"], row["replica_gpus"]))
        if row["model"] is not None:
            rate = tokens / _seconds(periods[position], now)
            steps[position][row["model"]] = steps[position].get(row["model"], 0.0) + rate
    return _Measured(parts, periods, step, steps)


def _engines(
    store: Store, config: Config, query: AccountQuery, periods: Sequence[Period], now: datetime
) -> list[dict[str, Any]]:
    oldest_us = units.us_of_moment(now - timedelta(days=config.store.minute_days))
    bounds = [(number, *_bounds_us(period)) for number, period in enumerate(periods)]
    with moment(store) as reader:
        return engine_rows(reader, bounds, by="fleet", known_at=query.known_at or now, oldest_minute_us=oldest_us)


def _bounds_us(period: Period) -> tuple[int, int]:
    return units.us_of_moment(period.start), units.us_of_moment(period.end)


def _seconds(period: Period, now: datetime) -> float:
    """How long it was so far; at least some minutes, so that a short piece of an hour is not its busiest."""
    return max((min(period.end, now) - period.start).total_seconds(), _LEAST_S)


def _of(account: Account) -> _Part:
    return _Part(account.figure("usd_per_hour"))


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
    """Tokens/s of the engines that serve a model."""
    return sum(rate for one, rate in served.items() if _name(one) == _name(model))


def _is_of(model: str | None, demand: Demand) -> bool:
    return model is not None and _name(model) in {_name(one.model) for one in demand.classes}


def _name(model: str) -> str:
    """A model's name, whatever organisation stands before it."""
    return model.rsplit("/", 1)[-1].casefold()


def _rows(parts: Mapping[tuple[str | None, str | None], _Part], answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    pools: dict[str | None, list[Mapping[str, Any]]] = {}
    for pool in answer["replicas"]:
        pools.setdefault(pool["fleet"], []).append(pool)
    made = sum(part.tokens_per_s for part in parts.values())
    planned = sum(share["tokens_per_s"] for share in answer["shares"])
    for name in sorted({*(fleet for fleet, _ in parts), *pools}, key=lambda name: (name is None, name or "")):
        mine, pooled = [part for (fleet, _), part in parts.items() if fleet == name], pools.get(name, [])
        tokens = sum(part.tokens_per_s for part in mine)
        carried = sum(share["tokens_per_s"] for share in answer["shares"] if share["fleet"] == name)
        kinds = sorted({kind for part in mine for kind in part.kinds})
        yield {
            "fleet": name,
            "tokens_per_s": tokens,
            "token_share": tokens / made if made else None,
            "replicas": sum(part.replicas for part in mine),
            "kinds": [{"card": card, "gpus": gpus} for card, gpus in kinds],
            "usd_per_hour": as_json(total((part.usd_per_hour for part in mine or [_Part()]), "USD/h")),
            "recommended_token_share": carried / planned if planned else None,
            "recommended_replicas": sum(pool["count"] for pool in pooled),
            "recommended_kinds": [{"card": pool["gpu"], "gpus": pool["gpus_per_replica"]} for pool in pooled],
            "recommended_usd_per_hour": sum(pool["usd_per_hour"] for pool in pooled),
        }
