"""How each figure was computed: its formula with the numbers of the answer in it. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from app.accounting.bill import VIEWS, View
from app.dashboard.figure_words import WORDS, written

Figures = Mapping[str, Mapping[str, Any]]
# The figures of which each basis is made.
TOKENS = {
    "total": ("prompt_tokens", "generated_tokens"), "computed": ("computed_tokens",), "output": ("generated_tokens",),
}  # fmt: skip
# What is used, idle and unallocated of each.
_PARTS = {
    "cost": ("cost_used", "cost_idle", "cost_unallocated"),
    "energy_kwh": ("energy_active_kwh", "energy_idle_kwh", "energy_unallocated_kwh"),
    "carbon_g": ("carbon_active_g", "carbon_idle_g", "carbon_unallocated_g"),
    "embodied_g": ("embodied_active_g", "embodied_idle_g", "embodied_unallocated_g"),
}
_AMORTISED = "kg x 1,000 / (years of life x 8,760) for every GPU-hour, and for owned GPUs also while they are off"


@dataclass(frozen=True)
class Asked:
    """What a formula is filled in with. hours: of the range, as text."""

    figures: Figures
    basis: str
    view: str
    hours: str

    def said(self, name: str) -> str:
        """E.g. "1,234 tokens", "$5.12"."""
        unit = WORDS[name].unit
        text = written(name, self.figures[name])
        return text if unit.startswith(("USD", "%")) else f"{text} {unit}"

    @property
    def tokens(self) -> str:
        names = TOKENS[self.basis]
        both = " + ".join(self.said(name) for name in names)
        return f"({both})" if len(names) > 1 else both


@dataclass(frozen=True)
class Formula:
    """in_words: with the names of its parts. parts: the figures that it reads, for any basis."""

    in_words: str
    parts: tuple[str, ...]
    filled: Callable[[Asked], str]


def _over_mtok(amount: str, words: str) -> Formula:
    return Formula(
        f"{words} / tokens x 1,000,000",
        (amount, "prompt_tokens", "computed_tokens", "generated_tokens"),
        lambda asked: f"{asked.said(amount)} / {asked.tokens} x 1,000,000",
    )


def _embodied(end: str) -> Formula:
    """By the least or the most of what is known."""
    return Formula(
        f"{_AMORTISED}; by the {end} kg of any method",
        ("embodied_g",),
        lambda asked: f"{asked.said('embodied_g')} x the {end} kg / the chosen kg",
    )


def _sci(embodied: str) -> Formula:
    return Formula(
        "(operational + embodied grams) / tokens x 1,000,000 (SCI, ISO/IEC 21031), location-based",
        ("carbon_g", embodied, "prompt_tokens", "computed_tokens", "generated_tokens"),
        lambda asked: f"({asked.said('carbon_g')} + {asked.said(embodied)}) / {asked.tokens} x 1,000,000",
    )


def _whole(name: str) -> Formula:
    """The parts that the cost view lets count."""
    parts = _PARTS[name]

    def filled(asked: Asked) -> str:
        counted = parts if asked.view == "bill" else (parts[VIEWS.index(cast(View, asked.view)) - 1],)
        return " + ".join(asked.said(part) for part in counted)

    words = "used + idle + unallocated, as far as the cost view lets them count"
    return Formula(f"{_AMORTISED}; {words}" if name == "embodied_g" else words, parts, filled)


FORMULAS: Mapping[str, Formula] = {
    "usd_per_mtok": _over_mtok("cost", "cost"),
    "g_per_mtok": _over_mtok("carbon_g", "grams of CO2e"),
    "carbon_market_g": Formula(
        "site energy x the suppliers' g/kWh, as each was in force",
        ("energy_site_kwh",),
        lambda asked: f"{asked.said('energy_site_kwh')} x the suppliers' g/kWh",
    ),
    "g_per_mtok_market": _over_mtok("carbon_market_g", "market-based grams of CO2e"),
    "embodied_low_g": _embodied("least"),
    "embodied_high_g": _embodied("most"),
    "embodied_g_per_mtok": _over_mtok("embodied_g", "embodied grams of CO2e"),
    "embodied_g_per_mtok_low": _over_mtok("embodied_low_g", "least embodied grams of CO2e"),
    "embodied_g_per_mtok_high": _over_mtok("embodied_high_g", "most embodied grams of CO2e"),
    "sci_g_per_mtok": _sci("embodied_g"),
    "sci_g_per_mtok_low": _sci("embodied_low_g"),
    "sci_g_per_mtok_high": _sci("embodied_high_g"),
    "tokens_per_joule": Formula(
        "tokens / (kWh x 3,600,000 J/kWh)",
        ("energy_kwh", "prompt_tokens", "computed_tokens", "generated_tokens"),
        lambda asked: f"{asked.tokens} / ({asked.said('energy_kwh')} x 3,600,000)",
    ),
    "joules_per_token": Formula(
        "kWh x 3,600,000 J/kWh / tokens",
        ("energy_kwh", "prompt_tokens", "computed_tokens", "generated_tokens"),
        lambda asked: f"{asked.said('energy_kwh')} x 3,600,000 / {asked.tokens}",
    ),
    "usd_per_hour": Formula(
        "cost / hours of the range", ("cost",), lambda asked: f"{asked.said('cost')} / {asked.hours} h"
    ),
    "mean_power_w": Formula(
        "energy / hours of the range", ("energy_kwh",), lambda asked: f"{asked.said('energy_kwh')} / {asked.hours} h"
    ),
    "cost_input": Formula(
        "cost x prefill time / (prefill time + decode time)",
        ("cost",),
        lambda asked: f"{asked.said('cost')} x its share of prompts",
    ),
    "cost_output": Formula("cost - input", ("cost", "cost_input"), lambda asked: (
        f"{asked.said('cost')} - {asked.said('cost_input')}"
    )),
    "slo_attainment_low": Formula(
        "requests within the SLO / all that finished, failed or were aborted; both ends of what the latency buckets "
        "leave open and of the 95% Wilson interval",
        ("slo_attainment_high", "ttft_n", "failed_requests"),
        lambda asked: (
            f"between {asked.said('slo_attainment_low')} and {asked.said('slo_attainment_high')} of "
            f"{asked.said('ttft_n')} with a first token, {asked.said('failed_requests')} failed"
        ),
    ),
    "cost_used": Formula("working + slack", ("cost_working", "cost_slack"), lambda asked: (
        f"{asked.said('cost_working')} + {asked.said('cost_slack')}"
    )),
    **{name: _whole(name) for name in _PARTS},
}  # fmt: skip


def parts_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """The figures to ask for, so that each of `names` can be shown with its formula."""
    wanted = [name for figure in names for name in (figure, *(FORMULAS[figure].parts if figure in FORMULAS else ()))]
    return tuple(dict.fromkeys(wanted))
