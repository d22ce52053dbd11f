"""Commands of the machine that has the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import Assume, ConfigFile, Db, Port, RouterName, RunsFormat, SplitFormat, need_hub

commands = typer.Typer()


@commands.command()
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


@commands.command()
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


@commands.command(name="import")
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
    """Import benchmark results (JSON of vLLM, GuideLLM, AIPerf, GenAI-Perf). Importing a file again changes nothing."""
    need_hub("import")
    from app.commands import importing

    importing.import_paths(paths, db, config, gpu, gpu_count, max_file_mb)


@commands.command()
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


@commands.command()
def split(
    demand: Annotated[
        Path | None,
        typer.Option("--demand", help="demand.toml (default: wattmix.toml's, else the shipped example)"),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="The demand is what is measured, not a file's.")] = False,
    front: Annotated[bool, typer.Option("--front", help="Show as well what fewer grams would cost.")] = False,
    plan: Annotated[
        int | None,
        typer.Option(
            "--plan", metavar="HOURS", help="Show as well which replicas run in which of the next 1 to 168 hours."
        ),
    ] = None,
    export: Annotated[
        RouterName | None, typer.Option("--export", help="Print the mix as settings (YAML) of this router instead.")
    ] = None,
    form: Annotated[SplitFormat, typer.Option("--format", help="table or json")] = SplitFormat.table,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Recommend which fleets, and how many replicas, carry a demand at least cost within its SLOs."""
    need_hub("split")
    from app.commands import split as split_command

    wanted = split_command.Wanted(live=live, front=front, plan_hours=plan, export=export and export.value)
    split_command.show(demand, wanted, form.value, db, config)


@commands.command()
def status(
    form: Annotated[SplitFormat, typer.Option("--format", help="table or json")] = SplitFormat.table,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Show nodes and GPUs: last seen, lag, coverage, energy method, and what should be done about each."""
    need_hub("status")
    from app.commands import status as status_command

    status_command.show(form.value, db, config)


@commands.command()
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


@commands.command()
def prices(
    source: Annotated[str | None, typer.Option(help="runpod or vast; without it both.")] = None,
    gpu: Annotated[str | None, typer.Option(help="Only this card, e.g. 'RTX 4090'.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Another address of that source.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Show what markets ask for GPUs now, beside the dated list price and what counts. It sets nothing."""
    need_hub("prices")
    from app.commands import prices as prices_command

    raise typer.Exit(prices_command.show(source, gpu, base_url, db, config, as_json=as_json))
