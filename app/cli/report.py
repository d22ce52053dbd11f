"""`wattmix report`: accounts as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import ConfigFile, Db, need_hub

report = typer.Typer(help="What each fleet did and cost, as CSV: once, here. Scheduled ones are in wattmix.toml.")

FromDate = Annotated[str | None, typer.Option("--from", metavar="DATE", help="First local day (the day before --to).")]
ToDate = Annotated[
    str | None, typer.Option("--to", metavar="DATE", help="The day after the last local day (today: so yesterday).")
]
TimeZone = Annotated[str, typer.Option("--tz", metavar="ZONE", help="Time zone of the days, e.g. Europe/Madrid.")]
Out = Annotated[
    str, typer.Option("--out", metavar="DIR|-", help="Folder for the file and its manifest; - prints the CSV.")
]
Boundary = Annotated[str, typer.Option("--boundary", metavar="gpu|it|site", help="What energy and grams take in.")]
Basis = Annotated[
    str, typer.Option("--basis", metavar="total|computed|output", help="Tokens of $/Mtok, tokens/J and g/Mtok.")
]
KnownAt = Annotated[
    str | None, typer.Option("--known-at", metavar="MOMENT", help="By the prices, factors and fleets known then (now).")
]


@report.command("fleet-day")
def report_fleet_day(
    first: FromDate = None,
    after: ToDate = None,
    tz: TimeZone = "UTC",
    out: Out = "-",
    boundary: Boundary = "it",
    basis: Basis = "total",
    known_at: KnownAt = None,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """A line per local day, fleet and model."""
    _report("fleet-day", first, after, tz, boundary, basis, known_at, out, db, config)


@report.command("hourly")
def report_hourly(
    first: FromDate = None,
    after: ToDate = None,
    tz: TimeZone = "UTC",
    out: Out = "-",
    boundary: Boundary = "it",
    basis: Basis = "total",
    known_at: KnownAt = None,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """A line per local hour, fleet and model."""
    _report("hourly", first, after, tz, boundary, basis, known_at, out, db, config)


def _report(
    kind: str, first: str | None, after: str | None, tz: str, boundary: str, basis: str,
    known_at: str | None, out: str, db: Path | None, config: Path | None,
) -> None:  # fmt: skip
    need_hub("report")
    from app.commands import report as report_command

    given = {
        "kind": kind, "from": first, "to": after, "tz": tz, "boundary": boundary, "basis": basis, "known-at": known_at,
    }  # fmt: skip
    report_command.write(given, out, db, config)
