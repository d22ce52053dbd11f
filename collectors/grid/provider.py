"""What every provider of grid intensity can do, and the settings from which one is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from pydantic import SecretStr

from collectors.grid.point import Basis, IntensityPoint, Kind
from collectors.grid.series import newest, tidy
from collectors.http.problem import SourceProblem, UnusableAnswer

Capability = Literal["latest", "history", "forecast"]


@dataclass(frozen=True)
class IntensityAnswer:
    """points: in order, without overlap, of the zone as it was asked for.

    age_s: how long ago the provider said this; 0 just now. problem: why it is not from just now, where asking failed
    and a kept answer stands in. notes: what the provider says about its data, in words for a person.
    """

    points: tuple[IntensityPoint, ...]
    age_s: float = 0.0
    problem: SourceProblem | None = None
    notes: tuple[str, ...] = ()


class Provider(Protocol):
    """Each method raises SourceProblem; `history` gives the points that start in [start, end).

    A range that is none is a ValueError.
    """

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> frozenset[Capability]: ...

    def latest(self, zone: str) -> IntensityAnswer:
        """One point: what is best known about now."""

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer: ...

    def forecast(self, zone: str) -> IntensityAnswer: ...


@dataclass(frozen=True)
class ProviderSettings:
    """base_url: the provider's own when None. zones: a zone as it is named here -> as the provider spells it.

    key: a token, or the password of `user`. basis, kind: where the provider serves several. path: of a CSV file.
    """

    name: str
    base_url: str | None = None
    key: SecretStr | None = None
    user: str | None = None
    zones: Mapping[str, str] = field(default_factory=dict)
    basis: Basis | None = None
    kind: Kind | None = None
    path: Path | None = None


@dataclass(frozen=True)
class Absent:
    """A provider that is not made; reason: why, and what would make it."""

    name: str
    reason: str


def unknown_zone(provider: str, zone: str, accepted: str) -> SourceProblem:
    return SourceProblem(
        "not_found", "not a zone of this provider", provider=provider, where=f"zone {zone}", advice=accepted
    )


def newest_of(answer: IntensityAnswer, now: datetime, *, provider: str, zone: str) -> IntensityAnswer:
    """`answer` with the one point that says most about now. Raises SourceProblem."""
    try:
        return dataclasses.replace(answer, points=(newest(answer.points, now),))
    except UnusableAnswer as unusable:
        kind, what = unusable.kind, str(unusable)
    raise SourceProblem(kind, what, provider=provider, where=f"zone {zone}, latest")


def history_of(
    pieces: Iterable[tuple[datetime, datetime]],
    get: Callable[[datetime, datetime], IntensityAnswer],
    *,
    provider: str,
    zone: str,
) -> IntensityAnswer:
    """The answers to the pieces of one range as one, as old as its oldest; a piece without data is a gap.

    Raises SourceProblem, also where no piece holds a point that starts in it.
    """
    points: list[IntensityPoint] = []
    ages_s, problems = [0.0], list[SourceProblem | None]()
    notes: dict[str, None] = {}
    for start, end in pieces:
        try:
            part = get(start, end)
        except SourceProblem as problem:
            if problem.kind != "empty":
                raise
            notes[f"nothing from {start:%Y-%m-%d %H:%M}Z to {end:%Y-%m-%d %H:%M}Z: {problem.what}"] = None
            continue
        points.extend(tidy(part.points, start, end))
        ages_s.append(part.age_s)
        problems.append(part.problem)
        notes |= dict.fromkeys(part.notes)
    if not points:
        raise SourceProblem(
            "empty", "the answer holds nothing of the time that was asked for", provider=provider,
            where=f"zone {zone}, history",
        )  # fmt: skip
    first = next((problem for problem in problems if problem is not None), None)
    return IntensityAnswer(tidy(points), max(ages_s), first, tuple(notes))
