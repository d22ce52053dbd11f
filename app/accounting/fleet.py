"""The account of a fleet and model over a period, from what its GPUs used and its engines did.

Until facts are dated, money is the fleet's price now in force (or the list price of the day) for every provisioned
hour, and carbon the zone's yearly average; idle time is part of the line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app import units
from app.accounting.carbon import GridFactor, operational_g
from app.accounting.cost import Rate, window_cost_usd
from app.accounting.energy import (
    Boundary,
    MeteredEnergy,
    coverage,
    covered_enough,
    site_energy_j,
    tokens_per_joule,
)
from app.accounting.figure import Figure, Method, missing, total, weakest
from app.accounting.latency import Bucket, merged, quantile
from app.accounting.line import AccountLine, Period
from app.accounting.tokens import Basis, TokenCounts, cached_from_lookups, per_mtok

TTFT_PERCENTILES = (50.0, 90.0, 99.0)


@dataclass(frozen=True)
class GpuUse:
    """One GPU's part in a line. shared: it also belongs to other models' lines, in equal parts."""

    name: str
    metered: MeteredEnergy
    simulated: bool = False
    shared: bool = False


@dataclass(frozen=True)
class EngineUse:
    """What engines of one model on one fleet did; None where no engine tells.

    unplaced: how many of them made tokens on GPUs that are not known. gap_s: seconds of intervals longer than a minute.
    """

    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    cached_tokens: int | None = None
    prefix_query_tokens: int | None = None
    prefix_hit_tokens: int | None = None
    finished: int | None = None
    failed: int | None = None
    gap_s: float = 0.0
    unplaced: int = 0
    simulated: bool = False
    ttft: Sequence[Bucket] = field(default_factory=tuple)

    def tokens(self) -> TokenCounts | None:
        """Its token counts; None when prompt or generated tokens are not told."""
        if self.prompt_tokens is None or self.generated_tokens is None:
            return None
        if self.cached_tokens is not None:
            return TokenCounts(self.prompt_tokens, self.generated_tokens, self.cached_tokens)
        if self.prefix_query_tokens is None or self.prefix_hit_tokens is None:
            return TokenCounts(self.prompt_tokens, self.generated_tokens)
        served = cached_from_lookups(self.prompt_tokens, self.prefix_query_tokens, self.prefix_hit_tokens)
        return TokenCounts(self.prompt_tokens, self.generated_tokens, *served)


@dataclass(frozen=True)
class Terms:
    """What a fleet pays and where its electricity comes from. rates: of each GPU name in the fleet."""

    rates: Mapping[str, Rate]
    grid: GridFactor
    pue: float


def account_line(
    period: Period,
    fleet: str | None,
    model: str | None,
    gpus: Sequence[GpuUse],
    engines: EngineUse | None,
    terms: Terms,
    *,
    boundary: Boundary,
    basis: Basis,
) -> AccountLine:
    """The line of a fleet and model: all ratios share its tokens, its period and its GPUs (design law 3)."""
    method = _method(gpus, engines)
    metered = [gpu.metered for gpu in gpus]
    share = coverage(metered)
    energy = covered_enough(total((gpu.metered.energy_j(gpu.name) for gpu in gpus), "J"), share)
    site = site_energy_j(energy, terms.pue)
    chosen = site if boundary == "site" else energy
    cost = total((_cost(gpu, terms) for gpu in gpus), "USD")
    carbon = operational_g(site, terms.grid)
    counts, tokens = _counts(engines), _tokens(model, engines, gpus, basis)
    histogram = merged(engines.ttft) if engines else []
    gpu_hours = units.hours(sum(part.provisioned_s for part in metered))
    labelled = _Label(method)
    return AccountLine(
        period=period,
        fleet=fleet,
        model=model,
        boundary=boundary,
        basis=basis,
        gpu_hours=labelled(Figure(gpu_hours, "GPU-h", _split_method(gpus))),
        **{name: labelled(figure) for name, figure in counts.items()},
        energy_j=labelled(chosen),
        cost_usd=labelled(cost),
        usd_per_mtok=labelled(per_mtok(cost, tokens, "USD/Mtok")),
        tokens_per_joule=labelled(tokens_per_joule(chosen, tokens)),
        carbon_g=labelled(carbon),
        g_per_mtok=labelled(per_mtok(carbon, tokens, "gCO2e/Mtok")),
        ttft={percentile: quantile(histogram, percentile) for percentile in TTFT_PERCENTILES},
        coverage=share,
        method=weakest((method, energy.method, _split_method(gpus))),
        price_source="; ".join(sorted({terms.rates[gpu.name].source for gpu in gpus})),
        grid=f"{terms.grid.label}, PUE {terms.pue:g}",
    )


def _method(gpus: Sequence[GpuUse], engines: EngineUse | None) -> Method:
    simulated = any(gpu.simulated for gpu in gpus) or (engines is not None and engines.simulated)
    return "simulated" if simulated else "measured"


@dataclass(frozen=True)
class _Label:
    """Gives a figure the line's own method where that is the weaker one: simulated numbers stay labelled (law 10)."""

    method: Method

    def __call__(self, figure: Figure) -> Figure:
        method = weakest((self.method, figure.method))
        return Figure(figure.value, figure.unit, method, figure.reason, figure.coverage)


def _split_method(gpus: Sequence[GpuUse]) -> Method:
    """A GPU that several models share is split by a rule, not by a measurement."""
    return "estimated" if any(gpu.shared for gpu in gpus) else "measured"


def _cost(gpu: GpuUse, terms: Terms) -> Figure:
    site = site_energy_j(gpu.metered.energy_j(gpu.name), terms.pue)
    return window_cost_usd(terms.rates[gpu.name], 1, gpu.metered.provisioned_s, site)


def _counts(engines: EngineUse | None) -> dict[str, Figure]:
    tokens = engines.tokens() if engines else None
    method: Method = "interpolated" if engines and engines.gap_s > 0 else "measured"
    values: dict[str, tuple[int | None, str, Method]] = {
        "prompt_tokens": (engines.prompt_tokens if engines else None, "tokens", method),
        "cached_tokens": (tokens.cached if tokens else None, "tokens", tokens.cached_method if tokens else method),
        "generated_tokens": (engines.generated_tokens if engines else None, "tokens", method),
        "requests": (engines.finished if engines else None, "requests", method),
        "failed_requests": (engines.failed if engines else None, "requests", method),
    }
    reason = "no engine" if engines is None else "not told by the engine"
    return {
        name: missing(unit, how, reason) if value is None else Figure(value, unit, how)
        for name, (value, unit, how) in values.items()
    }


def _tokens(model: str | None, engines: EngineUse | None, gpus: Sequence[GpuUse], basis: Basis) -> Figure:
    """The tokens that divide; missing when they were not made on exactly the line's GPUs."""
    if engines is None:
        return missing("tokens", "measured", "no engine on these GPUs" if model is None else "no engine told tokens")
    if engines.unplaced:
        return missing("tokens", "measured", f"the GPUs of {engines.unplaced} of its engines are not known")
    if not gpus:
        return missing("tokens", "measured", "its GPUs were not measured")
    tokens = engines.tokens()
    return tokens.of(basis) if tokens else missing("tokens", "measured", "tokens are not told by the engine")
