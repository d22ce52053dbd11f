"""A figure: the only form in which a number travels to a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Method = Literal["measured", "estimated", "interpolated", "forecast", "default", "simulated", "tdp_estimate", "user"]


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
