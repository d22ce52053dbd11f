"""The command line. Only options and help live here; each command's work is in `app.commands`."""

from __future__ import annotations

import importlib.util
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from app import __version__
from app.errors import MissingPart, WattmixError

cli = typer.Typer(
    name="wattmix",
    help="Dollars, joules and grams of CO2 per million tokens on each GPU fleet, and the mix of fleets to run next.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_HUB_MODULES = ("cronsim", "duckdb", "polars", "pyarrow", "streamlit", "plotly", "highspy", "uvicorn")

Db = Annotated[
    Path | None,
    typer.Option("--db", help="The store's DuckDB file (env WATTMIX_DB; else data/wattmix.duckdb in a checkout)."),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="wattmix.toml (env WATTMIX_CONFIG; else ./wattmix.toml)")
]
Port = Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Port of the hub (8501).")]


class RunsFormat(StrEnum):
    table = "table"
    csv = "csv"
    json = "json"


class SplitFormat(StrEnum):
    table = "table"
    json = "json"


class JsonFormat(StrEnum):
    json = "json"


class Scope(StrEnum):
    node = "node"
    read = "read"


class Assume(StrEnum):
    corrected = "corrected"
    study = "study"


def main() -> NoReturn:
    """Run a command. A WattmixError is told in words with its exit code; any other is ours and keeps its trace."""
    try:
        cli()
    except WattmixError as error:
        Console(stderr=True, soft_wrap=True).print(Text.assemble(("error:", "bold red"), f" {error}"))
        sys.exit(error.exit_code)
    sys.exit(0)


def need_hub(command: str) -> None:
    """Raises MissingPart, with the command that installs it, on a machine without the hub's packages."""
    missing = [name for name in _HUB_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingPart(
            f"`wattmix {command}` needs the hub, which is not installed here ({', '.join(missing)} missing). "
            "Install it with: pip install 'wattmix[hub]'"
        )


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


@cli.command()
def serve(
    db: Db = None,
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on (127.0.0.1).")] = None,
    port: Port = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow an address that other machines reach, without a login.")
    ] = False,
) -> None:
    """Start the hub: dashboard, API and store in one process."""
    need_hub("serve")
    from app.commands import serving

    serving.serve(db, config, host, port, insecure=insecure)


@cli.command()
def demo(
    db: Annotated[Path | None, typer.Option("--db", help="Where the demo's own store goes.")] = None,
    port: Port = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    no_simulation: Annotated[
        bool, typer.Option("--no-simulation", help="Only the study's runs: no simulated nodes.")
    ] = False,
) -> None:
    """Start a hub on demo data, in a store of its own made anew each time: the study's 130 runs and simulated nodes."""
    need_hub("demo")
    from app.commands import serving

    serving.demo(db, port, browser=not no_browser, simulation=not no_simulation)


@cli.command(name="import")
def import_runs(
    paths: Annotated[list[str], typer.Argument(help="Result files, folders or globs.")],
    db: Db = None,
    config: ConfigFile = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="GPU name, for files that do not record it.")] = None,
    gpu_count: Annotated[
        int | None, typer.Option("--gpu-count", min=1, help="GPUs per replica, for files that do not record it.")
    ] = None,
    max_file_mb: Annotated[int, typer.Option("--max-file-mb", min=1, help="Largest file to read, in MB.")] = 64,
) -> None:
    """Import benchmark results (vLLM benchmark_serving JSON). Importing a file again changes nothing."""
    need_hub("import")
    from app.commands import importing

    importing.import_paths(paths, db, config, gpu, gpu_count, max_file_mb)


@cli.command()
def runs(
    model: Annotated[str | None, typer.Option("--model", help="One model, with or without its organisation.")] = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="One GPU.")] = None,
    assume: Annotated[
        Assume, typer.Option("--assume", help="study: its 700 W for the H100 PCIe, 242 g/kWh and PUE 1.")
    ] = Assume.corrected,
    form: Annotated[RunsFormat, typer.Option("--format", help="table, csv or json")] = RunsFormat.table,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Show what each imported run cost in dollars, joules and grams."""
    need_hub("runs")
    from app.commands import runs as runs_command

    runs_command.show(model, gpu, assume.value, form.value, db, config)


@cli.command()
def split(
    demand: Annotated[
        Path | None,
        typer.Option("--demand", help="demand.toml (default: wattmix.toml's, else the shipped example)"),
    ] = None,
    form: Annotated[SplitFormat, typer.Option("--format", help="table or json")] = SplitFormat.table,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Recommend which fleets, and how many replicas, carry a demand at least cost within its SLOs."""
    need_hub("split")
    from app.commands import split as split_command

    split_command.show(demand, form.value, db, config)


@cli.command()
def status(
    form: Annotated[SplitFormat, typer.Option("--format", help="table or json")] = SplitFormat.table,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Show nodes and GPUs: last seen, lag, coverage, energy method, and what should be done about each."""
    need_hub("status")
    from app.commands import status as status_command

    status_command.show(form.value, db, config)


@cli.command()
def grid(
    zone: Annotated[str, typer.Argument(help="A zone, e.g. DE, or a cloud region, e.g. aws:eu-west-1.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the hours of the last day.")] = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Show a zone's carbon intensity: now, by the yearly table and to come, with source, basis and kind."""
    need_hub("grid")
    from app.commands import grid as grid_command

    grid_command.show(zone, db, config, as_json=as_json)


@cli.command()
def prices(
    source: Annotated[str | None, typer.Option(help="runpod or vast; without it both.")] = None,
    gpu: Annotated[str | None, typer.Option(help="Only this card, e.g. 'RTX 4090'.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Another address of that source.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what markets ask for GPUs now, beside the dated list price. It sets nothing."""
    need_hub("prices")
    from app.commands import prices as prices_command

    raise typer.Exit(prices_command.show(source, gpu, base_url, as_json=as_json))


report = typer.Typer(help="What each fleet did and cost, as CSV: once, here. Scheduled ones are in wattmix.toml.")
cli.add_typer(report, name="report", no_args_is_help=True)

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


facts = typer.Typer(help="Dated facts: prices, tariffs, PUEs, zones, fleets of nodes, exchange rates, SLOs.")
cli.add_typer(facts, name="facts", no_args_is_help=True)


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


tokens = typer.Typer(help="Tokens of nodes and readers. Needed where hub and agent are on different machines.")
cli.add_typer(tokens, name="token", no_args_is_help=True)


@tokens.command("create")
def token_create(
    name: Annotated[str, typer.Argument(help="What it is for, e.g. the rack or the node.")],
    node: Annotated[str | None, typer.Option("--node", help="The only node it may write for.")] = None,
    scope: Annotated[Scope, typer.Option("--scope", help="node may only write, read may only read")] = Scope.node,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Make a token and print it once. Put it into a file and name that with --token-file."""
    need_hub("token")
    from app.commands import token

    token.create(name, scope.value, node, db, config)


@tokens.command("list")
def token_list(db: Db = None, config: ConfigFile = None) -> None:
    """List tokens, without their secrets."""
    need_hub("token")
    from app.commands import token

    token.show(db, config)


@tokens.command("revoke")
def token_revoke(
    token_id: Annotated[str, typer.Argument(help="The token's id, as in `wattmix token list`.")],
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """End a token from now on."""
    need_hub("token")
    from app.commands import token

    token.revoke(token_id, db, config)


HubAddress = Annotated[str | None, typer.Option("--hub", help="The hub's address (http://127.0.0.1:8501).")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="File that holds the node's token.")]
NvmlLibrary = Annotated[Path | None, typer.Option("--nvml-library", help="libnvidia-ml.so.1 in an odd place.")]


@cli.command()
def agent(
    hub: HubAddress = None,
    token_file: TokenFile = None,
    node: Annotated[str | None, typer.Option("--node", help="Name of this node (its host name).")] = None,
    nvml_library: NvmlLibrary = None,
    spool: Annotated[Path | None, typer.Option("--spool", help="Where batches wait while the hub is away.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one full reading as JSON and exit.")] = False,
    form: Annotated[JsonFormat, typer.Option("--format", help="of --once: json")] = JsonFormat.json,
    config: ConfigFile = None,
) -> None:
    """Measure this node's GPUs once a second and its engines every five; push every ten. Runs until SIGTERM."""
    from app.commands import agent as agent_command

    agent_command.run(hub, token_file, node, nvml_library, spool, config, once=once)


@cli.command()
def doctor(
    hub: HubAddress = None,
    token_file: TokenFile = None,
    nvml_library: NvmlLibrary = None,
    config: ConfigFile = None,
) -> None:
    """Say in plain words what can and cannot be read on this node, and what to do about it."""
    from app.commands import doctor as doctor_command

    doctor_command.run(hub, token_file, nvml_library, config)
