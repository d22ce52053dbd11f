"""Question: which mix of fleets carries this demand at least cost?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from app.answers.curves import LiveCurves, blended_options, provenance
from app.answers.offers import at_prices_in_force, prices_as_json, with_all_prices, with_embodied
from app.answers.split_interval import saving_as_json
from app.config import Config, read_toml
from app.errors import DemandError, UnknownName
from app.facts.book import FactBook
from app.reference.gpus import display_name, find_gpu, same_gpu
from app.reference.tables import data_folder
from app.split.answer import Pool, Share, SplitAnswer
from app.split.demand import Demand, FleetOffer, parse_demand
from app.split.options import Fleet, Option
from app.split.recommend import Recommendation
from app.split.run_point import TDP_ESTIMATE
from app.split.scenario import knobs
from collectors.benchmark.run import BenchmarkRun

# Of docs/split.schema.json: fields may be added to an answer of it, and none is taken away or gets another type.
SCHEMA_VERSION = 1


def read_demand(path: Path) -> Demand:
    """The demand of a TOML file. Raises ConfigError or DemandError that names the file."""
    return parse_demand(read_toml(path), str(path))


def default_demand(config: Config, book: FactBook, now: datetime) -> Demand:
    """The demand named in wattmix.toml, else the shipped example, at the prices in force of the fleets it names."""
    path = Path(config.split.demand) if config.split.demand else data_folder() / "demand.example.toml"
    return at_prices_in_force(read_demand(path), book, config.prices, now)


def starting_knobs(demand: Demand, config: Config) -> dict[str, float | None]:
    """The what-if knobs at their present values; a fleet's g/kWh from its zone where the demand sets none."""
    start = knobs(demand)
    for offer in demand.fleets:
        start[f"g.{offer.name}"] = _carbon(offer, config)[0]
    return start


def with_options(
    demand: Demand,
    runs: Sequence[BenchmarkRun],
    config: Config,
    book: FactBook,
    now: datetime,
    live: LiveCurves | None = None,
) -> tuple[Demand, list[Option]]:
    """`demand` with all of its prices and embodied grams, and by its `sources` what it can be planned with."""
    demand = with_embodied(with_all_prices(demand, book, config.prices, now), book, config, now)
    sources = demand.solve.sources
    options: list[Option] = []
    for offer in demand.fleets:
        of_card = [run for run in runs if same_gpu(offer.gpu, run.gpu_name)] if sources != "live" else []
        points = live.of_offer(offer) if live is not None and sources != "runs" else []
        options += blended_options(_fleet(offer, demand, config), of_card, points)
    return demand, options


def _fleet(offer: FleetOffer, demand: Demand, config: Config) -> Fleet:
    spec = find_gpu(offer.gpu)
    kind = offer.kind or (spec.kind if spec else "unknown")
    g_per_kwh, label = _carbon(offer, config)
    priced = demand.solve.carbon_usd_per_t > 0 and demand.solve.carbon_signal == "average"
    if priced and (g_per_kwh is None or spec is None or spec.tdp_w is None):
        lacks = label if g_per_kwh is None else f"no TDP for {offer.gpu}"
        raise DemandError(f"fleet {offer.name}: a carbon price needs its grams, and they are unknown: {lacks}")
    return Fleet(offer, display_name(offer.gpu), kind, g_per_kwh, label)


def _carbon(offer: FleetOffer, config: Config) -> tuple[float | None, str]:
    if offer.g_per_kwh is not None:
        return offer.g_per_kwh, f"{offer.g_per_kwh:g} g/kWh ({offer.g_source or 'user'})"
    if offer.zone is None:
        return None, "neither zone nor g_per_kwh is set"
    try:
        factor = config.grid_factor(offer.zone)
    except UnknownName as problem:
        raise DemandError(f"fleet {offer.name}, `zone`: {problem}") from None
    return factor.g_per_kwh, factor.label


def split_as_json(recommendation: Recommendation) -> dict[str, Any]:
    """The recommendation as plain data: what `wattmix split --format json` and the API print."""
    demand, answer = recommendation.demand, recommendation.answer
    solve = demand.solve
    return {
        "schema_version": SCHEMA_VERSION,
        "status": answer.status,
        "reason": answer.reason,
        **_totals(answer),
        "shares": [_share(share) for share in answer.shares],
        "replicas": [_replica(pool) for pool in answer.pools],
        "reasons": [{"class": name, "text": text} for name, text in recommendation.reasons.items()],
        "excluded": [
            {"option": out.option.label, "class": out.class_name, "reason": out.reason} for out in answer.excluded
        ],
        "limits": list(answer.limits),
        "conflict": list(answer.conflict),
        "relaxation": asdict(answer.relaxation) if answer.relaxation else None,
        "missing": list(answer.missing),
        "baselines": {
            name: {"status": baseline.status, "reason": baseline.reason, **_totals(baseline),
                   "saving_usd_per_hour": saving_usd_per_hour(answer, baseline),
                   "saving_interval": saving_as_json(recommendation, name)}
            for name, baseline in recommendation.baselines.items()
        },
        "assumptions": {
            "basis": "total",
            "boundary": "GPU power without host; grams x PUE",
            "power_method": "; ".join(_power_methods(answer)) or TDP_ESTIMATE,
            "sources": solve.sources,
            "max_utilisation": solve.max_utilisation,
            "carbon_usd_per_t": solve.carbon_usd_per_t,
            "carbon_signal": solve.carbon_signal,
            "small_samples": solve.small_samples,
            "prices": prices_as_json(demand),
            "carbon": {pool.option.fleet.name: pool.option.fleet.carbon_label for pool in answer.pools},
            "embodied": {pool.option.fleet.name: pool.option.fleet.embodied_label for pool in answer.pools},
        },
        "solver": {
            "objective_usd_per_hour": answer.objective_usd_per_hour,
            "bound_usd_per_hour": answer.bound_usd_per_hour,
            "gap": answer.gap,
            "priced_g_per_hour": answer.priced_g_per_hour,
            "switch_usd_per_hour": answer.switch_usd_per_hour,
        },
    }  # fmt: skip


def mix_as_json(answer: SplitAnswer) -> dict[str, Any]:
    """One answer without what surrounds a recommendation."""
    return {
        "status": answer.status,
        "reason": answer.reason,
        **_totals(answer),
        "shares": [_share(share) for share in answer.shares],
        "replicas": [_replica(pool) for pool in answer.pools],
        "limits": list(answer.limits),
        "missing": list(answer.missing),
    }


def saving_usd_per_hour(answer: SplitAnswer, baseline: SplitAnswer) -> float | None:
    """What the mix saves against a baseline, in USD/h; None when either is infeasible."""
    if answer.usd_per_hour is None or baseline.usd_per_hour is None:
        return None
    return baseline.usd_per_hour - answer.usd_per_hour


def _totals(answer: SplitAnswer) -> dict[str, Any]:
    return {
        "usd_per_hour": answer.usd_per_hour,
        "usd_per_mtok": answer.usd_per_mtok,
        "watts": answer.power_w,
        "g_per_hour": answer.g_per_hour,
        "g_per_mtok": answer.g_per_mtok,
        "embodied_g_per_hour": answer.embodied_g_per_hour,
        "tokens_per_joule": answer.tokens_per_joule,
        "tokens_per_s": answer.tokens_per_s,
    }


def _power_methods(answer: SplitAnswer) -> list[str]:
    """Of the pools, each once."""
    return list(dict.fromkeys(pool.option.point.power_method for pool in answer.pools))


def _share(share: Share) -> dict[str, Any]:
    return {
        "class": share.class_name,
        "fleet": share.option.fleet.name,
        "gpus_per_replica": share.option.point.gpus,
        "qps_point": share.option.point.qps,
        "run_id": share.option.point.point_id,
        "share": share.share,
        "tokens_per_s": share.tokens_per_s,
        "flags": list(share.flags),
        "slo": [asdict(held) | {"margin": held.margin} for held in share.held],
    }


def _replica(pool: Pool) -> dict[str, Any]:
    return {
        "fleet": pool.option.fleet.name,
        "gpu": pool.option.point.gpu_name,
        "gpu_label": pool.option.fleet.gpu_label,
        "model": pool.option.point.model,
        "gpus_per_replica": pool.option.point.gpus,
        "qps_point": pool.option.point.qps,
        "count": pool.count,
        "spares": pool.spares,
        "utilisation": pool.utilisation,
        "usd_per_hour": pool.usd_per_hour,
        "watts": pool.power_w,
        "g_per_hour": pool.g_per_hour,
        "embodied_g_per_hour": pool.embodied_g_per_hour,
        "run_id": pool.option.point.point_id,
        "source_file": pool.option.point.source_file,
        "source_index": pool.option.point.source_index,
        "power_method": pool.option.point.power_method,
        "provenance": provenance(pool.option.point),
    }
