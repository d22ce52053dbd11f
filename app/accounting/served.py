"""What the engines of a group did: tokens, requests and the share of its cost that prompts and answers have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from app.accounting.figure import Figure, Method, missing, weakest
from app.accounting.tokens import Basis, cached_from_lookups

# Without timings: an output token costs so many input tokens (design section 4, Cost).
OUTPUT_WEIGHT = 2.5
Count = Literal[
    "prompt_tokens", "generated_tokens", "cached_tokens", "prefix_query_tokens", "prefix_hit_tokens", "finished",
    "failed", "prefill_us", "decode_us",
]  # fmt: skip
COUNTS: tuple[Count, ...] = (
    "prompt_tokens", "generated_tokens", "cached_tokens", "prefix_query_tokens", "prefix_hit_tokens", "finished",
    "failed", "prefill_us", "decode_us",
)  # fmt: skip
_UNITS: Mapping[str, str] = {"finished": "requests", "failed": "requests"}
NOT_TOLD = "not told by the engine"
NO_ENGINE = "no engine"


@dataclass(slots=True)
class _Counts:
    """Sums of one model's engines; None where none of them has told it. unplaced: see Served."""

    values: dict[Count, int | None] = field(default_factory=lambda: dict.fromkeys(COUNTS))
    unplaced: int = 0

    def add(self, counts: Mapping[Count, int | None]) -> None:
        for name, value in counts.items():
            if value is not None:
                self.values[name] = (self.values[name] or 0) + value

    @property
    def cached(self) -> tuple[int, Method] | None:
        """Prompt tokens from a cache, and how that is known."""
        known = self.values
        if known["cached_tokens"] is not None:
            return known["cached_tokens"], "measured"
        asked, found, prompt = known["prefix_query_tokens"], known["prefix_hit_tokens"], known["prompt_tokens"]
        if asked is None or found is None or prompt is None:
            return None
        return cached_from_lookups(prompt, asked, found)


@dataclass(slots=True)
class Served:
    """Sums by model, so that a model whose engines do not tell a count leaves none that looks whole.

    gap_s: seconds of intervals longer than a minute. unplaced: engines that made tokens on GPUs that are not known, or
    not measured.
    """

    models: dict[str | None, _Counts] = field(default_factory=dict)
    gap_s: float = 0.0
    simulated: bool = False

    def add(
        self, model: str | None, counts: Mapping[Count, int | None], *, gap_s: float, unplaced: int, simulated: bool
    ) -> None:
        if model not in self.models:
            self.models[model] = _Counts()
        self.models[model].add(counts)
        # The same engines again in the next segment.
        self.models[model].unplaced = max(self.models[model].unplaced, unplaced)
        self.gap_s += gap_s
        self.simulated = self.simulated or simulated

    @property
    def unplaced(self) -> int:
        return sum(one.unplaced for one in self.models.values())

    @property
    def method(self) -> Method:
        return "simulated" if self.simulated else "interpolated" if self.gap_s > 0 else "measured"

    def count(self, name: Count) -> Figure:
        unit = _UNITS.get(name, "tokens")
        values = [(model, one.values[name]) for model, one in self.models.items()]
        return self._sum(values, unit)

    def cached_tokens(self) -> Figure:
        found = {model: one.cached for model, one in self.models.items()}
        figure = self._sum([(model, one[0] if one else None) for model, one in found.items()], "tokens")
        return replace(figure, method=weakest((figure.method, *(one[1] for one in found.values() if one))))

    def tokens(self, basis: Basis) -> Figure:
        """The tokens that divide: total = prompt + generated; computed = without cached prompt tokens; output."""
        generated = self.count("generated_tokens")
        if basis == "output" or generated.value is None:
            return generated
        prompts = self.input_tokens(basis)
        return prompts if prompts.value is None else replace(prompts, value=prompts.value + generated.value)

    def input_tokens(self, basis: Basis) -> Figure:
        """Prompt tokens; on the basis `computed` without cached ones."""
        prompt = self.count("prompt_tokens")
        if basis != "computed" or prompt.value is None:
            return prompt
        cached = self.cached_tokens()
        if cached.value is None:
            return missing("tokens", cached.method, f"cached prompt tokens are {cached.reason}")
        return replace(cached, value=prompt.value - cached.value)

    def input_share(self) -> Figure:
        """Share of a cost that prompts have: of the engines' time, else by tokens, estimated."""
        prefill, decode = self._told("prefill_us"), self._told("decode_us")
        if prefill is not None and decode is not None and prefill + decode > 0:
            return Figure(prefill / (prefill + decode), "share", "estimated" if self._untimed else self.method)
        prompt, generated = self.count("prompt_tokens"), self.count("generated_tokens")
        if prompt.value is None or generated.value is None:
            return missing("share", self.method, str(prompt.reason or generated.reason))
        weighed = prompt.value + OUTPUT_WEIGHT * generated.value
        if weighed == 0:
            return missing("share", self.method, "no tokens")
        return Figure(prompt.value / weighed, "share", weakest(("estimated", self.method)))

    def _told(self, name: Count) -> int | None:
        values = [value for one in self.models.values() if (value := one.values[name]) is not None]
        return sum(values) if values else None

    @property
    def _untimed(self) -> bool:
        """Whether a model made tokens and does not tell its times."""
        return any(one.values["generated_tokens"] and one.values["decode_us"] is None for one in self.models.values())

    def _sum(self, values: list[tuple[str | None, int | None]], unit: str) -> Figure:
        if not values:
            return missing(unit, self.method, NO_ENGINE)
        untold = [model for model, value in values if value is None]
        if untold:
            of = "" if len(values) == 1 else f" of {untold[0] or 'an unknown model'}"
            return missing(unit, self.method, NOT_TOLD + of)
        return Figure(sum(value for _, value in values if value is not None), unit, self.method)
