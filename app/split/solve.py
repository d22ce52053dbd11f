"""Solves the program of a demand with HiGHS: least dollars, and among equals always the same answer.

Ties are broken in this order: least cost, fewest replicas, fleet name, least power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from app.errors import SolverError
from app.split.demand import Demand
from app.split.options import Admission
from app.split.program import Program, build_program

TIME_LIMIT_S = 20.0
# A tie is searched over this many nodes and no longer: a count, unlike a time, gives every machine the same answer.
TIE_NODES = 500
_COST_SLACK = 1e-9

_Infeasible = (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible)


@dataclass(frozen=True)
class Solution:
    """replicas: per option of the admission; shares: (class name, option index) -> share of the class's demand.

    objective: $/h including the carbon price; bound: proven lower limit of it; gap: their relative distance.
    """

    replicas: tuple[int, ...]
    shares: dict[tuple[str, int], float]
    objective: float
    bound: float
    gap: float


def solve(demand: Demand, admission: Admission) -> Solution | None:
    """The cheapest split, or None when the GPU limits leave too little. Raises SolverError, DemandError.

    Classes without load are left out; the caller has checked that every other class has an option.
    """
    program = build_program(demand, admission)
    if not program.used:
        return Solution((0,) * len(admission.options), {}, 0.0, 0.0, 0.0)
    cheapest = _Instance(program, demand).solve(program.costs, gap=demand.solve.gap)
    if cheapest is None:
        return None
    values, bound = cheapest
    optimum = float(np.dot(program.costs, values))
    ceiling = optimum + _COST_SLACK * max(1.0, abs(optimum))
    replicas = _fewest_replicas(program, demand, ceiling, values)
    values = _settle_shares(program, demand, ceiling, replicas)
    objective = float(np.dot(program.costs, values))
    counts = dict(zip(program.used, replicas, strict=True))
    return Solution(
        replicas=tuple(counts.get(index, 0) for index in range(len(admission.options))),
        shares=_shares(program, values),
        objective=objective,
        bound=min(bound, objective),
        gap=0.0 if objective == 0 else max(0.0, (objective - bound) / abs(objective)),
    )


def _fewest_replicas(program: Program, demand: Demand, ceiling: float, values: np.ndarray) -> list[int]:
    """Among solutions within `ceiling`, the fewest replicas, and of those the first by `tie_ranks`."""
    n = len(program.used)
    most = max(1.0, float(np.round(values[:n]).sum()))
    nudge = 1.0 / (1.0 + most * n)
    counting = [1.0 + nudge * rank for rank in program.tie_ranks()] + [0.0] * len(program.pairs)
    instance = _Instance(program, demand)
    instance.cap(program.costs, ceiling)
    found = instance.solve(counting, gap=0.0, nodes=TIE_NODES, start=values)
    best = values if found is None else found[0]
    return [round(value) for value in best[:n]]


def _settle_shares(program: Program, demand: Demand, ceiling: float, replicas: list[int]) -> np.ndarray:
    """With the replicas fixed: the shares of least power within `ceiling`, then of the first options."""
    scale = max([*program.pair_watts, 1.0])
    order = dict(zip(program.used, program.tie_ranks(), strict=True))
    tidy = [
        watts / scale + 1e-6 * order[index] * one.tokens_per_s / program.tokens_per_s
        for (one, index), watts in zip(program.pairs, program.pair_watts, strict=True)
    ]
    weights = [0.0] * len(program.used) + tidy
    instance = _Instance(program, demand, replicas)
    instance.cap(program.costs, ceiling)
    found = instance.solve(weights, gap=0.0)
    if found is None:  # the ceiling, met to the solver's tolerance, can be missed by rounding: drop it
        found = _Instance(program, demand, replicas).solve(weights, gap=0.0)
    if found is None:
        raise SolverError("HiGHS lost a feasible split while settling its shares; please report this demand")
    values = found[0]
    values[: len(program.used)] = replicas
    return values


def _shares(program: Program, values: np.ndarray) -> dict[tuple[str, int], float]:
    """Shares above the solver's noise, renormalised so that each class sums to 1."""
    raw = {
        (one.name, index): float(value)
        for (one, index), value in zip(program.pairs, values[len(program.used) :], strict=True)
        if value > 1e-7
    }
    totals: dict[str, float] = {}
    for (name, _), value in raw.items():
        totals[name] = totals.get(name, 0.0) + value
    return {(name, index): value / totals[name] for (name, index), value in raw.items()}


class _SilentHighs(highspy.Highs):
    """HiGHS prints a banner to stdout while it is constructed, before a caller can silence it."""

    def enableCallbacks(self) -> None:  # noqa: N802 -- HiGHS's own name
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


class _Instance:
    """A program loaded into HiGHS. replicas: fix the counts, which leaves a linear program."""

    def __init__(self, program: Program, demand: Demand, replicas: list[int] | None = None) -> None:
        self._program = program
        self._replicas = replicas
        self._highs = _SilentHighs()  # type: ignore[no-untyped-call]
        self._add_columns()
        self._add_demand_rows()
        self._add_gpu_rows(demand)

    def cap(self, weights: Sequence[float], limit: float) -> None:
        """Hold a weighted sum of the columns at or below `limit`."""
        terms = [(column, weight) for column, weight in enumerate(weights) if weight]
        if terms:
            self._row(-highspy.kHighsInf, limit, terms)

    def solve(
        self, costs: Sequence[float], *, gap: float, nodes: int | None = None, start: np.ndarray | None = None
    ) -> tuple[np.ndarray, float] | None:
        """(column values, dual bound) of the least `costs`, or None when infeasible. Raises SolverError."""
        highs = self._highs
        for name, value in _settings(gap, nodes).items():
            highs.setOptionValue(name, value)
        highs.changeColsCost(
            self._program.columns, np.arange(self._program.columns, dtype=np.int32), np.array(costs, dtype=float)
        )
        if start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = list(start)
            highs.setSolution(solution)
        highs.run()
        status = highs.getModelStatus()
        if status in _Infeasible:
            return None
        values = np.array(highs.getSolution().col_value)
        if len(values) != self._program.columns or not highs.getSolution().value_valid:
            if nodes is not None:
                return None
            raise SolverError(f"HiGHS stopped without an answer: {highs.modelStatusToString(status)}")
        info = highs.getInfo()
        return values, float(info.mip_dual_bound if self._replicas is None else info.objective_function_value)

    def _add_columns(self) -> None:
        program, none = self._program, np.array([], dtype=np.int32)
        for position, index in enumerate(program.used):
            low, high = (0, program.most[index]) if self._replicas is None else (self._replicas[position],) * 2
            self._highs.addCol(0.0, low, high, 0, none, np.array([]))
            if self._replicas is None:
                self._highs.changeColIntegrality(position, highspy.HighsVarType.kInteger)
        for _ in program.pairs:
            self._highs.addCol(0.0, 0.0, 1.0, 0, none, np.array([]))

    def _add_demand_rows(self) -> None:
        """Every class in full, and no pool above its capacity (scaled by it, so that coefficients stay near 1)."""
        program, first = self._program, len(self._program.used)
        by_class: dict[str, list[tuple[int, float]]] = {}
        by_option: dict[int, list[tuple[int, float]]] = {index: [] for index in program.used}
        for column, (one, index) in enumerate(program.pairs, first):
            by_class.setdefault(one.name, []).append((column, 1.0))
            by_option[index].append((column, one.tokens_per_s / program.capacity[index]))
        for terms in by_class.values():
            self._row(1.0, 1.0, terms)
        for position, index in enumerate(program.used):
            self._row(-highspy.kHighsInf, 0.0, [*by_option[index], (position, -1.0)])

    def _add_gpu_rows(self, demand: Demand) -> None:
        program = self._program
        for fleet in demand.fleets:
            gpus = [
                (position, float(program.options[index].point.gpus))
                for position, index in enumerate(program.used)
                if program.options[index].fleet.name == fleet.name
            ]
            if fleet.max_gpus is not None and gpus:
                self._row(-highspy.kHighsInf, float(fleet.max_gpus), gpus)

    def _row(self, low: float, high: float, terms: Sequence[tuple[int, float]]) -> None:
        columns, weights = zip(*terms, strict=True)
        self._highs.addRow(low, high, len(terms), np.array(columns, dtype=np.int32), np.array(weights, dtype=float))


def _settings(gap: float, nodes: int | None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "threads": 1,
        "random_seed": 0,
        "time_limit": TIME_LIMIT_S,
        "mip_rel_gap": gap,
        "mip_abs_gap": 0.0 if gap == 0 else 1e-6,
        "mip_feasibility_tolerance": 1e-9,
        "primal_feasibility_tolerance": 1e-9,
    }
    return settings if nodes is None else settings | {"mip_max_nodes": nodes}
