"""Small random demands with every kind of limit, as plain facts and as the product's demand and options."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from app.split.demand import Demand, Slo, WorkloadClass
from app.split.options import Option
from collectors.benchmark.run import Latency

from .builders import MODEL, a_demand, a_fleet, a_run, an_option


@dataclass(frozen=True)
class Pool:
    """A replica type of a fleet. timings: prefill and decode seconds per token; ms: metric -> percentile -> ms."""

    fleet: str
    gpus: int
    tokens_per_s: float
    prompt_share: float
    timings: tuple[float, float] | None
    idle_w: float
    loaded_w: float
    ms: dict[str, dict[float, float]]


@dataclass(frozen=True)
class Load:
    """slo: (metric, percentile, ms). shares: fleet -> (at least, at most)."""

    requests_per_s: float
    prompt_tokens: float
    generated_tokens: float
    slo: tuple[tuple[str, float, float], ...] = ()
    fleets: tuple[str, ...] | None = None
    zones: tuple[str, ...] | None = None
    shares: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def tokens_per_s(self) -> float:
        return self.requests_per_s * (self.prompt_tokens + self.generated_tokens)


@dataclass(frozen=True)
class Instance:
    """fleets and solve hold the keys of demand.toml."""

    loads: tuple[Load, ...]
    pools: tuple[Pool, ...]
    fleets: dict[str, dict[str, Any]]
    solve: dict[str, Any]

    def may_use(self, load: Load, pool: Pool) -> bool:
        fleet = self.fleets[pool.fleet]
        return (
            (load.fleets is None or pool.fleet in load.fleets)
            and (load.zones is None or fleet["zone"] in load.zones)
            and (fleet["max_gpus"] is None or pool.gpus <= fleet["max_gpus"])
            and all(self.measured_ms(pool, metric, percentile) <= ms for metric, percentile, ms in load.slo)
        )

    @staticmethod
    def measured_ms(pool: Pool, metric: str, percentile: float) -> float:
        """At the percentile, or the next higher one that was measured."""
        return pool.ms[metric][min(p for p in pool.ms[metric] if p >= percentile)]

    @staticmethod
    def replicas_of(load: Load, pool: Pool) -> float:
        """Filled replicas that the whole load takes: its engine seconds where timings are known, else its tokens."""
        as_measured = load.tokens_per_s / pool.tokens_per_s
        if pool.timings is None or load.tokens_per_s == 0:
            return as_measured
        prefill, decode = pool.timings
        tokens = load.prompt_tokens + load.generated_tokens
        wanted = (load.prompt_tokens * prefill + load.generated_tokens * decode) / tokens
        return as_measured * wanted / (pool.prompt_share * prefill + (1 - pool.prompt_share) * decode)


def draw(seed: int) -> Instance:
    """Every kind of limit in about a quarter of the instances. Whole numbers are mixed in, so that demands also meet
    capacities exactly.
    """
    dice = random.Random(seed)
    whole = dice.random() < 0.3
    names = ["a", "b", "c"][: dice.randint(1, 3)]
    solve: dict[str, Any] = {
        "max_utilisation": dice.choice([0.5, 0.8, 1.0]),
        "carbon_usd_per_t": dice.choice([0.0, 0.0, 50.0, 1000.0]),
        "carbon_signal": dice.choice(["average", "average", "average", "marginal"]),
    }
    if dice.random() < 0.3:
        solve |= {
            "switch_usd_per_replica": dice.choice([1.0, 12.0, 60.0, 60.0]),
            "switch_hours": dice.choice([12.0, 24.0]),
        }
    pools = tuple(_pool(dice, names, whole) for _ in range(dice.choice([1, 2, 3, 3, 3])))
    loads = tuple(_load(dice, names, whole) for _ in range(dice.choice([1, 2, 2, 3])))
    fleets = {name: _fleet(dice, [pool.gpus for pool in pools if pool.fleet == name]) for name in names}
    return Instance(loads, pools, fleets, solve | _caps(dice, pools, loads))


def _pool(dice: random.Random, names: list[str], whole: bool) -> Pool:
    gpus = dice.choice([1, 1, 2, 4])
    loaded_w = gpus * dice.uniform(150, 700)
    p50, p99 = dice.choice([10.0, 30.0]), dice.choice([40.0, 90.0, 300.0])
    return Pool(
        fleet=dice.choice(names),
        gpus=gpus,
        tokens_per_s=float(100 * dice.randint(3, 12)) if whole else dice.uniform(250, 1200),
        prompt_share=0.5,
        timings=(0.001, dice.choice([0.002, 0.005])) if not whole and dice.random() < 0.4 else None,
        idle_w=dice.uniform(0, 0.6) * loaded_w,
        loaded_w=loaded_w,
        ms={"ttft": {50.0: p50, 99.0: p99}, "tpot": {90.0: dice.choice([20.0, 40.0])}},
    )


def _load(dice: random.Random, names: list[str], whole: bool) -> Load:
    limits = [("ttft", 50.0, 35.0), ("ttft", 95.0, 100.0), ("ttft", 99.0, 500.0), ("tpot", 90.0, 45.0)]
    limits.append(dice.choice([("ttft", 50.0, 20.0), ("tpot", 90.0, 30.0)]))
    shares = {}
    if dice.random() < 0.3:
        least = dice.choice([0.0, 0.0, 0.2, 0.5])
        shares[dice.choice(names)] = (least, 1.0 if least else dice.choice([0.5, 0.75]))
    return Load(
        requests_per_s=dice.randint(0, 6) / 2 if whole else dice.uniform(0.1, 5),
        prompt_tokens=100.0 if whole else dice.choice([50.0, 100.0, 250.0]),
        generated_tokens=100.0,
        slo=tuple(dice.sample(limits, dice.choice([0, 0, 1, 2]))),
        fleets=None if dice.random() < 0.8 else tuple(dice.sample(names, dice.randint(1, len(names)))),
        zones=None if dice.random() < 0.8 else tuple(dice.sample(["X", "Y"], dice.choice([1, 2]))),
        shares=shares,
    )


def _fleet(dice: random.Random, sizes: list[int]) -> dict[str, Any]:
    spot, spares = dice.random() < 0.25, dice.random() < 0.25
    today = [
        {"model": MODEL, "gpus_per_replica": gpus, "replicas": dice.randint(0, 3)}
        for gpus in sorted({*sizes, 8})
        if dice.random() < 0.8
    ]
    return {
        "usd_per_gpu_hour": dice.choice([0.0, 0.25, 0.5, 2.0, round(dice.uniform(0.1, 3), 3)]),
        "usd_per_kwh": dice.choice([0.0, 0.0, 0.3]),
        "max_gpus": dice.choice([None, None, None, 2, 4, 8, 12]),
        "zone": dice.choice(["X", "Y"]),
        "g_per_kwh": dice.choice([0.0, 20.0, 242.0, 700.0]),
        "marginal_g_per_kwh": dice.choice([0.0, 100.0, 900.0]),
        "pue": dice.choice([1.0, 1.2]),
        "availability": dice.choice([0.5, 0.9]) if spot else 1.0,
        "spare_replicas": dice.choice([1, 2]) if spares and not spot else 0,
        "embodied_g_per_gpu_hour": dice.choice([0.0, 3.0, 40.0]),
        "embodied_policy": dice.choice(["full", "full", "sunk"]),
        "today": today,
    }


def _caps(dice: random.Random, pools: tuple[Pool, ...], loads: tuple[Load, ...]) -> dict[str, float]:
    """Caps near what the loads take on some pool, so that they bind often and are too tight at times."""
    pool = dice.choice(pools)
    replicas = 1 + sum(Instance.replicas_of(load, pool) for load in loads)
    near = {
        "max_watts": replicas * pool.loaded_w,
        "max_usd_per_hour": replicas * pool.gpus * 1.0,
        "max_g_per_hour": replicas * pool.loaded_w / 1000 * 300,
    }
    return {name: dice.uniform(0.5, 2.0) * value for name, value in near.items() if dice.random() < 0.25}


def as_demand(instance: Instance) -> tuple[Demand, list[Option]]:
    """The offered rate numbers the pools from 1."""
    fleets = {
        name: a_fleet(name, g_per_kwh=facts["g_per_kwh"], **{k: v for k, v in facts.items() if k != "g_per_kwh"})
        for name, facts in instance.fleets.items()
    }
    options = [_option(fleets[pool.fleet], pool, number) for number, pool in enumerate(instance.pools, start=1)]
    classes = [_class(load, f"class {number}") for number, load in enumerate(instance.loads, start=1)]
    return a_demand(classes, list(fleets.values()), **instance.solve), options


def _option(fleet: Any, pool: Pool, number: int) -> Option:
    run = a_run(
        gpu_count=pool.gpus,
        duration_s=1e6 / pool.tokens_per_s,
        prompt_tokens=round(1e6 * pool.prompt_share),
        generated_tokens=round(1e6 * (1 - pool.prompt_share)),
        latency={metric: Latency(quantiles_ms=quantiles) for metric, quantiles in pool.ms.items()},
        offered_requests_per_s=float(number),
    )
    option = an_option(fleet, run, idle_w=pool.idle_w, loaded_w=pool.loaded_w)
    if pool.timings is None:
        return option
    prefill, decode = pool.timings
    return replace(option, point=replace(option.point, prefill_s_per_token=prefill, decode_s_per_token=decode))


def _class(load: Load, name: str) -> WorkloadClass:
    return WorkloadClass.model_validate(
        {
            "name": name,
            "model": MODEL,
            "requests_per_s": load.requests_per_s,
            "prompt_tokens": load.prompt_tokens,
            "generated_tokens": load.generated_tokens,
            "slo": [
                Slo.model_validate({"metric": metric, "percentile": percentile, "max_ms": ms})
                for metric, percentile, ms in load.slo
            ],
            "fleets": load.fleets,
            "zones": load.zones,
            "share": [{"fleet": fleet, "min": low, "max": high} for fleet, (low, high) in load.shares.items()],
        }
    )
