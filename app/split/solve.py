"""Solves the program of a demand with HiGHS: least dollars, and among equals always the same answer.

Ties are broken in this order: least cost, fewest replicas, fleet name, least power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.errors import SolverError
from app.split.columns import Columns
from app.split.demand import Demand
from app.split.highs import Instance, Undecided
from app.split.mixed import Program, Row
from app.split.options import Admission
from app.split.program import build_programs

# A tie is searched over this many nodes and no longer: a count, unlike a time, gives every machine the same answer.
TIE_NODES = 500
COST_SLACK = 1e-9
_PROVEN = 1e-7


@dataclass(frozen=True)
class Solution:
    """replicas: per option of the admission; shares: (class name, option index) -> share of the class's demand.

    objective: $/h including carbon price and switching; bound: proven lower limit of it; gap: their relative distance.
    switched: replicas started or stopped against today's; counted only where that costs.
    """

    replicas: tuple[int, ...]
    shares: dict[tuple[str, int], float]
    objective: float
    bound: float
    gap: float
    switched: int = 0


@dataclass(frozen=True)
class Optimum:
    """The least cost of a program: values of its columns, the proven bound, and their relative distance."""

    values: np.ndarray
    objective: float
    bound: float
    gap: float


def solve(demand: Demand, admission: Admission) -> Solution | None:
    """The cheapest split, or None when the limits leave too little. Raises SolverError, DemandError.

    Classes without load are left out; the caller has checked that every other class has an option.
    """
    split, merged = build_programs(demand, admission)
    program, columns = split.program, split.columns
    if not columns.used:
        return Solution((0,) * len(admission.options), {}, program.constant, program.constant, 0.0, columns.stopped)
    best = optimum(program, demand.solve.gap, merged.program)
    if best is None:
        return None
    counts = {index: round(best.values[column]) for column, index, _ in columns.replicas()}
    return Solution(
        replicas=tuple(counts.get(index, 0) for index in range(len(admission.options))),
        shares=_shares(columns, best.values),
        objective=best.objective,
        bound=best.bound,
        gap=best.gap,
        switched=columns.switched(counts),
    )


def optimum(program: Program, gap: float, counting: Program | None = None) -> Optimum | None:
    """The least cost within `gap`, ties settled; None when no values hold every row.

    counting: a smaller program with the same whole columns in the same order, of which as many cost as little.
    """
    small = counting or program
    cheapest = Instance(small.columns, small.rows).solve(small.costs, gap=gap)
    if cheapest is None:
        return None
    values, dual = cheapest
    least = float(np.dot(small.costs, values))
    proven = least - dual <= _PROVEN * max(1.0, abs(least))
    whole = _fewest_replicas(small if proven else _within(small, values), least, values)
    return _settled_optimum(program, least, whole, dual)


def optimum_of_counts(program: Program, counts: Sequence[int]) -> Optimum:
    """The least cost of a program without constant whose whole columns are known, ties settled."""
    least = math.fsum(cost * count for cost, count in zip(program.costs, counts, strict=False))
    return _settled_optimum(program, least, counts, least)


def _settled_optimum(program: Program, least: float, whole: Sequence[int], dual: float) -> Optimum:
    values = settled(program, least, dict(zip(program.whole, whole, strict=True)))
    objective, bound = program.cost(values), dual + program.constant
    return Optimum(
        values=values,
        objective=objective,
        bound=min(bound, objective),
        gap=0.0 if objective == 0 else max(0.0, (objective - bound) / abs(objective)),
    )


def _ceiling(program: Program, least: float) -> list[Row]:
    """No more than the least cost, scaled by it."""
    scale = max(1.0, abs(least))
    terms = tuple((column, cost / scale) for column, cost in enumerate(program.costs) if cost)
    return [Row("other", ("least",), terms, high=least / scale + COST_SLACK)] if terms else []


def _within(program: Program, values: np.ndarray) -> Program:
    """The program with no replicas but of the pools that `values` have: where the least cost is not proven, ties are
    looked for among those only.
    """
    columns = [
        replace(column, high=0.0) if index < program.replicas and round(values[index]) == 0 else column
        for index, column in enumerate(program.columns)
    ]
    return replace(program, columns=tuple(columns))


def _fewest_replicas(program: Program, least: float, values: np.ndarray) -> list[int]:
    """Of solutions no dearer than `least` the fewest replicas, of those the first by rank: the whole columns."""
    n = program.replicas
    most = max(1.0, float(np.round(values[:n]).sum()))
    nudge = 1.0 / (1.0 + most * n)
    counting = [1.0 + nudge * rank for rank in program.ranks] + [0.0] * (len(program.columns) - n)
    instance = Instance(program.columns, [*program.rows, *_ceiling(program, least)])
    try:
        found = instance.solve(counting, gap=0.0, nodes=TIE_NODES, start=values)
    except Undecided:
        found = None
    best = values if found is None else found[0]
    return [round(best[column]) for column in program.whole]


def settled(program: Program, least: float, whole: Mapping[int, float]) -> np.ndarray:
    """With the whole columns fixed: the others of least `tidy` weight that cost no more than `least`."""
    found = Instance(program.columns, [*program.rows, *_ceiling(program, least)], whole).solve(program.tidy, gap=0.0)
    if found is None:  # the ceiling, met to the solver's tolerance, can be missed by rounding: the least cost then
        found = Instance(program.columns, program.rows, whole).solve(program.costs, gap=0.0)
    if found is None:
        raise SolverError("HiGHS lost a feasible split while settling its shares; please report this demand")
    values = found[0]
    for index, value in whole.items():
        values[index] = value
    return values


def _shares(columns: Columns, values: np.ndarray) -> dict[tuple[str, int], float]:
    """Shares above the solver's noise, renormalised so that each class sums to 1."""
    raw = {(one.name, index): float(values[column]) for column, one, index in columns.shares() if values[column] > 1e-7}
    totals: dict[str, float] = {}
    for (name, _), value in raw.items():
        totals[name] = totals.get(name, 0.0) + value
    return {(name, index): value / totals[name] for (name, index), value in raw.items()}
