"""Token counts and the three bases that may divide them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app import units
from app.accounting.figure import Figure, missing

Basis = Literal["total", "computed", "output"]
BASES: tuple[Basis, ...] = ("total", "computed", "output")


@dataclass(frozen=True)
class TokenCounts:
    """Tokens of one window and GPU set. cached: prompt tokens served from the prefix cache; None when not measured."""

    prompt: int
    generated: int
    cached: int | None = None

    def of(self, basis: Basis) -> Figure:
        """Tokens of `basis`: total = prompt + generated; computed = total less cached; output = generated."""
        if basis == "output":
            return Figure(self.generated, "tokens", "measured")
        if basis == "total":
            return Figure(self.prompt + self.generated, "tokens", "measured")
        if self.cached is None:
            return missing("tokens", "measured", "cached prompt tokens were not recorded")
        return Figure(self.prompt + self.generated - self.cached, "tokens", "measured")


def per_mtok(amount: Figure, tokens: Figure, unit: str) -> Figure:
    """`amount` per million `tokens`. Missing with reason when either is missing, or "no tokens".

    Source: AIBC 2025 section 2.3 for $/Mtok; the same division serves joules and grams (design law 3).
    """
    if amount.value is None:
        return missing(unit, amount.method, str(amount.reason))
    if tokens.value is None:
        return missing(unit, amount.method, str(tokens.reason))
    if tokens.value == 0:
        return missing(unit, amount.method, "no tokens")
    return Figure(amount.value / units.mtok(tokens.value), unit, amount.method, coverage=amount.coverage)
