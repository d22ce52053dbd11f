"""`wattmix report fleet-day|hourly`: a window's account as CSV, to a folder or to stdout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from app.commands.opening import opened
from app.config import load_config
from app.formatting import percent
from app.reports import report as reports
from app.reports.delivery import deliver
from app.reports.report import Report
from app.reports.request import Request, parse_request

STDOUT = "-"


def write(given: Mapping[str, str | None], out: str, db: Path | None, config_file: Path | None) -> None:
    """given: the words of `parse_request`, None where an option was left out."""
    config = load_config(config_file)
    request = parse_request({name: text for name, text in given.items() if text is not None}, datetime.now(UTC))
    console = Console(stderr=True, soft_wrap=True)
    with opened(db, config, config_file) as backend, _shown(console, request) as progress:
        report = backend.report(request, progress)
    if out == STDOUT:
        typer.echo(report.csv, nl=False)
    else:
        typer.echo(deliver(report, Path(out).expanduser(), request.name).file)
    for note in _notes(report):
        console.print(Text.assemble(("note:", "bold yellow"), f" {note}"))


@contextmanager
def _shown(console: Console, request: Request) -> Iterator[reports.Progress]:
    """A bar on the terminal; it moves while this process reads the store itself, and else shows that a hub does."""
    what = "days" if request.kind == "fleet-day" else "hours"
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"{what} of {request.window.first} to {request.window.after}", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _notes(report: Report) -> Iterator[str]:
    """What to know before the figures are used."""
    about = report.about()
    if not report.rows:
        yield "no GPU and no engine was seen in this window"
    if not report.is_complete:
        yield f"the window is not over: what was known at {report.known_at.isoformat(timespec='seconds')} is in it"
    if about["simulated"]:
        yield "simulated nodes are among the data"
    lowest = about["coverage"]["lowest"]
    if lowest is not None and lowest < 1:
        yield f"energy was measured {percent(lowest, 1)} of the time in the line with the least coverage"
