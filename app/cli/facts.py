"""`wattmix facts`: what is known since when."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import ConfigFile, Db, RunsFormat, need_hub

facts = typer.Typer(help="Dated facts: prices, tariffs, PUEs, zones, fleets of nodes, exchange rates, SLOs.")


@facts.command("import")
def facts_import(
    file: Annotated[Path, typer.Argument(help="CSV in the columns of `wattmix facts template`.")],
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Add the facts of a CSV, all rows or none. Importing a file again changes nothing."""
    need_hub("facts")
    from app.commands import facts as facts_command

    facts_command.import_file(file, db, config)


@facts.command("list")
def facts_list(
    kind: Annotated[str | None, typer.Option("--kind", help="price, tariff, pue, zone, ...")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="A fleet, node, model, currency.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="MOMENT", help="Only what is in force then.")] = None,
    known_at: Annotated[
        str | None, typer.Option("--known-at", metavar="MOMENT", help="By what was known then (now).")
    ] = None,
    form: Annotated[RunsFormat, typer.Option("--format", help="table, csv or json")] = RunsFormat.table,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """List facts with the time from which they hold, since when they are known, and from where."""
    need_hub("facts")
    from app.commands import facts as facts_command

    facts_command.show(kind, subject, at, known_at, form.value, db, config)


@facts.command("template")
def facts_template() -> None:
    """Print a CSV to start from: every column, and an example row of each kind."""
    need_hub("facts")
    from app.commands import facts as facts_command

    facts_command.show_template()
