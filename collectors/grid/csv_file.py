"""A person's own intensities from a CSV file: columns zone, start, end, g_per_kwh, basis and, if wanted, kind, source.

Every row is checked before any counts; a file with one bad row gives nothing but the list of its bad lines.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import cast, get_args

from collectors.grid.point import MAX_G_PER_KWH, Basis, IntensityPoint, Kind
from collectors.grid.provider import Capability, IntensityAnswer, history_of, newest_of, unknown_zone
from collectors.grid.series import chunks
from collectors.http.problem import SourceProblem

NAME = "csv_file"
COLUMNS = ("zone", "start", "end", "g_per_kwh", "basis")
OPTIONAL = ("kind", "source")
MAX_BYTES = 64 * 2**20
MOST_TOLD = 10
_MOST_CHARS = 200
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")


class CsvFile:
    """path: read again whenever the file has changed. zones: a zone of ours -> the file's; most are the same."""

    name = NAME
    capabilities: frozenset[Capability] = frozenset({"latest", "history"})

    def __init__(
        self,
        path: Path,
        *,
        zones: Mapping[str, str] | None = None,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = path
        self._zones = dict(zones or {})
        self._utc_now = utc_now
        self._stamp: tuple[int, int] | None = None
        self._points: dict[str, list[IntensityPoint]] = {}

    def latest(self, zone: str) -> IntensityAnswer:
        return newest_of(IntensityAnswer(self._of(zone)), self._utc_now(), provider=self.name, zone=zone)

    def history(self, zone: str, start: datetime, end: datetime) -> IntensityAnswer:
        points = self._of(zone)
        return history_of(
            chunks(start, end, end - start), lambda *_: IntensityAnswer(points), provider=self.name, zone=zone
        )

    def forecast(self, zone: str) -> IntensityAnswer:
        raise SourceProblem(
            "not_found", "a file has no forecasts", provider=self.name, where=f"zone {zone}, forecast",
            advice="name another provider for forecasts",
        )  # fmt: skip

    def _of(self, zone: str) -> tuple[IntensityPoint, ...]:
        theirs = self._zones.get(zone, zone)
        self._look()
        if theirs not in self._points:
            raise unknown_zone(self.name, zone, f"zones of {self._path.name}: {', '.join(sorted(self._points)[:20])}")
        return tuple(dataclasses.replace(point, zone=zone) for point in self._points[theirs])

    def _look(self) -> None:
        """Read the file if it is new or has changed. Raises SourceProblem."""
        try:
            state = self._path.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            if stamp == self._stamp:
                return
            if state.st_size > MAX_BYTES:
                raise self._problem(f"has more than {MAX_BYTES // 2**20} MiB", "split it by zone or year")
            text = self._path.read_text(encoding="utf-8-sig")
        except OSError as problem:
            raise self._problem(f"cannot be read: {problem.strerror}", "check the path and its rights") from None
        except UnicodeDecodeError:
            raise self._problem("is not UTF-8", "save it as UTF-8") from None
        try:
            points = read_csv(text, fetched_at=self._utc_now())
        except ValueError as problem:
            raise self._problem(str(problem), "mend these lines; until then nothing of the file counts") from None
        self._points = {}
        for point in points:
            self._points.setdefault(point.zone, []).append(point)
        self._stamp = stamp

    def _problem(self, what: str, advice: str) -> SourceProblem:
        return SourceProblem("malformed", what, provider=self.name, where=f"file {self._path}", advice=advice)


def read_csv(text: str, *, fetched_at: datetime) -> list[IntensityPoint]:
    """The points of a file's text, by zone and time. Raises ValueError that names each bad line (the first ten)."""
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, restkey="", restval=None)
    rows: list[tuple[int, IntensityPoint]] = []
    bad: list[str] = []
    try:
        _check_columns(reader.fieldnames or ())
        for row in reader:
            try:
                rows.append((reader.line_num, _point(row, fetched_at)))
            except ValueError as problem:
                bad.append(f"line {reader.line_num}: {problem}")
    except csv.Error as problem:
        bad.append(f"line {reader.line_num + 1}: {problem}")
    rows.sort(key=lambda one: (one[1].zone, one[1].kind, one[1].start))
    bad.extend(_overlaps(rows))
    if bad:
        more = f"; and {len(bad) - MOST_TOLD} more" if len(bad) > MOST_TOLD else ""
        raise ValueError("; ".join(bad[:MOST_TOLD]) + more)
    if not rows:
        raise ValueError("line 1: there are no rows below the columns' names")
    return [point for _, point in rows]


def _check_columns(names: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in names]
    extra = [name for name in names if name not in (*COLUMNS, *OPTIONAL)]
    accepted = f"the columns are {', '.join(COLUMNS)} and, if wanted, {', '.join(OPTIONAL)}, separated by commas"
    if missing:
        raise ValueError(f"line 1: {', '.join(missing)} is missing; {accepted}")
    if extra or len(set(names)) < len(names):
        shown = ", ".join(repr(name[:40]) for name in extra) or "a name that stands twice"
        raise ValueError(f"line 1: {shown} is no column here; {accepted}")


def _point(row: Mapping[str, str | None], fetched_at: datetime) -> IntensityPoint:
    if "" in row or None in row.values():
        raise ValueError("it has more or fewer cells than line 1 names")
    cells = {name: (cell or "").strip() for name, cell in row.items()}
    zone, source = cells["zone"], cells.get("source", "")
    if not zone or not zone.isprintable() or len(zone) > _MOST_CHARS or len(source) > _MOST_CHARS:
        raise ValueError(f"`zone` is a name of 1 to {_MOST_CHARS} characters, `source` has at most as many")
    start, end = _moment(cells, "start"), _moment(cells, "end")
    if end <= start:
        raise ValueError("`end` is after `start`")
    return IntensityPoint(
        zone=zone, start=start, end=end, g_per_kwh=_grams(cells["g_per_kwh"]),
        basis=cast(Basis, _one_of(cells["basis"], "basis", get_args(Basis))),
        kind=cast(Kind, _one_of(cells.get("kind") or "average", "kind", get_args(Kind))),
        estimated=False, estimation_method=None, is_forecast=False,
        provider=f"{NAME}: {source}" if source else NAME, fetched_at=fetched_at,
    )  # fmt: skip


def _moment(cells: Mapping[str, str], name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(cells[name])
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        moment = None
    lacks = "" if moment is None else " (it has no offset)"
    raise ValueError(
        f"`{name}` is a time with its offset such as 2026-11-30T10:00Z or 2026-11-30T11:00+01:00, "
        f"not {cells[name][:40]!r}{lacks}"
    )


def _grams(cell: str) -> float:
    grams = float(cell) if _NUMBER.fullmatch(cell) and cell.isascii() else -1.0
    if not 0 <= grams <= MAX_G_PER_KWH:
        raise ValueError(f"`g_per_kwh` is a number from 0 to {MAX_G_PER_KWH:g}, not {cell[:40]!r}")
    return grams


def _one_of(cell: str, name: str, words: Sequence[str]) -> str:
    if cell not in words:
        raise ValueError(f"`{name}` is {', '.join(words[:-1])} or {words[-1]}, not {cell[:40]!r}")
    return cell


def _overlaps(rows: Sequence[tuple[int, IntensityPoint]]) -> list[str]:
    return [
        f"line {max(line, before)}: it overlaps line {min(line, before)} of the same zone and kind"
        for (before, sooner), (line, later) in pairwise(rows)
        if (sooner.zone, sooner.kind) == (later.zone, later.kind) and later.start < sooner.end
    ]
