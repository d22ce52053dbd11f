"""The cheapest whole GPUs that carry a matrix of sizes, by cuts instead of a tree over their shares.

With a price p_g for the work of each GPU type, all sizes take at least h(p) = sum_s min_g p_g load_gs, so that counts n
carry them only if p x n >= h(p) for every p >= 0; linear duality says that these cuts are enough. So whole counts are
looked at from the cheapest on; one that does not carry the load yields the cut that it fails by most, which drops many
others unseen. No counts cost less than h(prices in $/h), where the search begins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from app.errors import SolverError
from app.split.highs import Instance
from app.split.mixed import Column, Row

# Beyond this many counts of about the same cost a tree over the shares is the faster way.
MOST_COUNTS = 200_000
_FEASIBLE = 1e-9


class NotByCounts(Exception):
    """Looking at whole counts is no way to the answer: they are too many, or a type is free."""


def cheapest_counts(
    loads: np.ndarray, usd_per_hour: Sequence[float], limits: Sequence[int], ranks: Sequence[int], slack: float
) -> tuple[int, ...] | None:
    """GPUs of each type at least cost, among equals the fewest, then those of the first ranks; None: too few of all.

    loads: GPU types x sizes, the GPUs that all of a size fill, inf where a type cannot serve it; each size is served by
    some type. limits: most GPUs of each type. slack: costs that differ by less, relative to the least one (absolute
    below 1 $/h), are equal. Raises NotByCounts, also where a type costs nothing: any number of it is as cheap.
    """
    prices = np.asarray(usd_per_hour, dtype=float)
    if prices.min() <= 0:
        raise NotByCounts
    useful = np.ceil(np.where(np.isfinite(loads), loads, 0.0).sum(axis=1))
    most = np.minimum(useful, limits).astype(np.int64)
    carried = _Carried(loads)
    if (most < useful).any() and not carried.by(most):
        return None
    low, width = _least(loads, prices), float(prices.min())
    while low <= prices @ most + slack * max(1.0, low):
        high = low + width
        equal = slack * max(1.0, high)
        counts = _counts_between(prices, most, low - equal, high + 2 * equal)
        cheapest = _from_first_carried(carried, counts, prices, high)
        if len(cheapest):
            return _first_of_equals(carried, cheapest, prices, ranks, equal)
        low, width = high, 2 * width
    raise NotByCounts  # all counts carry the load, and rounding has lost them


def _least(loads: np.ndarray, prices: np.ndarray) -> float:
    """h(prices): each size where it costs least, GPUs divided at will."""
    costs = np.full_like(loads, math.inf)
    np.multiply(prices[:, None], loads, out=costs, where=np.isfinite(loads))
    return float(costs.min(axis=0).sum())


def _counts_between(prices: np.ndarray, most: np.ndarray, low: float, high: float) -> np.ndarray:
    """Rows of whole counts that cost from `low` to `high` $/h. Raises NotByCounts."""
    dearest_first = np.argsort(-prices, kind="stable")
    counts, costs = np.zeros((1, len(prices)), dtype=np.int64), np.zeros(1)
    for place, gpu in enumerate(dearest_first):
        last = np.minimum(most[gpu], np.floor((high - costs) / prices[gpu])).astype(np.int64)
        first = np.zeros_like(last)
        if place == len(prices) - 1:
            first = np.maximum(first, np.ceil((low - costs) / prices[gpu]).astype(np.int64))
        choices = np.maximum(0, last - first + 1)
        if choices.sum() > MOST_COUNTS:
            raise NotByCounts
        row = np.repeat(np.arange(len(costs)), choices)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(choices) - choices, choices)
        counts = counts[row]
        counts[:, gpu] = first[row] + nth
        costs = costs[row] + prices[gpu] * counts[:, gpu]
    return counts


def _from_first_carried(carried: _Carried, counts: np.ndarray, prices: np.ndarray, high: float) -> np.ndarray:
    """By cost, from the cheapest that carries the load on, those that may; empty where none up to `high` $/h does."""
    counts = carried.not_cut(counts[np.argsort(counts @ prices, kind="stable")])
    while len(counts) and counts[0] @ prices <= high:
        if carried.by(counts[0]):
            return counts
        counts = carried.not_cut(counts[1:], latest=True)
    return counts[:0]


def _first_of_equals(
    carried: _Carried, counts: np.ndarray, prices: np.ndarray, ranks: Sequence[int], equal: float
) -> tuple[int, ...]:
    """Of those that cost as little as the first: the fewest GPUs, then the first by rank."""
    cheapest = counts[0]
    alike = counts[counts @ prices <= cheapest @ prices + equal]
    order = np.lexsort((alike @ np.asarray(ranks), alike.sum(axis=1)))
    first = next(one for one in alike[order] if np.array_equal(one, cheapest) or carried.by(one))
    return tuple(int(count) for count in first)


class _Carried:
    """Whether counts carry all sizes, and the cuts found on the way.

    The columns of its linear program: GPUs that each type lacks, the same for all, which are to be the least, then the
    share of each pair of type and size. The price of a GPU is by how much that lack falls with one more of its type.
    """

    def __init__(self, loads: np.ndarray) -> None:
        types, sizes = loads.shape
        pairs = [(gpu, size) for gpu in range(types) for size in range(sizes) if math.isfinite(loads[gpu, size])]
        served: list[list[tuple[int, float]]] = [[] for _ in range(sizes)]
        pools: list[list[tuple[int, float]]] = [[(0, -1.0)] for _ in range(types)]
        for column, (gpu, size) in enumerate(pairs, 1):
            served[size].append((column, 1.0))
            pools[gpu].append((column, float(loads[gpu, size])))
        self._loads, self._first = loads, sizes
        self._costs = [1.0] + [0.0] * len(pairs)
        self._instance = Instance(
            [Column(-math.inf), *(Column() for _ in pairs)],
            [
                *(Row("served", (str(size),), tuple(terms), low=1.0, high=1.0) for size, terms in enumerate(served)),
                *(Row("pool", (str(gpu),), tuple(terms), high=0.0) for gpu, terms in enumerate(pools)),
            ],
            fixed={},
            presolve=False,
        )
        self._cuts: list[tuple[np.ndarray, float]] = []

    def by(self, counts: np.ndarray) -> bool:
        """Whether these counts carry all sizes; where they do not, a cut is kept."""
        for gpu, count in enumerate(counts):
            self._instance.limit_row(self._first + gpu, -math.inf, float(count))
        found = self._instance.solve(self._costs, gap=0.0)
        if found is None:
            raise SolverError("HiGHS found no shares at all for a matrix of sizes; please report this matrix")
        if found[1] <= _FEASIBLE:
            return True
        prices = np.maximum(0.0, -self._instance.row_prices()[self._first :])
        self._cuts.append((prices, _least(self._loads, prices)))
        return False

    def not_cut(self, counts: np.ndarray, *, latest: bool = False) -> np.ndarray:
        """Of rows of counts those that no cut drops, or not the latest cut."""
        for prices, least in self._cuts[-1:] if latest else self._cuts:
            counts = counts[counts @ prices >= least - _FEASIBLE]
        return counts
