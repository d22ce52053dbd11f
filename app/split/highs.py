"""A program loaded into HiGHS, to be asked again with other costs and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import highspy
import numpy as np

from app.errors import SolverError
from app.split.mixed import Column, Row

TIME_LIMIT_S = 20.0

_Infeasible = (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible)


class _SilentHighs(highspy.Highs):
    """HiGHS prints a banner to stdout while it is constructed, before a caller can silence it."""

    def enableCallbacks(self) -> None:  # noqa: N802 -- HiGHS's own name
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


class Undecided(Exception):
    """The nodes that were allowed ran out before anything was found."""


class Instance:
    """fixed: values of whole columns, which leaves a linear program. presolve: not worth its time for a small linear
    program that is asked again and again.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Iterable[Row],
        fixed: Mapping[int, float] | None = None,
        *,
        presolve: bool = True,
    ) -> None:
        self._columns = len(columns)
        self._linear = fixed is not None
        self._highs = _SilentHighs()  # type: ignore[no-untyped-call]
        self._highs.setOptionValue("presolve", "choose" if presolve else "off")
        lows = np.array([column.low for column in columns])
        highs = np.array([column.high for column in columns])
        for index, value in (fixed or {}).items():
            lows[index] = highs[index] = value
        self._highs.addVars(self._columns, lows, highs)
        if not self._linear:
            whole = np.array([index for index, column in enumerate(columns) if column.whole], dtype=np.int32)
            kinds = np.array([highspy.HighsVarType.kInteger] * len(whole))
            self._highs.changeColsIntegrality(len(whole), whole, kinds)
        self.add(rows)

    def add(self, rows: Iterable[Row]) -> None:
        """More rows, in one go."""
        rows = list(rows)
        starts: list[int] = []
        columns: list[int] = []
        weights: list[float] = []
        for row in rows:
            starts.append(len(columns))
            columns += [column for column, _ in row.terms]
            weights += [weight for _, weight in row.terms]
        self._highs.addRows(
            len(rows),
            np.array([row.low for row in rows], dtype=float),
            np.array([row.high for row in rows], dtype=float),
            len(columns),
            np.array(starts, dtype=np.int32),
            np.array(columns, dtype=np.int32),
            np.array(weights, dtype=float),
        )

    def limit_row(self, index: int, low: float, high: float) -> None:
        self._highs.changeRowBounds(index, low, high)

    def limit_column(self, index: int, low: float, high: float) -> None:
        self._highs.changeColBounds(index, low, high)

    def row_prices(self) -> np.ndarray:
        """Of a linear program that was solved: by how much its least costs rise with each row's bound, per unit."""
        return np.array(self._highs.getSolution().row_dual)

    def solve(
        self,
        costs: Sequence[float],
        *,
        gap: float,
        nodes: int | None = None,
        start: np.ndarray | None = None,
        time_limit_s: float = TIME_LIMIT_S,
        heuristics: bool = False,
    ) -> tuple[np.ndarray, float] | None:
        """(column values, dual bound) of the least `costs`, or None when infeasible.

        heuristics: look for good answers beside the tree, which pays in programs of many hours.
        Raises Undecided when `nodes` ran out first, else SolverError.
        """
        highs = self._highs
        for name, value in _settings(gap, nodes, time_limit_s, heuristics).items():
            highs.setOptionValue(name, value)
        highs.changeColsCost(self._columns, np.arange(self._columns, dtype=np.int32), np.array(costs, dtype=float))
        if start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = list(start)
            highs.setSolution(solution)
        highs.run()
        status = highs.getModelStatus()
        if status in _Infeasible:
            return None
        solution = highs.getSolution()
        values = np.array(solution.col_value)
        if len(values) != self._columns or not solution.value_valid:
            if nodes is not None:
                raise Undecided
            raise SolverError(f"HiGHS stopped without an answer: {highs.modelStatusToString(status)}")
        info = highs.getInfo()
        return values, float(info.objective_function_value if self._linear else info.mip_dual_bound)


def _settings(gap: float, nodes: int | None, time_limit_s: float, heuristics: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "threads": 1,
        "random_seed": 0,
        "time_limit": time_limit_s,
        "mip_rel_gap": gap,
        "mip_abs_gap": 0.0 if gap == 0 else 1e-6,
        "mip_feasibility_tolerance": 1e-9,
        "primal_feasibility_tolerance": 1e-9,
        # programs of this size are solved in their first tree, and a first answer comes from rounding their relaxation
        "mip_allow_restart": heuristics,
        **{
            f"mip_heuristic_run_{name}": heuristics
            for name in ("feasibility_jump", "rins", "rens", "root_reduced_cost")
        },
    }
    return settings if nodes is None else settings | {"mip_max_nodes": nodes}
