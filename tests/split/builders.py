"""Small demands, runs and options for the tests of the split; each test states only what it is about."""

from __future__ import annotations

from typing import Any

from app.split.demand import Demand, FleetOffer, Slo, WorkloadClass
from app.split.options import Fleet, Option
from app.split.run_point import point_of_run
from collectors.benchmark.run import BenchmarkRun, Latency

MODEL = "org/model"


def a_run(**changes: Any) -> BenchmarkRun:
    """1,000 requests offered at 4/s, served in 250 s with 100 + 100 tokens each: 800 tokens/s, steady, no latencies."""
    facts: dict[str, Any] = {
        "model": MODEL,
        "backend": "vllm",
        "gpu_name": "X",
        "gpu_count": 1,
        "offered_requests_per_s": 4.0,
        "burstiness": 1.0,
        "max_concurrency": None,
        "num_prompts": 1000,
        "completed": 1000,
        "duration_s": 250.0,
        "prompt_tokens": 100_000,
        "generated_tokens": 100_000,
        "latency": {},
        "recorded_at": None,
        "source_file": "run.json",
        "source_index": 0,
        "source_line": 1,
    }
    return BenchmarkRun(**(facts | changes))


def ttft(p99_ms: float, **quantiles_ms: float) -> dict[str, Latency]:
    """Latencies of a run: p99 TTFT, and more as p50=..., p100=..."""
    more = {float(name[1:]): value for name, value in quantiles_ms.items()}
    return {"ttft": Latency(quantiles_ms={99.0: p99_ms} | more)}


def a_class(name: str = "chat", **changes: Any) -> WorkloadClass:
    """1 request/s of 100 + 100 tokens: 200 tokens/s, no SLO."""
    facts = {"model": MODEL, "requests_per_s": 1.0, "prompt_tokens": 100.0, "generated_tokens": 100.0}
    return WorkloadClass(**({"name": name} | facts | changes))


def a_slo(max_ms: float, metric: str = "ttft", percentile: float = 99.0) -> Slo:
    return Slo.model_validate({"metric": metric, "percentile": percentile, "max_ms": max_ms})


def a_fleet(name: str = "fleet", *, kind: str = "enterprise", g_per_kwh: float | None = 100.0, **changes: Any) -> Fleet:
    """GPUs of card X at $1 an hour."""
    offer = FleetOffer(**({"name": name, "gpu": "X", "usd_per_gpu_hour": 1.0} | changes))
    label = "no zone is set" if g_per_kwh is None else f"{g_per_kwh:g} g/kWh (user)"
    return Fleet(offer=offer, gpu_label=f"card {offer.gpu}", kind=kind, g_per_kwh=g_per_kwh, carbon_label=label)


def an_option(
    fleet: Fleet, run: BenchmarkRun, *, idle_w: float | None = 100.0, loaded_w: float | None = 500.0
) -> Option:
    return Option(fleet, point_of_run(run, idle_w, loaded_w))


def a_demand(classes: list[WorkloadClass], fleets: list[Fleet], **solve: Any) -> Demand:
    """Exact (gap 0) and filled to 100% unless `solve` says otherwise."""
    return Demand.model_validate(
        {
            "class": classes,
            "fleet": [fleet.offer for fleet in fleets],
            "solve": {"gap": 0.0, "max_utilisation": 1.0} | solve,
        }
    )
