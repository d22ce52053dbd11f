"""What moved grams per million tokens between two periods: the mix of fleets, their energy or their grids. Pure.

g/Mtok = sum over fleets of (share of the tokens) x (kWh/Mtok of the fleet) x (g/kWh of its grid). Each of the three
changes from its value before to its value now in every order, and its effect is the mean over the orders (a Shapley
value: Albrecht, Francois and Schoors, Energy Policy 30, 2002). So the effects sum to the change, and what stayed as it
was has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

Cause = Literal["mix", "energy", "grid"]
CAUSES: tuple[Cause, ...] = ("mix", "energy", "grid")


@dataclass(frozen=True)
class Part:
    """What a fleet did in a period; mtok: millions of the tokens that divide."""

    mtok: float
    site_kwh: float
    grams: float


@dataclass(frozen=True)
class _Ratios:
    share: float
    kwh_per_mtok: float
    g_per_kwh: float


def effects(before: Mapping[str, Part], now: Mapping[str, Part]) -> dict[Cause, float] | None:
    """By how many g/Mtok each cause moved the whole; None where a period has no tokens.

    A fleet that made no tokens in one of the periods had then the energy per token of the other: it came or went as a
    change of the mix. Its grams without tokens count as energy of all others: they are what the whole carries.
    """
    if not _mtok(before) or not _mtok(now):
        return None
    first, last = _ratios(before, now), _ratios(now, before)
    found = dict.fromkeys(CAUSES, 0.0)
    orders = list(permutations(CAUSES))
    for order in orders:
        changed: set[Cause] = set()
        level = _level(first, last, changed)
        for cause in order:
            changed.add(cause)
            after = _level(first, last, changed)
            found[cause] += (after - level) / len(orders)
            level = after
    return found


def g_per_mtok(parts: Mapping[str, Part]) -> float:
    return sum(part.grams for part in parts.values()) / _mtok(parts)


def _mtok(parts: Mapping[str, Part]) -> float:
    return sum(part.mtok for part in parts.values())


def _ratios(of: Mapping[str, Part], other: Mapping[str, Part]) -> dict[str, _Ratios]:
    """Of each fleet of either period. Energy of fleets without tokens is carried by the others, by their tokens."""
    whole = _mtok(of)
    carried_kwh = sum(part.site_kwh for part in of.values() if not part.mtok)
    carried_g = sum(part.grams for part in of.values() if not part.mtok)
    found = {}
    for name in of.keys() | other.keys():
        part = of.get(name)
        if part is not None and part.mtok:
            share = part.mtok / whole
            site_kwh, grams = part.site_kwh + carried_kwh * share, part.grams + carried_g * share
            per_kwh = grams / site_kwh if site_kwh else 0.0
            found[name] = _Ratios(share, site_kwh / part.mtok, per_kwh)
        else:
            found[name] = _absent(other[name]) if name in other else _Ratios(0.0, 0.0, 0.0)
    return found


def _absent(part: Part) -> _Ratios:
    """It has what it has in the other period, and no share."""
    kwh_per_mtok = part.site_kwh / part.mtok if part.mtok else 0.0
    return _Ratios(0.0, kwh_per_mtok, part.grams / part.site_kwh if part.site_kwh else 0.0)


def _level(first: Mapping[str, _Ratios], last: Mapping[str, _Ratios], changed: set[Cause]) -> float:
    """g/Mtok with some of the three as they are in the last period."""
    mix, energy, grid = ((last if cause in changed else first) for cause in CAUSES)
    return sum(mix[name].share * energy[name].kwh_per_mtok * grid[name].g_per_kwh for name in first)
