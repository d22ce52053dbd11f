"""How far one limit must move to make a demand feasible, and what the answer then costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.split.answer import Relaxation
from app.split.demand import Demand
from app.split.highs import Undecided
from app.split.limits import Limit, row_text
from app.split.trials import Trials

_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Move:
    """needed: where the limit goes; closed: columns that it then blocks; moved: its row and its new bound."""

    needed: float | str | None
    closed: tuple[int, ...] = ()
    moved: tuple[int, float] | None = None


def cheapest_relaxation(demand: Demand, trials: Trials, conflict: Sequence[int]) -> Relaxation | None:
    """Each limit of `conflict` moved as little as makes the demand feasible, the cheapest of them.

    Only a limit of the conflict can be enough by itself: without it the conflict would stay.
    """
    found = [relaxed for index in conflict for relaxed in _relaxations(demand, trials, index)]
    return min(found, key=lambda relaxed: relaxed.objective_usd_per_hour, default=None)


def _relaxations(demand: Demand, trials: Trials, index: int) -> Iterator[Relaxation]:
    limit = trials.wide.limits[index]
    kept = frozenset(range(len(trials.wide.limits))) - {index}
    if trials.holds(kept) is None:
        return
    program, weights = trials.wide.split.program, trials.wide.split.weights
    for move in _moves(demand, trials, limit, kept):
        try:
            values = trials.least(kept, program.costs, gap=demand.solve.gap, closed=move.closed, moved=move.moved)
        except Undecided:
            continue
        if values is None:
            continue
        yield Relaxation(
            limit=limit.text,
            text=_text(trials, limit, move.needed),
            unit=limit.unit,
            given=limit.given,
            needed=move.needed,
            usd_per_hour=float(np.dot(weights.usd, values)),
            objective_usd_per_hour=program.cost(values),
        )


def _moves(demand: Demand, trials: Trials, limit: Limit, kept: frozenset[int]) -> list[_Move]:
    if limit.row is not None:
        return _row_moves(demand, trials, limit, limit.row, kept)
    if limit.unit == "ms":
        return [_slo_move(trials, limit, kept)]
    names = sorted({name for name in limit.blocked.values() if isinstance(name, str)})
    each = [_Move(name, tuple(column for column, let_in in limit.blocked.items() if let_in != name)) for name in names]
    enough = [move for move in each if _is_enough(trials, kept, move)]
    return enough or [_Move(None)]


def _is_enough(trials: Trials, kept: frozenset[int], move: _Move) -> bool:
    nothing = [0.0] * len(trials.wide.split.program.columns)
    try:
        return trials.least(kept, nothing, gap=0.0, closed=move.closed) is not None
    except Undecided:
        return False


def _row_moves(demand: Demand, trials: Trials, limit: Limit, index: int, kept: frozenset[int]) -> list[_Move]:
    """To the least of the row's own sum, or the most where it is a lower limit."""
    row = trials.wide.split.program.rows[index]
    sign = -1.0 if row.kind == "share_min" else 1.0
    costs = [0.0] * len(trials.wide.split.program.columns)
    for column, weight in row.terms:
        costs[column] = sign * weight
    try:
        values = trials.least(kept, costs, gap=min(demand.solve.gap, 1e-4))
    except Undecided:
        return []
    if values is None:
        return []
    reached = row.value(values)
    if row.kind == "gpus":
        return [_Move(float(round(reached)), moved=(index, round(reached)))]
    bound = reached + sign * _ROUNDING * max(1.0, abs(reached))
    needed = min(max(0.0, bound * row.scale), 1.0 if limit.unit == "share" else math.inf)
    return [_Move(needed, moved=(index, bound))]


def _slo_move(trials: Trials, limit: Limit, kept: frozenset[int]) -> _Move:
    """To the least measured value at which it can be held, by bisection: a looser SLO lets in no fewer options."""
    measured = sorted({value for value in limit.blocked.values() if isinstance(value, float)})

    def at(value: float) -> _Move:
        closed = (column for column, let_in in limit.blocked.items() if not isinstance(let_in, float) or let_in > value)
        return _Move(value, tuple(closed))

    low, high = 0, len(measured)
    while low < high:
        middle = (low + high) // 2
        if _is_enough(trials, kept, at(measured[middle])):
            high = middle
        else:
            low = middle + 1
    return at(measured[low]) if low < len(measured) else _Move(None)


def _text(trials: Trials, limit: Limit, needed: float | str | None) -> str:
    """E.g. "4 GPUs of h100 rather than 2", or "chat on a100 as well"."""
    if needed is None:
        return f"without the limit {limit.text}"
    if isinstance(needed, str):
        return (
            f"{limit.subject} on {needed} as well" if limit.unit == "fleet" else f"{limit.subject} in {needed} as well"
        )
    if limit.row is None:
        return f"{limit.subject} <= {math.ceil(10 * needed - _ROUNDING) / 10:g} ms rather than {limit.given:g}"
    row = trials.wide.split.program.rows[limit.row]
    if row.kind == "gpus":
        return f"{needed:,.0f} GPUs of {limit.subject} rather than {limit.given:,.0f}"
    return f"{row_text(row, _to_four_digits(needed, up=row.kind != 'share_min'))} rather than {limit.given:g}"


def _to_four_digits(value: float, *, up: bool) -> float:
    """Rounded to the side on which the demand stays feasible."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    return step * (math.ceil(value / step - 1e-4) if up else math.floor(value / step + 1e-4))
