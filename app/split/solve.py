"""The mixed-integer program: integer replicas, continuous shares, least dollars (HiGHS).

minimise    sum_r n_r (price_r + c idle_r) + sum_kr x_kr c load_kr          c = carbon price x intensity x PUE
subject to  sum_r x_kr = 1                                every class served in full
            sum_k d_k x_kr <= u m_r n_r                   pool capacity in tokens/s, u = highest utilisation
            sum_r gpus_r n_r <= GPUs of the fleet
with d_k the class's tokens/s and m_r the point's. Source: design section 5.

Ties are broken the same way every time: least cost, then fewest replicas, then fleet name, then least power.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from app import units
from app.errors import DemandError, SolverError
from app.split.demand import Demand, WorkloadClass
from app.split.options import Admission, Option

TIME_LIMIT_S = 30.0
MOST_REPLICAS = 10_000_000  # beyond it HiGHS's integers are no longer exact
_COST_SLACK = 1e-9


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


class _SilentHighs(highspy.Highs):
    """HiGHS prints a banner to stdout while it is constructed, before a caller can silence it."""

    def enableCallbacks(self) -> None:  # noqa: N802 -- HiGHS's own name
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class _Program:
    """The instance as arrays. Columns: first n_r for each used option, then x_kr for each pair."""

    options: tuple[Option, ...]
    used: tuple[int, ...]
    pairs: tuple[tuple[WorkloadClass, int], ...]
    capacity: dict[int, float]
    replica_cost: list[float]
    pair_cost: list[float]
    pair_watts: list[float]

    @property
    def columns(self) -> int:
        return len(self.used) + len(self.pairs)


def solve(demand: Demand, admission: Admission) -> Solution | None:
    """The cheapest split, or None when the GPU limits leave too little. Raises SolverError.

    Classes without load take part with no tokens; the caller has checked that every other class has an option.
    """
    program = _build(demand, admission)
    if not program.used:
        return Solution((0,) * len(admission.options), {}, 0.0, 0.0, 0.0)
    costs = [*program.replica_cost, *program.pair_cost]
    cheapest = _run(program, demand, costs, demand.solve.gap)
    if cheapest is None:
        return None
    values, bound = cheapest
    optimum = float(np.dot(costs, values))
    ceiling = optimum + _COST_SLACK * max(1.0, abs(optimum))
    replicas = _fewest_replicas(program, demand, costs, ceiling, values)
    values = _settle_shares(program, demand, costs, ceiling, replicas)
    objective = float(np.dot(costs, values))
    counts = dict(zip(program.used, replicas, strict=True))
    return Solution(
        replicas=tuple(counts.get(index, 0) for index in range(len(admission.options))),
        shares=_shares(program, values),
        objective=objective,
        bound=min(bound, objective),
        gap=0.0 if objective == 0 else max(0.0, (objective - bound) / abs(objective)),
    )


def usd_per_gram(demand: Demand) -> float:
    return units.tonnes(demand.solve.carbon_usd_per_t)


def _build(demand: Demand, admission: Admission) -> _Program:
    loaded = [one for one in demand.classes if one.tokens_per_s > 0]
    used = tuple(sorted({index for one in loaded for index in admission.admissible[one.name]}))
    pairs = tuple((one, index) for one in loaded for index in admission.admissible[one.name])
    carbon = usd_per_gram(demand)
    options = admission.options

    def carbon_usd(option: Option, power_w: float | None) -> float:
        return carbon * (option.fleet.g_per_h(power_w) or 0.0)

    for one in loaded:
        for index in admission.admissible[one.name]:
            if one.tokens_per_s > MOST_REPLICAS * options[index].usable_tokens_per_s(demand.solve.max_utilisation):
                raise DemandError(
                    f"class {one.name}: {one.tokens_per_s:g} tokens/s would take more than {MOST_REPLICAS:,} replicas "
                    f"of {options[index].label}; accepted: a smaller rate, or fewer tokens a request"
                )
    pair_watts = [_load_watts(options[index], one.tokens_per_s) for one, index in pairs]
    return _Program(
        options=options,
        used=used,
        pairs=pairs,
        capacity={index: options[index].usable_tokens_per_s(demand.solve.max_utilisation) for index in used},
        replica_cost=[
            options[index].usd_per_replica_hour + carbon_usd(options[index], options[index].point.idle_w)
            for index in used
        ],
        pair_cost=[carbon_usd(options[index], w) for (_, index), w in zip(pairs, pair_watts, strict=True)],
        pair_watts=pair_watts,
    )


def _load_watts(option: Option, tokens_per_s: float) -> float:
    """Power above idle that `tokens_per_s` cost on this option; 0 where the power is unknown."""
    point = option.point
    if point.idle_w is None or point.loaded_w is None:
        return 0.0
    return (point.loaded_w - point.idle_w) * tokens_per_s / point.tokens_per_s


def _fewest_replicas(
    program: _Program, demand: Demand, costs: Sequence[float], ceiling: float, values: np.ndarray
) -> list[int]:
    """Among solutions within `ceiling`, the fewest replicas, and of those the first by `_tie_ranks`."""
    ranks = _tie_ranks(program)
    most = max(1.0, float(np.round(values[: len(program.used)]).sum()))
    nudge = 1.0 / (1.0 + most * max(1, len(program.used)))
    counting = [1.0 + nudge * rank for rank in ranks] + [0.0] * len(program.pairs)
    found = _run(program, demand, counting, 0.0, ceiling=(costs, ceiling))
    best = values if found is None else found[0]
    return [round(value) for value in best[: len(program.used)]]


def _tie_ranks(program: _Program) -> list[int]:
    """Place of each used option among equals: by fleet name, then the better $/token: one pool is filled first."""

    def order(position: int) -> tuple[str, float, int]:
        option = program.options[program.used[position]]
        return (option.fleet.name, option.usd_per_replica_hour / option.point.tokens_per_s, position)

    ranks = [0] * len(program.used)
    for rank, position in enumerate(sorted(range(len(program.used)), key=order)):
        ranks[position] = rank
    return ranks


def _settle_shares(
    program: _Program, demand: Demand, costs: Sequence[float], ceiling: float, replicas: list[int]
) -> np.ndarray:
    """With the replicas fixed: the shares of least power within `ceiling`, then of the first options."""
    scale = max([*program.pair_watts, 1.0])
    order = dict(zip(program.used, _tie_ranks(program), strict=True))
    tidy = [
        watts / scale + 1e-6 * order[index] * one.tokens_per_s / _total_tokens_per_s(program)
        for (one, index), watts in zip(program.pairs, program.pair_watts, strict=True)
    ]
    weights = [0.0] * len(program.used) + tidy
    found = _run(program, demand, weights, 0.0, ceiling=(costs, ceiling), replicas=replicas)
    if found is None:  # the ceiling, met to the solver's tolerance, can be missed by rounding: drop it
        found = _run(program, demand, weights, 0.0, replicas=replicas)
    if found is None:
        raise SolverError("HiGHS lost a feasible split while settling its shares; please report this demand")
    values = found[0]
    values[: len(program.used)] = replicas
    return values


def _total_tokens_per_s(program: _Program) -> float:
    return sum({one.name: one.tokens_per_s for one, _ in program.pairs}.values())


def _shares(program: _Program, values: np.ndarray) -> dict[tuple[str, int], float]:
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


def _run(
    program: _Program,
    demand: Demand,
    costs: Sequence[float],
    gap: float,
    *,
    ceiling: tuple[Sequence[float], float] | None = None,
    replicas: list[int] | None = None,
) -> tuple[np.ndarray, float] | None:
    """Solve one instance: (column values, dual bound), or None when infeasible."""
    solver = _SilentHighs()  # type: ignore[no-untyped-call]
    for name, value in (("threads", 1), ("random_seed", 0), ("time_limit", TIME_LIMIT_S), ("mip_rel_gap", gap)):
        solver.setOptionValue(name, value)
    solver.setOptionValue("mip_abs_gap", 0.0 if gap == 0 else 1e-6)
    solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
    solver.setOptionValue("primal_feasibility_tolerance", 1e-9)
    _add_columns(solver, program, costs, replicas)
    _add_rows(solver, program, demand, ceiling)
    solver.run()
    status = solver.getModelStatus()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return None
    values = np.array(solver.getSolution().col_value)
    if len(values) != program.columns or not solver.getSolution().value_valid:
        raise SolverError(f"HiGHS stopped without an answer: {solver.modelStatusToString(status)}")
    info = solver.getInfo()
    return values, float(info.mip_dual_bound if replicas is None else info.objective_function_value)


def _add_columns(solver: highspy.Highs, program: _Program, costs: Sequence[float], replicas: list[int] | None) -> None:
    for position, index in enumerate(program.used):
        demanded = sum(one.tokens_per_s for one, option in program.pairs if option == index)
        most = math.ceil(demanded / program.capacity[index])
        low, high = (0, most) if replicas is None else (replicas[position], replicas[position])
        solver.addCol(costs[position], low, high, 0, np.array([], dtype=np.int32), np.array([]))
        if replicas is None:
            solver.changeColIntegrality(position, highspy.HighsVarType.kInteger)
    for position in range(len(program.used), program.columns):
        solver.addCol(costs[position], 0.0, 1.0, 0, np.array([], dtype=np.int32), np.array([]))


def _add_rows(
    solver: highspy.Highs, program: _Program, demand: Demand, ceiling: tuple[Sequence[float], float] | None
) -> None:
    first_pair = len(program.used)
    column_of = {(one.name, index): first_pair + i for i, (one, index) in enumerate(program.pairs)}

    def add(low: float, high: float, terms: list[tuple[int, float]]) -> None:
        columns, weights = zip(*terms, strict=True)
        solver.addRow(low, high, len(terms), np.array(columns, dtype=np.int32), np.array(weights, dtype=float))

    for name in {one.name: None for one, _ in program.pairs}:
        add(1.0, 1.0, [(column, 1.0) for (owner, _), column in column_of.items() if owner == name])
    for position, index in enumerate(program.used):
        # Scaled by the pool's capacity, so that coefficients stay near 1 whatever the units.
        loads = [
            (column_of[one.name, index], one.tokens_per_s / program.capacity[index])
            for one, option in program.pairs
            if option == index
        ]
        add(-highspy.kHighsInf, 0.0, [*loads, (position, -1.0)])
    for fleet in demand.fleets:
        gpus = [
            (position, float(program.options[index].point.gpus))
            for position, index in enumerate(program.used)
            if program.options[index].fleet.name == fleet.name
        ]
        if fleet.max_gpus is not None and gpus:
            add(-highspy.kHighsInf, float(fleet.max_gpus), gpus)
    if ceiling is not None:
        weights, limit = ceiling
        terms = [(column, weight) for column, weight in enumerate(weights) if weight]
        if terms:
            add(-highspy.kHighsInf, limit, terms)
