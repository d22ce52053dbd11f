"""Question: what did each benchmark run cost, in dollars, joules and grams?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from app.accounting import study
from app.accounting.carbon import GridFactor
from app.accounting.run import RunAccount, RunAssumptions, account_run
from app.answers.card_prices import card_price
from app.answers.terms import fleet_site, planned_rate
from app.config import Config
from app.errors import UnknownName
from app.facts.book import FactBook
from app.reference.gpus import find_gpu, same_gpu
from app.split.options import same_model
from app.split.point import is_small_sample
from app.split.run_point import is_burst, is_saturated
from app.spreadsheet import csv_text
from collectors.benchmark.run import BenchmarkRun, Latency

Assume = Literal["corrected", "study"]


@dataclass(frozen=True)
class Present:
    """By what runs are priced: a run says what a replica can do, and the facts in force now what that would cost.

    cards: fleets with the cards of their nodes.
    """

    book: FactBook
    config: Config
    now: datetime
    cards: Sequence[tuple[str, str]] = ()

    def fleet_of(self, gpu_name: str) -> str | None:
        """The first fleet of wattmix.toml whose `gpu` matches, else the first by name that has such cards."""
        fleet = self.config.fleet_of_gpu(gpu_name)
        if fleet is not None:
            return fleet.name
        return next((name for name, card in sorted(self.cards) if same_gpu(card, gpu_name)), None)


def assumptions_for(run: BenchmarkRun, present: Present, assume: Assume = "corrected") -> RunAssumptions:
    """What the run's file does not say. `study`: the published study's 700 W H100, 242 g/kWh and PUE 1.

    Otherwise price, PUE and zone in force now of the fleet of such GPUs, else that of the card when the run
    was made (now, where it does not say when), the card's own TDP and what holds for GPUs of no fleet.
    """
    fleet = present.fleet_of(run.gpu_name)
    rate = planned_rate(present.book, fleet, present.now) or card_price(
        present.book, present.config.prices, run.gpu_name, run.recorded_at or present.now
    )
    spec = find_gpu(run.gpu_name)
    tdp_w = spec.tdp_w if spec else None
    if assume == "study":
        known = [watts for name, watts in study.STUDY_TDP_W.items() if same_gpu(name, run.gpu_name)]
        return RunAssumptions(rate, known[0] if known else tdp_w, study.STUDY_GRID, study.PUE)
    return RunAssumptions(rate, tdp_w, *fleet_site(present.book, present.config, fleet, present.now))


def account_runs(
    runs: Sequence[BenchmarkRun],
    present: Present,
    *,
    model: str | None = None,
    gpu: str | None = None,
    assume: Assume = "corrected",
) -> list[RunAccount]:
    """The account of each run of `model` and `gpu` (None: all). Raises UnknownName when the store has no such run."""
    chosen = [run for run in runs if model is None or same_model(model, run.model)]
    if model is not None and not chosen:
        raise UnknownName(f"no run of model {model!r}; the store has: {_names(run.model for run in runs)}")
    on_gpu = [run for run in chosen if gpu is None or same_gpu(gpu, run.gpu_name)]
    if gpu is not None and not on_gpu:
        raise UnknownName(f"no run on GPU {gpu!r}; the store has: {_names(run.gpu_name for run in chosen)}")
    return [account_run(run, assumptions_for(run, present, assume)) for run in on_gpu]


def _names(names: Any) -> str:
    return ", ".join(sorted(set(names))) or "no runs yet (wattmix import PATH)"


def grid_label(factor: GridFactor, pue: float) -> str:
    return f"{factor.label}, PUE {pue:g}"


def run_row(account: RunAccount) -> dict[str, Any]:
    """The account as one flat row: the columns of `wattmix runs`, the page's table and the API. None is missing."""
    run, assumptions = account.run, account.assumptions
    ttft = run.latency.get("ttft", Latency())
    return {
        "model": run.model,
        "qps": run.offered_requests_per_s,
        "gpu": run.gpu_name,
        "gpu_count": run.gpu_count,
        "duration_s": run.duration_s,
        "completed": run.completed,
        "prompt_tokens": run.prompt_tokens,
        "generated_tokens": run.generated_tokens,
        "cost_per_run_usd": account.cost_usd.value,
        "usd_per_mtok_total": account.usd_per_mtok_total.value,
        "usd_per_mtok_computed": account.usd_per_mtok_computed.value,
        "usd_per_mtok_output": account.usd_per_mtok_output.value,
        "total_tokens_per_s": account.total_tokens_per_s,
        "output_tokens_per_s": account.output_tokens_per_s,
        "requests_per_s": account.requests_per_s,
        **_latency_cells("ttft", ttft),
        **_latency_cells("tpot", run.latency.get("tpot", Latency())),
        "joules_per_token": account.joules_per_token.value,
        "tokens_per_kwh": account.tokens_per_kwh.value,
        "energy_method": account.energy_j.method,
        "g_per_mtok": account.g_per_mtok.value,
        "usd_per_gpu_hour": assumptions.rate.usd_per_gpu_hour,
        "usd_per_kwh": assumptions.rate.tariff_usd_per_kwh,
        "price_source": assumptions.rate.source,
        "tdp_w": assumptions.tdp_w,
        "grid": grid_label(assumptions.grid, assumptions.pue),
        "missing": "; ".join(_reasons(account)) or None,
        "flags": " ".join(run_flags(run)) or None,
        "recorded_at": run.recorded_at.isoformat() if run.recorded_at else None,
        "source_file": run.source_file,
        "source_index": run.source_index,
        "source_line": run.source_line,
        "run_id": run.run_id,
    }


def _latency_cells(metric: str, latency: Latency) -> dict[str, float | None]:
    cells = {f"{metric}_mean_ms": latency.mean_ms}
    return cells | {f"{metric}_p{p}_ms": latency.quantiles_ms.get(float(p)) for p in (50, 90, 95, 99)}


def _reasons(account: RunAccount) -> list[str]:
    figures = {
        "cost": account.cost_usd,
        "usd_per_mtok_total": account.usd_per_mtok_total,
        "usd_per_mtok_computed": account.usd_per_mtok_computed,
        "energy": account.joules_per_token,
        "carbon": account.g_per_mtok,
    }
    found: dict[str, list[str]] = {}
    for name, figure in figures.items():
        if figure.reason:
            found.setdefault(figure.reason, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in found.items()]


def run_flags(run: BenchmarkRun) -> list[str]:
    """What to know of a run before quoting it. small_sample here means: too small for a p99."""
    flags = {"small_sample": is_small_sample(run.completed, 99), "burst": is_burst(run), "saturated": is_saturated(run)}
    return [name for name, holds in flags.items() if holds]


def rows_as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as CSV text, unrounded, missing as an empty cell."""
    return csv_text(list(rows[0]) if rows else _columns(), (row.values() for row in rows))


def _columns() -> list[str]:
    nothing = BenchmarkRun("none", None, "none", 1, None, None, None, 1, 0, 1.0, 0, 0, {}, None, "", 0, 1)
    present = Present(FactBook([]), Config(), datetime.now(UTC))
    return list(run_row(account_run(nothing, assumptions_for(nothing, present))))
