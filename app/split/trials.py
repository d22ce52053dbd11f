"""The program of a demand with some of its limits: can it be held, and how far must one of them go?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from app.split.highs import Instance, Undecided
from app.split.limits import Limit, Wide

TRIAL_NODES = 2000
_SLACK = 1e-7


class Trials:
    """One instance, asked again and again. A set of limits is given by their positions in `wide.limits`."""

    def __init__(self, wide: Wide) -> None:
        self.wide = wide
        self._program = wide.split.program
        self._instance = Instance(self._program.columns, self._program.rows)
        self._nothing = [0.0] * len(self._program.columns)

    def holds(self, kept: Iterable[int]) -> frozenset[int] | None:
        """All the limits that some split holds which holds `kept`; None when there is no such split.

        A trial that is not decided within its nodes counts as held.
        """
        kept = frozenset(kept)
        try:
            found = self.least(kept, self._nothing, gap=0.0)
        except Undecided:
            return kept
        if found is None:
            return None
        return kept | {index for index, limit in enumerate(self.wide.limits) if self._is_held(limit, found)}

    def least(
        self,
        kept: Iterable[int],
        costs: Sequence[float],
        *,
        gap: float,
        closed: Iterable[int] = (),
        moved: tuple[int, float] | None = None,
    ) -> np.ndarray | None:
        """The columns of least `costs` under the limits in `kept`, or None when infeasible. Raises Undecided.

        closed: columns that a limit in part blocks as well. moved: (row, its other bound).
        """
        limits = [self.wide.limits[index] for index in frozenset(kept)]
        blocked = {column for limit in limits for column in limit.blocked} | set(closed)
        if self._is_cut_off(blocked):
            return None
        self._block(blocked)
        rows = {limit.row for limit in limits if limit.row is not None}
        for limit in self.wide.limits:
            if limit.row is not None:
                row = self._program.rows[limit.row]
                low, high = (row.low, row.high) if limit.row in rows else (-math.inf, math.inf)
                if moved and moved[0] == limit.row:
                    low, high = (moved[1], math.inf) if row.kind == "share_min" else (-math.inf, moved[1])
                self._instance.limit_row(limit.row, low, high)
        found = self._instance.solve(costs, gap=gap, nodes=TRIAL_NODES)
        return None if found is None else found[0]

    def _block(self, blocked: set[int]) -> None:
        """No share in the blocked columns, and no replicas of options that no class may use, as in a demand's own."""
        columns, open_options = self.wide.split.columns, set()
        for column, _, index in columns.shares():
            self._instance.limit_column(column, 0.0, 0.0 if column in blocked else 1.0)
            if column not in blocked:
                open_options.add(index)
        for column, index, _ in columns.replicas():
            most = self._program.columns[column].high if index in open_options else 0.0
            self._instance.limit_column(column, 0.0, most)

    def _is_cut_off(self, blocked: set[int]) -> bool:
        """Whether a class has no option left: seen without the solver."""
        served = (row for row in self._program.rows if row.kind == "served")
        return any(all(column in blocked for column, _ in row.terms) for row in served)

    def _is_held(self, limit: Limit, values: np.ndarray) -> bool:
        if limit.row is None:
            return all(values[column] <= _SLACK for column in limit.blocked)
        row = self._program.rows[limit.row]
        return row.low - _SLACK <= row.value(values) <= row.high + _SLACK
