"""What every source of prices can do, and how one is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from collectors.http.client import Ask, Http
from collectors.http.problem import ProblemKind, SourceProblem, UnusableAnswer
from collectors.price.point import PricePoint, Refused

HOUR_S, DAY_S = 3600.0, 86_400.0
ADVICE: Mapping[ProblemKind, str] = {
    "no_access": "the provider lets nobody in without a key now; list prices count meanwhile",
    "not_found": "check base_url; the provider may have moved its interface",
    "rate_limited": "it is asked again later; list prices count meanwhile",
    "refused": "check base_url; the provider may have changed its interface",
    "empty": "the provider offers nothing now; it is asked again later",
    "no_recent_data": "the provider offers nothing now; it is asked again later",
}


@dataclass(frozen=True)
class PriceAnswer:
    """points: by GPU and market, each market apart. refused: prices that are not used, and why.

    age_s: how long ago the provider said this. problem: why it is not from just now, where asking failed and a kept
    answer stands in. notes: about the answer as a whole, in words for a person.
    """

    points: tuple[PricePoint, ...]
    refused: tuple[Refused, ...] = ()
    age_s: float = 0.0
    problem: SourceProblem | None = None
    notes: tuple[str, ...] = ()


class PriceProvider(Protocol):
    @property
    def name(self) -> str: ...

    def prices(self) -> PriceAnswer:
        """All that it has a price for. Raises SourceProblem."""


def ask_prices(http: Http, ask: Ask, read: Callable[[Any, datetime], PriceAnswer]) -> PriceAnswer:
    """What `read` makes of the answer, with its age and the problem, if any. Raises SourceProblem."""
    asked = dataclasses.replace(ask, fresh_s=HOUR_S, stale_s=DAY_S, advice=ADVICE)
    fetched = http.get(asked, read)
    return dataclasses.replace(fetched.value, age_s=fetched.age_s, problem=fetched.problem)


def answer_of(points: Sequence[PricePoint], refused: Sequence[Refused], notes: Sequence[str] = ()) -> PriceAnswer:
    """Raises UnusableAnswer where there is no price at all."""
    if not points:
        first = f", such as {refused[0].gpu_name}: {refused[0].reason}" if refused else ""
        raise UnusableAnswer(f"the answer holds no usable price{first}", "empty")
    ordered = sorted(points, key=lambda point: (point.gpu_name, point.memory_gb or 0, point.market))
    return PriceAnswer(tuple(ordered), tuple(refused), notes=tuple(notes))
