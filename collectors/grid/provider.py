"""What every provider of grid intensity can do, and the settings from which one is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from pydantic import SecretStr

from collectors.grid.http import Ask, Http
from collectors.grid.point import Basis, IntensityPoint, Kind
from collectors.grid.problem import SourceProblem, UnusableAnswer
from collectors.grid.series import newest, tidy

Capability = Literal["latest", "history", "forecast"]
QUARTER_S, HOUR_S, DAY_S = 900.0, 3600.0, 86_400.0


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
    """needs_key: makes sense only with a key. basis, kind: of its points; None where each point tells its own.

    Each method raises SourceProblem; `history` gives the points that start in [start, end), ValueError for no range.
    """

    @property
    def name(self) -> str: ...
    @property
    def needs_key(self) -> bool: ...
    @property
    def basis(self) -> Basis | None: ...
    @property
    def kind(self) -> Kind | None: ...
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


def checked_base_url(url: str) -> str:
    """`url` without a slash at its end. Raises ValueError, without the address, for what is none."""
    accepted = "base_url is http(s)://host[:port][/path], without user, password, query or fragment"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(accepted) from None
    plain = url.isascii() and url.isprintable() and " " not in url
    if not plain or parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError(accepted)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(accepted)
    return url.rstrip("/")


def unknown_zone(provider: str, zone: str, accepted: str) -> SourceProblem:
    return SourceProblem(
        "not_found", "not a zone of this provider", provider=provider, where=f"zone {zone}", advice=accepted
    )


def ask_for(http: Http, ask: Ask, read: Callable[[Any, datetime], IntensityAnswer]) -> IntensityAnswer:
    """What `read` makes of the answer, with its age and the problem, if any. Raises SourceProblem."""
    fetched = http.get(ask, read)
    return dataclasses.replace(fetched.value, age_s=fetched.age_s, problem=fetched.problem)


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
