"""How each figure of an account is named, written and explained: the same on every page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from app.accounting.tokens import BASES
from app.formatting import MISSING, grams, number, percent, usd

Form = Callable[[float | None], str]
Better = Literal["less", "more"]
Figure = Mapping[str, Any]


@dataclass(frozen=True)
class Words:
    """label: for a card or a column. unit: for an axis. better: which way a change is good; None: neither.

    d3: the number format of a chart's hover, dollars included. whole: the figure with its unit.
    """

    label: str
    unit: str
    form: Form
    better: Better | None
    d3: str
    explained: str
    whole: Form


def _dollars(label: str, explained: str, better: Better | None = "less", digits: int = 2, unit: str = "USD") -> Words:
    form = partial(usd, digits=digits)
    return Words(label, unit, form, better, f"$,.{digits}f", explained, form)


def _count(label: str, unit: str, explained: str, better: Better | None = None, digits: int = 0) -> Words:
    """The unit stands behind the number, where the label does not say it."""
    form = partial(number, digits=digits)
    is_said = unit.lower() in label.lower().replace(",", "").split()
    whole = form if is_said else partial(_with_unit, form=form, unit=unit)
    return Words(label, unit, form, better, f",.{digits}f", explained, whole)


def _with_unit(value: float | None, form: Form, unit: str) -> str:
    return MISSING if value is None else f"{form(value)} {unit}"


def _grams(label: str, explained: str, better: Better | None = None) -> Words:
    return Words(label, "gCO2e", partial(number, digits=0), better, ",.0f", explained, grams)


def _share(label: str, explained: str, better: Better | None = None) -> Words:
    form = partial(percent, digits=1)
    return Words(label, "%", form, better, ".1%", explained, form)


_PER_TOKEN: tuple[tuple[str, str, str, Better], ...] = (
    ("joules_per_token", "J/token", "Energy over tokens", "less"),
    ("tokens_per_joule", "tokens/J", "Tokens over energy", "more"),
)
_ENDS = (
    ("", "", ""),
    ("_low", ", least", ", by the least figure of the cards"),
    ("_high", ", most", ", by the most"),
)
WORDS: Mapping[str, Words] = {
    "cost": _dollars("Cost", "What is paid for the GPUs, in the cost view that is chosen.", None),
    "cost_used": _dollars("Used", "Paid for time in which an engine on the GPU worked: working and slack.", None),
    "cost_working": _dollars("Working", "What the same tokens cost at the best rate that the replicas kept up.", None),
    "cost_slack": _dollars("Slack", "What under-loading costs: used time above what the tokens needed."),
    "cost_idle": _dollars("Idle", "Paid while engines had nothing to do, rounding of billing included."),
    "cost_unallocated": _dollars("Unallocated", "Paid for GPUs without an engine."),
    "cost_input": _dollars("Input", "The part of the cost that prompts have, by prefill time.", None),
    "cost_output": _dollars("Output", "The part of the cost that generated tokens have, by decode time.", None),
    "usd_per_hour": _dollars("Spend, $/h", "Cost over the hours of the range.", None, unit="USD/h"),
    "usd_per_mtok": _dollars("$/Mtok", "Cost of a million tokens.", digits=3, unit="USD/Mtok"),
    "usd_per_mtok_input": _dollars("$/Mtok input", "Of a million prompt tokens.", digits=3, unit="USD/Mtok"),
    "usd_per_mtok_output": _dollars("$/Mtok output", "Of a million generated tokens.", digits=3, unit="USD/Mtok"),
    "gpu_hours": _count("GPU-hours", "GPU-h", "Hours for which the GPUs were there.", digits=1),
    "energy_kwh": _count("Energy", "kWh", "Within the boundary that is chosen.", "less", digits=2),
    **{
        f"energy_{boundary}_kwh": _count(label, "kWh", f"{taken_in}.", "less", digits=2)
        for boundary, label, taken_in in (
            ("gpu", "GPU energy", "Of the cards alone"),
            ("it", "IT energy", "Of the cards and their hosts' share"),
            ("site", "Site energy", "IT energy times the PUE"),
        )
    },
    "energy_active_kwh": _count("Active energy", "kWh", "While an engine worked.", digits=2),
    "energy_idle_kwh": _count("Idle energy", "kWh", "While engines had nothing to do.", "less", digits=2),
    "energy_unallocated_kwh": _count("Unallocated energy", "kWh", "Of GPUs without an engine.", "less", digits=2),
    "joules_per_token": _count("J/token", "J/token", "Energy over tokens.", "less", digits=3),
    "tokens_per_joule": _count("Tokens/J", "tokens/J", "Tokens over energy.", "more", digits=3),
    **{
        f"{name}_{basis}": _count(f"{label}, {basis}", label, f"{explained} of the basis {basis}.", better, digits=3)
        for name, label, explained, better in _PER_TOKEN
        for basis in BASES
    },
    "mean_power_w": _count("Mean power", "W", "Energy over the time of the range."),
    "carbon_g": _grams("CO2e", "Operational, location-based, of site energy.", "less"),
    "carbon_active_g": _grams("Active CO2e", "While an engine worked."),
    "carbon_idle_g": _grams("Idle CO2e", "While engines had nothing to do.", "less"),
    "carbon_unallocated_g": _grams("Unallocated CO2e", "Of GPUs without an engine.", "less"),
    "g_per_mtok": _count("gCO2e/Mtok", "gCO2e/Mtok", "Operational carbon of a million tokens.", "less", digits=1),
    "carbon_market_g": _grams("CO2e, market", "By the suppliers' factors; never added.", "less"),
    "g_per_mtok_market": _count(
        "gCO2e/Mtok, market", "gCO2e/Mtok", "Market-based carbon of a million tokens.", "less", digits=1
    ),
    **{
        f"embodied{end}_g": _grams(f"Embodied CO2e{label}", f"Of making the cards{by}.", "less")
        for end, label, by in _ENDS
    },
    "embodied_active_g": _grams("Active embodied CO2e", "For time in which an engine worked."),
    "embodied_idle_g": _grams("Idle embodied CO2e", "For time in which engines had nothing to do.", "less"),
    "embodied_unallocated_g": _grams(
        "Unallocated embodied CO2e", "Of GPUs without an engine, and owned ones that were off.", "less"
    ),
    **{
        f"{name}_g_per_mtok{end}": _count(
            f"{title}{label}", "gCO2e/Mtok", f"{explained} carbon of a million tokens{by}.", "less", digits=1
        )
        for name, title, explained in (
            ("embodied", "Embodied gCO2e/Mtok", "Embodied"),
            ("sci", "SCI, gCO2e/Mtok", "Operational and embodied"),
        )
        for end, label, by in _ENDS
    },
    "prompt_tokens": _count("Prompt tokens", "tokens", "As the engines count them, cached ones included."),
    "cached_tokens": _count("Cached tokens", "tokens", "Prompt tokens that came from a cache."),
    "computed_tokens": _count("Computed tokens", "tokens", "Prompt and generated tokens without cached ones."),
    "generated_tokens": _count("Generated tokens", "tokens", "As the engines count them."),
    "requests": _count("Requests", "requests", "That finished."),
    "failed_requests": _count("Failed requests", "requests", "That failed, were aborted or rejected.", "less"),
    "utilisation": _share("Utilisation", "Share of the GPUs' time in which an engine on them worked.", "more"),
    "throttled_share": _share("Throttled", "Share of the GPUs' time in which they were slowed down.", "less"),
    "ttft_n": _count("n", "requests", "First tokens behind the latencies."),
    "slo_attainment_low": _share("SLO ≥", "At least this share of requests was within the SLO of its model.", "more"),
    "slo_attainment_high": _share("SLO ≤", "At most this share of requests was within the SLO of its model.", "more"),
    **{
        f"{metric}_p{percentile}_ms": _count(
            f"{short} p{percentile}", "ms", f"{percentile}th percentile of {name}, of merged buckets.", "less"
        )
        for metric, short, name in (
            ("ttft", "TTFT", "the time to first token"),
            ("itl", "ITL", "the time between tokens"),
            ("e2e", "End-to-end", "the time from a request to its last token"),
        )
        for percentile in (50, 90, 99)
    },
}


def with_unit(name: str, figure: Figure) -> str:
    """The same with its unit, where neither the number's form nor the label says it, e.g. "73.08 kWh"."""
    return WORDS[name].whole(figure["value"])


def written(name: str, figure: Figure) -> str:
    """The figure as people read it; an en dash when it is missing."""
    return WORDS[name].form(figure["value"])
