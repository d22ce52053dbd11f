"""Sums of seconds and joules that come out the same, whichever rows were added up first.

Floats that are multiples of one power of two add without rounding while the sum stays below 2^53 of them. So a fact
that only groups rows otherwise, such as a node that changes its fleet later, changes no bit of what was before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

# Parts of a second: 15 ns, exact up to 4 GPU-years. Parts of a joule: 0.24 uJ, exact up to 600 kWh. Larger sums are
# right to a float's last bit, as any are.
_STEPS = {"s": 2.0**26, "j": 2.0**22}


def sums(columns: Sequence[str]) -> str:
    """SQL of the sum of each column, under its own name; its last letter, s or j, is its unit."""
    return ", ".join(f"sum(round({name} * {_steps(name)})) / {_steps(name)} AS {name}" for name in columns)


def whole_steps(value: pl.Expr, name: str) -> pl.Expr:
    """`value` as a row of the column `name`, for sums of it."""
    return (value * _steps(name)).round() / _steps(name)


def _steps(name: str) -> float:
    return _STEPS[name.rpartition("_")[2]]
