"""Why a demand cannot be met: the smallest set of its limits that conflict, and the cheapest single relaxation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.split.answer import Relaxation
from app.split.demand import Demand
from app.split.highs import Instance
from app.split.limits import wide_program
from app.split.mixed import Column, Row
from app.split.options import Option
from app.split.relaxation import cheapest_relaxation
from app.split.trials import Trials

MOST_ROUNDS = 40
# Begins the last sentence of the reason, where there is one.
CHEAPEST_RELAXATION = "Cheapest single relaxation"


@dataclass(frozen=True)
class Infeasibility:
    """conflict: in words, no limit of it can be left out; empty where no limit is at fault but what is measured."""

    conflict: tuple[str, ...]
    relaxation: Relaxation | None
    text: str


def why_infeasible(demand: Demand, options: Sequence[Option]) -> Infeasibility | None:
    """None when the demand, which the caller has seen to be infeasible, is so without any of its limits."""
    wide = wide_program(demand, options)
    if wide.hopeless:
        return None
    trials = Trials(wide)
    conflict = smallest_conflict(trials)
    named = tuple(wide.limits[index].text for index in sorted(conflict))
    relaxation = cheapest_relaxation(demand, trials, sorted(conflict))
    return Infeasibility(named, relaxation, _text(demand, named, relaxation))


def smallest_conflict(trials: Trials) -> frozenset[int]:
    """Of the sets of limits that no split holds together, one of the fewest limits.

    Each set that can be held leaves limits over of which any conflict has at least one; the fewest limits that meet
    all such rests are a conflict as soon as they cannot be held. Source: Ignatiev et al., Smallest MUS Extraction with
    Minimal Hitting Set Dualization, CP 2015. After MOST_ROUNDS, one of which no limit can be left out.
    """
    everything = frozenset(range(len(trials.wide.limits)))
    rests: list[frozenset[int]] = []
    for _ in range(MOST_ROUNDS):
        candidate = _fewest_meeting(rests)
        held = trials.holds(candidate)
        if held is None:
            return candidate
        for limit in sorted(everything - held):
            if limit not in held:
                held = trials.holds(held | {limit}) or held
        if held == everything:  # not decided within the nodes of a trial: the demand's own solve has shown it
            return everything
        rests.append(everything - held)
    return _irreducible(trials, everything)


def _fewest_meeting(rests: Sequence[frozenset[int]]) -> frozenset[int]:
    """The fewest limits of which each rest has at least one: a program of zeros and ones."""
    limits = sorted({limit for rest in rests for limit in rest})
    if not limits:
        return frozenset()
    column = {limit: position for position, limit in enumerate(limits)}
    rows = [Row("other", (), tuple((column[limit], 1.0) for limit in sorted(rest)), low=1.0) for rest in rests]
    found = Instance([Column(0, 1, whole=True)] * len(limits), rows).solve([1.0] * len(limits), gap=0.0)
    return frozenset() if found is None else frozenset(limit for limit in limits if found[0][column[limit]] > 0.5)


def _irreducible(trials: Trials, conflict: frozenset[int]) -> frozenset[int]:
    for limit in sorted(conflict):
        if trials.holds(conflict - {limit}) is None:
            conflict -= {limit}
    return conflict


def _text(demand: Demand, conflict: tuple[str, ...], relaxation: Relaxation | None) -> str:
    wanted = sum(one.tokens_per_s for one in demand.classes)
    within = f"No mix carries {wanted:,.0f} tokens/s at {demand.solve.max_utilisation:.0%} utilisation within: "
    if relaxation is None:
        return f"{within}{'; '.join(conflict)}. No single relaxation is enough."
    cheapest = f"{relaxation.text}, for ${relaxation.usd_per_hour:,.2f}/h"
    return f"{within}{'; '.join(conflict)}. {CHEAPEST_RELAXATION}: {cheapest}."
