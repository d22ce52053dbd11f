"""An answer of Electricity Maps as points, whichever of its envelopes and versions it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from collectors.grid.point import FORECAST, Basis, IntensityPoint, judged
from collectors.grid.series import step_of, tidy
from collectors.http.fields import a_list, an_object, check_same, moment, moment_or_none, text
from collectors.http.problem import UnusableAnswer
from collectors.http.status import printable

NAME = "electricity_maps"
_LISTS = ("history", "data", "forecast")
_HOUR = timedelta(hours=1)
# What g/kWh is called, in lower case and without spaces.
_GRAMS_PER_KWH = frozenset({"gco2eq/kwh", "gco2e/kwh", "gco2/kwh", "g/kwh", "gco₂eq/kwh", "gco₂/kwh"})
_LENGTHS = {
    "5_minutes": timedelta(minutes=5), "15_minutes": timedelta(minutes=15), "hourly": _HOUR, "daily": timedelta(days=1),
}  # fmt: skip
_MONTHS = {"monthly": 1, "quarterly": 3, "yearly": 12}


def read_intensity(
    data: Any, *, zone: str, theirs: str, basis: Basis, fetched_at: datetime
) -> tuple[IntensityPoint, ...]:
    """zone: as the points call it; theirs: as it was asked for; basis: asked for, where the answer tells none.

    A row's own zone, granularity and basis count before those of the whole answer. Raises UnusableAnswer.
    """
    answer = an_object(data, "the answer")
    _check_status(answer)
    name, rows = _rows(answer)
    check_same(answer.get("zone", answer.get("countryCode", rows[0].get("zone"))), theirs, "zone")
    _check_units(answer)
    starts = [moment(row.get("datetime"), "`datetime`") for row in rows]
    # v3 does not always tell the granularity, which was an hour then.
    otherwise = min(step_of(starts, _HOUR), _HOUR)
    issued_at = moment_or_none(answer.get("updatedAt"), "`updatedAt`") if name == FORECAST else None
    points = []
    for row, start in zip(rows, starts, strict=True):
        check_same(row.get("zone", theirs), theirs, "zone")
        if "carbonIntensity" not in row:
            raise UnusableAnswer("a row has no `carbonIntensity`")
        value, reason = judged(row["carbonIntensity"])
        is_forecast = name == FORECAST
        estimated = is_forecast or row.get("isEstimated") is True
        points.append(
            IntensityPoint(
                zone=zone, start=start, end=_end(start, row, answer, otherwise), g_per_kwh=value,
                basis=_basis(row, answer, basis), kind="average", estimated=estimated,
                estimation_method=FORECAST if is_forecast else _method(row), is_forecast=is_forecast,
                provider=NAME, fetched_at=fetched_at,
                revised_at=None if is_forecast else moment_or_none(row.get("updatedAt"), "`updatedAt`"),
                issued_at=issued_at, reason=reason,
            )
        )  # fmt: skip
    return tidy(points)


def _check_status(answer: Mapping[str, Any]) -> None:
    """An error can come with HTTP 200."""
    said = answer.get("message") or answer.get("error")
    if answer.get("status") not in (None, "ok") or answer.get("error") is not None:
        words = printable(str(said)) if said is not None else f"status {printable(str(answer.get('status')))!r}"
        gaps = "no recent data" in words.lower() or answer.get("status") == "no-data"
        raise UnusableAnswer(words, "no_recent_data" if gaps else "refused")


def _rows(answer: Mapping[str, Any]) -> tuple[str | None, list[Mapping[str, Any]]]:
    """(name of the list, its rows), or (None, the one row) of a flat answer."""
    for name in _LISTS:
        if name in answer:
            inner = answer[name]
            rows = [inner] if isinstance(inner, dict) else a_list(inner, f"`{name}`")
            if not rows:
                raise UnusableAnswer(f"`{name}` is empty", "empty")
            return name, [an_object(row, f"a row of `{name}`") for row in rows]
    if "carbonIntensity" not in answer:
        raise UnusableAnswer("the answer has no `carbonIntensity`, `history`, `data` or `forecast`")
    return None, [answer]


def _check_units(answer: Mapping[str, Any]) -> None:
    units = answer.get("units")
    for unit in (answer.get("unit"), units.get("carbonIntensity") if isinstance(units, dict) else units):
        if unit is None:
            continue
        if not isinstance(unit, str) or unit.replace(" ", "").lower() not in _GRAMS_PER_KWH:
            raise UnusableAnswer(f"the unit is {str(unit)[:60]!r}; gCO2eq/kWh is read")


def _basis(row: Mapping[str, Any], answer: Mapping[str, Any], asked: Basis) -> Basis:
    said = row.get("emissionFactorType", answer.get("emissionFactorType"))
    if said is None:
        return asked
    if said not in ("lifecycle", "direct"):
        raise UnusableAnswer(f"`emissionFactorType` is {str(said)[:40]!r}; lifecycle and direct are read")
    return cast(Basis, said)


def _method(row: Mapping[str, Any]) -> str | None:
    method = row.get("estimationMethod")
    return printable(method) or None if isinstance(method, str) else None


def _end(start: datetime, row: Mapping[str, Any], answer: Mapping[str, Any], otherwise: timedelta) -> datetime:
    said = row.get("temporalGranularity", answer.get("temporalGranularity"))
    if said is None:
        return start + otherwise
    granularity = text(said, "`temporalGranularity`")
    if granularity in _LENGTHS:
        return start + _LENGTHS[granularity]
    if granularity not in _MONTHS:
        accepted = ", ".join([*_LENGTHS, *_MONTHS])
        raise UnusableAnswer(f"`temporalGranularity` is {granularity[:40]!r}; {accepted} are read")
    months = start.year * 12 + start.month - 1 + _MONTHS[granularity]
    return start.replace(year=months // 12, month=months % 12 + 1, day=1)
