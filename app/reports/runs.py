"""Running a schedule: the report of a moment into its folder, what is recorded of it, and what is shown of all."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from app import cron
from app.config import Config
from app.errors import UnknownName
from app.report_settings import ReportSchedule
from app.reports.delivery import MANIFEST_SUFFIX, deliver
from app.reports.report import Account, build_report
from app.reports.schedule import next_due, request_at
from app.store.database import Store
from app.store.reports import ReportRun, add_runs, cursors, folder_of, latest_runs

SHOWN_RUNS = 50


def folder_for(schedule: ReportSchedule, config: Config, store_path: Path) -> Path:
    """The schedule's own folder, else [reports] folder, else `<store>.reports` beside the store."""
    named = schedule.out or config.reports.folder
    return Path(named) if named else store_path.with_name(store_path.name + ".reports")


def find_schedule(config: Config, name: str) -> ReportSchedule:
    """The schedule of that name. Raises UnknownName."""
    for schedule in config.report:
        if schedule.name == name:
            return schedule
    names = ", ".join(schedule.name for schedule in config.report) or "none yet ([[report]] of wattmix.toml)"
    raise UnknownName(f"no scheduled report {name!r}; there are: {names}")


def waiting_run(schedule: ReportSchedule, due_at: datetime | None, moment: datetime) -> ReportRun:
    """The run of a due time, or by hand, before anything was done for it."""
    window = request_at(schedule, moment).window
    return ReportRun(schedule.name, due_at, "waiting", window.start, window.end)


def write_run(
    run: ReportRun, schedule: ReportSchedule, moment: datetime, account: Account, folder: Path, now: datetime
) -> ReportRun:
    """Write the report of `moment` with what is known `now`; the run as written. Raises DeliveryError."""
    report = build_report(request_at(schedule, moment), account, now)
    delivered = deliver(report, folder, schedule.name)
    return replace(
        run,
        status="written",
        attempts=run.attempts + 1,
        ran_at=now,
        known_at=report.known_at,
        folder=str(folder),
        file=delivered.file.name,
        sha256=delivered.sha256,
        rows=delivered.rows,
        coverage=report.mean_coverage,
        error=None,
    )


def run_by_hand(store: Store, config: Config, name: str, account: Account, now: datetime) -> dict[str, Any]:
    """Write the report that the schedule would make now, and record it. Raises UnknownName or DeliveryError."""
    schedule = find_schedule(config, name)
    run = waiting_run(schedule, None, now)
    try:
        run = write_run(run, schedule, now, account, folder_for(schedule, config, store.path), now)
    except Exception as problem:
        add_runs(store, [replace(run, status="failed", attempts=1, ran_at=now, error=str(problem))])
        raise
    add_runs(store, [run])
    return run_as_json(run)


def schedules_as_json(store: Store, config: Config, now: datetime) -> list[dict[str, Any]]:
    """Every schedule of wattmix.toml with its latest runs and its next due time."""
    known = cursors(store)
    return [_schedule(store, config, schedule, known.get(schedule.name, now)) for schedule in config.report]


def _schedule(store: Store, config: Config, schedule: ReportSchedule, after: datetime) -> dict[str, Any]:
    due = next_due(schedule, after)
    runs = [run_as_json(run) for run in latest_runs(store, schedule.name, SHOWN_RUNS)]
    return {
        **schedule.model_dump(exclude={"out"}),
        "cron_in_words": cron.in_words(schedule.cron),
        "folder": str(folder_for(schedule, config, store.path)),
        "next_due": due.isoformat() if due else None,
        "last_run": next((run for run in runs if run["ran_at"] is not None), None),
        "runs": runs,
    }


def run_as_json(run: ReportRun) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(run).items()
        if name != "schedule"
    }


def written_file(store: Store, name: str, file: str) -> Path:
    """The path of a file, or manifest, that the schedule has written. Raises UnknownName for any other."""
    folder = folder_of(store, name, file.removesuffix(MANIFEST_SUFFIX))
    path = None if folder is None else Path(folder) / file
    if path is None or not path.is_file():
        raise UnknownName(f"no file {file!r} of the scheduled report {name!r}")
    return path
