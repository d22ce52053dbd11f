"""Reading values out of result objects: every refusal names the key, the value and what is accepted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from collectors.benchmark.run import MAX_COUNT, Latency

_MS = "milliseconds >= 0"


class FieldError(ValueError):
    """A key of a result object that cannot be used: names the key, the value and what is accepted."""

    def __init__(self, key: str, given: object, accepted: str) -> None:
        try:
            shown = repr(given)
        except RecursionError:
            shown = f"a {type(given).__name__} nested too deeply"
        super().__init__(f"`{key}`: given {shown[:60]}{'...' if len(shown) > 60 else ''}; accepted: {accepted}")


@dataclass(frozen=True)
class GpuOverride:
    """GPU name and count from the command line, for result files that do not record them."""

    name: str | None = None
    count: int | None = None

    def name_or_refuse(self, program: str) -> str:
        if not self.name:
            raise FieldError("gpu_name", self.name, f"a GPU name given with --gpu ({program} does not record it)")
        return self.name

    def count_or_refuse(self, program: str) -> int:
        if self.count is None:
            told = f"a whole number >= 1 given with --gpu-count ({program} does not record it)"
            raise FieldError("gpu_count", None, told)
        return self.count


@dataclass(frozen=True)
class Fields:
    """A JSON object and where it stands in the result object, so that a refusal names the whole way to a key."""

    content: Mapping[str, Any]
    path: str = ""

    def get(self, key: str) -> Any:
        return self.content.get(key)

    def has(self, key: str) -> bool:
        return self.content.get(key) is not None

    def refusal(self, key: str, accepted: str) -> FieldError:
        missing = "" if key in self.content else " (the key is missing)"
        return FieldError(f"{self.path}{key}", self.content.get(key), f"{accepted}{missing}")

    def inside(self, key: str) -> Fields:
        """The object under `key`; an empty one where there is none. Raises FieldError for anything else."""
        value = self.content.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.refusal(key, "an object")
        return Fields(value or {}, f"{self.path}{key}.")

    def items(self, key: str, accepted: str) -> list[Fields]:
        """The objects of the list under `key`. Raises FieldError where it is no list of objects, or empty."""
        value = self.content.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self.refusal(key, accepted)
        return [Fields(item, f"{self.path}{key}[{index}].") for index, item in enumerate(value)]

    def members(self, key: str) -> list[Fields]:
        """The objects in the object under `key`, numbered, for their names are whatever the file's author chose."""
        values = list(self.inside(key).content.values())
        if not all(isinstance(value, dict) for value in values):
            raise self.refusal(key, "an object of objects")
        return [Fields(value, f"{self.path}{key}[{index}].") for index, value in enumerate(values)]

    def number(self, key: str, accepted: str) -> float:
        value = self.content.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refusal(key, accepted)
        try:
            number = float(value)
        except OverflowError:
            raise self.refusal(key, accepted) from None
        if not math.isfinite(number):
            raise self.refusal(key, accepted)
        return number

    def positive(self, key: str, accepted: str) -> float:
        number = self.number(key, accepted)
        if number <= 0:
            raise self.refusal(key, accepted)
        return number

    def optional_positive(self, key: str) -> float | None:
        return self.positive(key, "a number > 0") if self.has(key) else None

    def count(self, key: str, *, minimum: int) -> int:
        accepted = f"a whole number >= {minimum}"
        number = self.number(key, accepted)
        if number < minimum or number != int(number) or number > MAX_COUNT:
            raise self.refusal(key, accepted)
        return int(number)

    def optional_count(self, key: str) -> int | None:
        return self.count(key, minimum=1) if self.has(key) else None

    def total(self, key: str, *, times: float = 1.0) -> int:
        """A sum of whole numbers, as `times` its mean: rounded, for a mean times a count is a float's last bit off."""
        accepted = "a number >= 0"
        total = self.number(key, accepted) * times
        if total < 0 or total > MAX_COUNT:
            raise self.refusal(key, accepted)
        return round(total)

    def text(self, key: str) -> str:
        value = self.content.get(key)
        if not isinstance(value, str) or not value.strip() or len(value) > 300 or not value.isprintable():
            raise self.refusal(key, "printable text of 1 to 300 characters")
        return value.strip()

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else None

    def measured_ms(self, key: str, *, ms: float = 1.0) -> float | None:
        """A latency written in units of `ms` milliseconds. NaN is what load generators write when nothing finished."""
        value = self.content.get(key)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        number = self.number(key, _MS) * ms
        if number < 0 or not math.isfinite(number):
            raise self.refusal(key, _MS)
        return number

    def quantiles_ms(self, keys: Iterable[tuple[str, float]], *, ms: float = 1.0) -> dict[float, float]:
        """Percentile -> milliseconds of each (key, percentile) that has a value."""
        found = {percentile: self.measured_ms(key, ms=ms) for key, percentile in keys}
        return {percentile: value for percentile, value in sorted(found.items()) if value is not None}


def latency_of(mean_ms: float | None, std_ms: float | None, quantiles_ms: dict[float, float]) -> Latency | None:
    """None where neither a mean nor a quantile was measured."""
    return Latency(mean_ms, std_ms, quantiles_ms) if quantiles_ms or mean_ms is not None else None
