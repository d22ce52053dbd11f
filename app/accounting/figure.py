"""A figure: the only form in which a number travels to a person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# market: a price that a market asked, see docs/prices.md.
Method = Literal[
    "measured", "estimated", "interpolated", "forecast", "market", "default", "simulated", "tdp_estimate", "user",
]  # fmt: skip

# The stronger the earlier: a figure made of several is only as good as its weakest part.
_STRENGTH: tuple[Method, ...] = (
    "measured", "user", "interpolated", "estimated", "market", "default", "tdp_estimate", "forecast", "simulated",
)  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A value with its unit, how it was got, and, where there is none, why.

    value:    None means missing; then `reason` says why. Never rounded here.
    coverage: measured share of what the figure stands for, 0 to 1; None where that has no meaning.
    """

    value: float | None
    unit: str
    method: Method
    reason: str | None = None
    coverage: float | None = None

    def __post_init__(self) -> None:
        if (self.value is None) != (self.reason is not None):
            raise ValueError("a figure has a value or a reason, and not both")


def missing(unit: str, method: Method, reason: str) -> Figure:
    return Figure(None, unit, method, reason)


def weakest(methods: Iterable[Method]) -> Method:
    """The method of a figure made of parts of these methods; `measured` for none."""
    return max(methods, key=_STRENGTH.index, default="measured")


def total(parts: Iterable[Figure], unit: str) -> Figure:
    """The sum of figures of one unit; missing, with the first reason, when any of them is."""
    parts = list(parts)
    method = weakest(part.method for part in parts)
    reason = next((part.reason for part in parts if part.value is None), None)
    if reason is not None:
        return missing(unit, method, reason)
    return Figure(sum(part.value for part in parts if part.value is not None), unit, method)
