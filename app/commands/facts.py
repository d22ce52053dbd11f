"""`wattmix facts import|list|template`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answers.facts import facts_as_csv
from app.commands.opening import opened
from app.config import load_config
from app.errors import BadParameter, ImportFileError
from app.facts.fields import moment_of
from app.facts.template import template


def import_file(file: Path, db: Path | None, config_file: Path | None) -> None:
    """All rows or none; what stands in the way is told by line and column."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ImportFileError(f"{file}: not UTF-8 text") from None
    except OSError as problem:
        raise ImportFileError(f"{file}: cannot be read: {problem.strerror}") from None
    with opened(db, load_config(config_file), config_file) as backend:
        added = backend.import_facts(text, str(file))
    typer.echo(f"{added['new']} facts imported, {added['known']} already known.")
    for note in added["notes"]:
        Console(stderr=True, soft_wrap=True).print(Text.assemble(("note:", "bold yellow"), f" {note}"))


def show(
    kind: str | None,
    subject: str | None,
    at: str | None,
    known_at: str | None,
    form: str,
    db: Path | None,
    config_file: Path | None,
) -> None:
    moments = {"at": _moment("--at", at), "known_at": _moment("--known-at", known_at)}
    with opened(db, load_config(config_file), config_file) as backend:
        answer = backend.facts(kind=kind, subject=subject, **moments)
    if form == "json":
        typer.echo(json.dumps(answer, indent=2))
    elif form == "csv":
        typer.echo(facts_as_csv(answer), nl=False)
    else:
        Console(soft_wrap=True).print(_table(answer["facts"]))


def show_template() -> None:
    typer.echo(template(datetime.now(UTC)), nl=False)


def _moment(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return moment_of(text)
    except ValueError as accepted:
        raise BadParameter(f"{option}: given {text!r}; accepted: {accepted}") from None


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("kind", "subject", "valid from", "value", "standing", "known at", "source", header_style="bold")
    for row in rows:
        times = (f"{datetime.fromisoformat(row[name]):%Y-%m-%d %H:%M}" for name in ("valid_from", "known_at"))
        valid_from, known_at = times
        cells = (row["kind"], row["subject"], valid_from, row["in_words"], row["standing"], known_at, row["source"])
        table.add_row(*(Text(cell) for cell in cells))
    return table
