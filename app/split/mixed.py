"""A mixed-integer program in plain numbers: columns, rows that have names, and what is minimised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

RowKind = Literal[
    "served", "pool", "opened", "gpus", "share_min", "share_max", "watts", "usd", "grams", "switch", "other"
]  # fmt: skip


Values = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Column:
    low: float = 0.0
    high: float = math.inf
    whole: bool = False


@dataclass(frozen=True)
class Row:
    """low <= sum of coefficient x column <= high. subject: whom it limits, e.g. the class and the fleet.

    Terms may be scaled by any factor that keeps them near 1; `scale` is that which gives back the row's own unit.
    """

    kind: RowKind
    subject: tuple[str, ...]
    terms: tuple[tuple[int, float], ...]
    low: float = -math.inf
    high: float = math.inf
    scale: float = 1.0

    def value(self, values: Values) -> float:
        return math.fsum(coefficient * float(values[column]) for column, coefficient in self.terms)


@dataclass(frozen=True)
class Program:
    """Minimise costs x columns + constant. The first `replicas` columns are whole replicas.

    ranks: place of each of those among equals. tidy: weights of all columns by which the rest is settled once the
    whole columns are chosen and the cost is the least.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    costs: tuple[float, ...]
    replicas: int
    ranks: tuple[int, ...]
    tidy: tuple[float, ...]
    constant: float = 0.0

    @property
    def whole(self) -> list[int]:
        return [index for index, column in enumerate(self.columns) if column.whole]

    def cost(self, values: Values) -> float:
        return self.constant + math.fsum(cost * float(value) for cost, value in zip(self.costs, values, strict=True))
