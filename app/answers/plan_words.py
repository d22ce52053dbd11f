"""A plan in words: what it saves, and where its load and its grams are from. Page and command say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.answers.split_plan import IN_EVERY_HOUR
from app.formatting import grams, number, percent, usd

Answer = Mapping[str, Any]
PEAK_SPLIT = "the best split of the busiest hours, run in all hours"


def saved(answer: Answer) -> str:
    """Against the same split in all hours, or why there is no such split."""
    saving, static = answer["saving"], answer["static"]["totals"]
    if saving is None:
        return f"Nothing to compare with: {answer['static']['reason']}."
    part = f" ({percent(abs(saving['usd']) / static['usd'], 1)})" if static["usd"] else ""
    dollars = f"{usd(abs(saving['usd']))}{part} {'less' if saving['usd'] >= 0 else 'more'}"
    if saving["g"] is None:
        carbon = "grams are not known in every hour"
    else:
        carbon = f"{grams(abs(saving['g']))} {'less' if saving['g'] >= 0 else 'more'}"
    return f"Against {PEAK_SPLIT} ({usd(static['usd'])}, {grams(static['g'])}): {dollars}, {carbon}."


def solved(answer: Answer) -> str:
    """How near the proven optimum it is."""
    assumed, totals = answer["assumptions"], answer["totals"]
    told = (
        f"At most {percent(answer['gap'], 2)} from the optimum: no plan is below {usd(answer['bound_usd'])} of the "
        f"{usd(totals['objective_usd'])} that are minimised (with the carbon price and switching)."
    )
    if answer["status"] == "feasible":
        told += f" {assumed['time_limit_s']:g} s were up before it was within {percent(assumed['gap'])}."
    return told


def sources(answer: Answer) -> list[str]:
    """A sentence for each load and each fleet's grid, those that are alike in one; and what else is assumed."""
    loads = _alike({name: _load(known) for name, known in answer["load"].items()})
    grids = _alike({name: _grid(name, known, answer) for name, known in answer["grid"].items()})
    assumed = answer["assumptions"]
    waits = assumed["deferrable"]
    return [
        *(f"Load of {names}: {told}." for told, names in loads.items()),
        *(f"Grid of {names}: {told}." for told, names in grids.items()),
        f"What may wait for a better hour: {', '.join(waits) if waits else 'nothing (no class is deferrable)'}.",
        f"A started replica runs at least {assumed['min_up_hours']} hours; before the first hour runs what the fleets' "
        "`today` says.",
    ]  # fmt: skip


def _alike(told: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name, words in told.items():
        found.setdefault(words, []).append(name)
    return {words: ", ".join(names) for words, names in found.items()}


def _load(known: Answer) -> str:
    if known["reason"] is not None:
        return f"the requests/s asked for, in every hour alike; {known['reason']}"
    return f"the requests/s asked for in the busiest hour of the week, in the others less, by the {known['source']}"


def _grid(fleet: str, known: Answer, answer: Answer) -> str:
    if known["zone"] is not None:
        if known["hours_told"]:
            return f"{known['zone']}, forecast by {known['source']}"
        is_fixed = known["source"].endswith(IN_EVERY_HOUR)
        return f"{known['zone']}, {'' if is_fixed else 'without a forecast: '}{known['source']}"
    own = {hour["g_per_kwh"][fleet] for hour in answer["hours"]} - {None}
    if not answer["hours"]:
        return str(known["source"])
    rest = f"{number(own.pop(), 0)} g/kWh {IN_EVERY_HOUR}" if own else "its grams are not known"
    return f"{known['source']}; {rest}"
