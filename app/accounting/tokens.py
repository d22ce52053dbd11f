"""Token counts and the three bases that may divide them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app import units
from app.accounting.figure import Figure, Method, missing

Basis = Literal["total", "computed", "output"]
BASES: tuple[Basis, ...] = ("total", "computed", "output")


@dataclass(frozen=True)
class TokenCounts:
    """Tokens of one window and GPU set. cached: prompt tokens served from the prefix cache; None when not measured.

    cached_method: `estimated` where the engine counts look-ups instead of what a cache served.
    """

    prompt: int
    generated: int
    cached: int | None = None
    cached_method: Method = "measured"

    def of(self, basis: Basis) -> Figure:
        """Tokens of `basis`: total = prompt + generated; computed = total less cached; output = generated."""
        if basis == "output":
            return Figure(self.generated, "tokens", "measured")
        if basis == "total":
            return Figure(self.prompt + self.generated, "tokens", "measured")
        if self.cached is None:
            return missing("tokens", "measured", "cached prompt tokens were not recorded")
        return Figure(self.prompt + self.generated - self.cached, "tokens", self.cached_method)


def cached_from_lookups(prompt: int, looked_up: int, found: int) -> tuple[int, Method]:
    """(prompt tokens that a prefix cache served, how that is known) for an engine that only counts look-ups.

    An engine under pressure looks a waiting request up again at every step (vLLM 0.8.5 V1, 0.12.0): then more tokens
    are looked up than prompts have, and the share found of them is the better estimate of what was served.
    """
    if looked_up <= prompt:
        return min(found, prompt), "measured"
    return min(round(found * prompt / looked_up), prompt), "estimated"


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
