"""Schedules of reports and what became of each of their due times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

import polars as pl

from app.store.database import Store
from app.store.gpu_rollup import HOUR_US

Status = Literal["waiting", "written", "retrying", "failed", "skipped"]


@dataclass(frozen=True)
class ReportRun:
    """A due time of a schedule, or a run by hand (due_at None), and what became of it."""

    schedule: str
    due_at: datetime | None
    status: Status
    window_from: datetime
    window_to: datetime
    attempts: int = 0
    ran_at: datetime | None = None
    known_at: datetime | None = None
    folder: str | None = None
    file: str | None = None
    sha256: str | None = None
    rows: int | None = None
    coverage: float | None = None
    error: str | None = None


_TIME = pl.Datetime("us", "UTC")
_SCHEMA: dict[str, Any] = {
    "schedule": pl.String, "due_at": _TIME, "status": pl.String, "window_from": _TIME, "window_to": _TIME,
    "attempts": pl.Int32, "ran_at": _TIME, "known_at": _TIME, "folder": pl.String, "file": pl.String,
    "sha256": pl.String, "rows": pl.Int64, "coverage": pl.Float64, "error": pl.String,
}  # fmt: skip
_COLUMNS = ", ".join(_SCHEMA)

# grain: one row per due time that is not in the table yet, and per run by hand
_INSERT = f"""
    INSERT INTO report_run BY NAME
    SELECT {_COLUMNS} FROM incoming_runs AS new
    WHERE NOT EXISTS (
        FROM report_run AS known WHERE known.schedule = new.schedule AND known.due_at = new.due_at
    )
"""
_DELETE = "DELETE FROM report_run WHERE schedule = $1 AND due_at = $2"

# grain: one row per schedule: up to when its due times are known
_CURSORS = """
    SELECT name, greatest(created_at, max(due_at)) AS after
    FROM report_schedule LEFT JOIN report_run ON schedule = name
    GROUP BY name, created_at
"""
# grain: one row per due time that is still to be written
_OPEN = f"SELECT {_COLUMNS} FROM report_run WHERE status IN ('waiting', 'retrying') ORDER BY due_at, schedule"

_CLOSE_REMOVED = """
    UPDATE report_run SET status = 'skipped', error = 'the schedule was taken out of wattmix.toml'
    WHERE status IN ('waiting', 'retrying') AND NOT list_contains($1::VARCHAR[], schedule)
"""
_FORGET_REMOVED = "DELETE FROM report_schedule WHERE NOT list_contains($1::VARCHAR[], name)"
# grain: one row per run; the latest $2 of a schedule
_LATEST = f"""
    SELECT {_COLUMNS} FROM report_run WHERE schedule = $1
    ORDER BY coalesce(due_at, ran_at) DESC LIMIT $2
"""
_FOLDER_OF = "SELECT folder FROM report_run WHERE schedule = $1 AND file = $2 ORDER BY ran_at DESC LIMIT 1"

# What a window still waits for: minutes that are not rolled up, hours of use that are built once more when they are
# over, and nodes that were seen in it but not yet past it.
_MISSING_OF = f"""
    SELECT
        (SELECT count(*) FROM dirty_minute WHERE minute_us >= $1 AND minute_us < $2)
        + (SELECT count(*) FROM dirty_engine_minute WHERE minute_us >= $1 AND minute_us < $2)
        + (SELECT count(*) FROM dirty_use_minute WHERE minute_us >= $1 AND minute_us < $2)
        + (SELECT count(*) FROM open_use_hour WHERE hour_us > $1 - {HOUR_US} AND hour_us <= $2 - {HOUR_US})
        + (SELECT count(*) FROM node_state WHERE last_sample_us >= $1 AND last_sample_us < $2) AS n
"""


def register(store: Store, names: Sequence[str], now: datetime) -> None:
    """Take over the schedules of wattmix.toml: a new one counts from now on, one that is gone is closed."""
    known = set(store.query("SELECT name FROM report_schedule")["name"])
    if known == set(names):
        return
    with store.transaction() as connection:
        connection.execute(_CLOSE_REMOVED, [list(names)])
        connection.execute(_FORGET_REMOVED, [list(names)])
        for name in sorted(set(names) - known):
            connection.execute("INSERT INTO report_schedule VALUES ($1, $2)", [name, now])


def cursors(store: Store) -> dict[str, datetime]:
    """Schedule -> the time up to which its due times are in the store."""
    return dict(store.query(_CURSORS).iter_rows())


def open_runs(store: Store) -> list[ReportRun]:
    """Due times that are still to be written, in their order."""
    return [ReportRun(**row) for row in store.query(_OPEN).iter_rows(named=True)]


def add_runs(store: Store, runs: Iterable[ReportRun]) -> None:
    """Note due times, each once, and runs by hand."""
    _insert(store, runs, replaced=None)


def update_run(store: Store, run: ReportRun) -> None:
    """What became of a due time."""
    _insert(store, [run], replaced=run)


def _insert(store: Store, runs: Iterable[ReportRun], *, replaced: ReportRun | None) -> None:
    frame = pl.DataFrame([asdict(run) for run in runs], schema=_SCHEMA)
    with store.transaction() as connection:
        if replaced is not None:
            connection.execute(_DELETE, [replaced.schedule, replaced.due_at])
        connection.register("incoming_runs", frame)
        connection.execute(_INSERT)
        connection.unregister("incoming_runs")


def latest_runs(store: Store, schedule: str, count: int) -> list[ReportRun]:
    """The latest runs of a schedule, the newest first."""
    return [ReportRun(**row) for row in store.query(_LATEST, [schedule, count]).iter_rows(named=True)]


def folder_of(store: Store, schedule: str, file: str) -> str | None:
    """The folder into which the schedule wrote a file of that name; None when it never did."""
    found = store.query(_FOLDER_OF, [schedule, file])["folder"]
    return None if found.is_empty() else found[0]


def missing_of(store: Store, start: datetime, end: datetime) -> int:
    """How much of [start, end) is still to come: minutes without a rollup, and nodes that have not passed its end."""
    bounds = [int(moment.timestamp() * 1e6) for moment in (start, end)]
    return int(store.query(_MISSING_OF, bounds)["n"][0])
