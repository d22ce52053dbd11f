"""Good first plans: the relaxed one rounded up; and a few hours at a time made whole, with those before them kept and
those after them relaxed.

The relaxation of a plan lies within a few percent of its best, so what is found this way is mostly close to it already,
and the search that begins there only has to prove it. Source: relax-and-fix, e.g. Pochet and Wolsey, Production
Planning by Mixed Integer Programming (2006), section 3.6.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from app.errors import SolverError
from app.split.highs import Instance
from app.split.horizon import Horizon
from app.split.mixed import Column

_WINDOWS, _LEAST_HOURS = 6, 4
_GAP = 0.002
_NOISE = 1e-6


def rounded_up(horizon: Horizon) -> dict[int, float] | None:
    """The whole columns; None where nothing fits, whole or not."""
    relaxed = Instance(horizon.program.columns, horizon.program.rows, {}).solve(horizon.program.costs, gap=0.0)
    if relaxed is None:
        return None
    return {n: float(ceil(relaxed[0][n] - _NOISE)) for n, column in enumerate(horizon.program.columns) if column.whole}


def rolled(horizon: Horizon, time_limit_s: float) -> dict[int, float] | None:
    """The whole columns; None where an earlier choice leaves no later one, or time is up."""
    count, program = len(horizon.hours), horizon.program
    hours = max(_LEAST_HOURS, -(-count // _WINDOWS))
    edges = [*horizon.first, len(program.columns)]
    fixed: dict[int, float] = {}
    for begin in range(0, count, hours):
        window = range(edges[begin], edges[min(begin + hours, count)])
        columns = [
            _column(column, number in window, fixed.get(number)) for number, column in enumerate(program.columns)
        ]
        try:
            found = Instance(columns, program.rows).solve(
                program.costs, gap=_GAP, time_limit_s=time_limit_s * hours / count
            )
        except SolverError:  # a slow window; the search then begins elsewhere
            return None
        if found is None:
            return None
        fixed |= {n: float(round(found[0][n])) for n in window if program.columns[n].whole}
    return fixed


def _column(column: Column, is_whole: bool, fixed: float | None) -> Column:
    if fixed is not None:
        return Column(fixed, fixed)
    return replace(column, whole=column.whole and is_whole)
