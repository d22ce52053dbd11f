"""The command line. Only options and help live here; each command's work is in `app.commands`."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from app import __version__
from app.cli import facts, hub, node, report, tokens
from app.errors import WattmixError

cli = typer.Typer(
    name="wattmix",
    help="Dollars, joules and grams of CO2 per million tokens on each GPU fleet, and the mix of fleets to run next.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for of_machine in (hub.commands, node.commands):
    cli.add_typer(of_machine)
cli.add_typer(report.report, name="report", no_args_is_help=True)
cli.add_typer(facts.facts, name="facts", no_args_is_help=True)
cli.add_typer(tokens.tokens, name="token", no_args_is_help=True)


def main() -> NoReturn:
    """Run a command. A WattmixError is told in words with its exit code; any other is ours and keeps its trace."""
    try:
        cli()
    except WattmixError as error:
        Console(stderr=True, soft_wrap=True).print(Text.assemble(("error:", "bold red"), f" {error}"))
        sys.exit(error.exit_code)
    sys.exit(0)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"wattmix {__version__}")
        raise typer.Exit


@cli.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The options that come before a command."""
