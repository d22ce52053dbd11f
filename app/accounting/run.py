"""The account of one benchmark run: dollars, joules and grams over one set of denominators."""

from __future__ import annotations

from dataclasses import dataclass

from app.accounting.carbon import GridFactor, operational_g
from app.accounting.cost import Rate, window_cost_usd
from app.accounting.energy import joules_per_token, site_energy_j, tdp_energy_j, tokens_per_kwh
from app.accounting.figure import Figure
from app.accounting.tokens import TokenCounts, per_mtok
from collectors.benchmark.run import BenchmarkRun


@dataclass(frozen=True)
class RunAssumptions:
    """What a run's file does not say. tdp_w: power limit of one GPU in W, None when unknown."""

    rate: Rate
    tdp_w: float | None
    grid: GridFactor
    pue: float


@dataclass(frozen=True)
class RunAccount:
    """A run with its figures. Energy is GPU only (`it` boundary without host share); grams are operational, x PUE."""

    run: BenchmarkRun
    assumptions: RunAssumptions
    cost_usd: Figure
    usd_per_mtok_total: Figure
    usd_per_mtok_computed: Figure
    usd_per_mtok_output: Figure
    total_tokens_per_s: float
    output_tokens_per_s: float
    requests_per_s: float
    energy_j: Figure
    joules_per_token: Figure
    tokens_per_kwh: Figure
    g_per_mtok: Figure


def account_run(run: BenchmarkRun, assumptions: RunAssumptions) -> RunAccount:
    """Cost, energy and carbon of the run's whole duration, per token of that duration.

    Source: AIBC 2025 section 2.3: $/Mtok = price per hour x duration / 3600 / (input + output tokens) x 1e6.
    """
    tokens = TokenCounts(run.prompt_tokens, run.generated_tokens)
    total = tokens.of("total")
    energy = tdp_energy_j(assumptions.tdp_w, run.gpu_count, run.duration_s, run.gpu_name)
    site_energy = site_energy_j(energy, assumptions.pue)
    cost = window_cost_usd(assumptions.rate, run.gpu_count, run.duration_s, site_energy)
    return RunAccount(
        run=run,
        assumptions=assumptions,
        cost_usd=cost,
        usd_per_mtok_total=per_mtok(cost, total, "USD/Mtok"),
        usd_per_mtok_computed=per_mtok(cost, tokens.of("computed"), "USD/Mtok"),
        usd_per_mtok_output=per_mtok(cost, tokens.of("output"), "USD/Mtok"),
        total_tokens_per_s=run.total_tokens / run.duration_s,
        output_tokens_per_s=run.generated_tokens / run.duration_s,
        requests_per_s=run.completed / run.duration_s,
        energy_j=energy,
        joules_per_token=joules_per_token(energy, total),
        tokens_per_kwh=tokens_per_kwh(energy, total),
        g_per_mtok=per_mtok(operational_g(site_energy, assumptions.grid), total, "gCO2e/Mtok"),
    )
