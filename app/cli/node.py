"""Commands of a GPU node, which has no hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import ConfigFile, JsonFormat

commands = typer.Typer()

HubAddress = Annotated[str | None, typer.Option("--hub", help="The hub's address (http://127.0.0.1:8501).")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="File that holds the node's token.")]
NvmlLibrary = Annotated[Path | None, typer.Option("--nvml-library", help="libnvidia-ml.so.1 in an odd place.")]


@commands.command()
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


@commands.command()
def doctor(
    hub: HubAddress = None,
    token_file: TokenFile = None,
    nvml_library: NvmlLibrary = None,
    config: ConfigFile = None,
) -> None:
    """Say in plain words what can and cannot be read on this node, and what to do about it."""
    from app.commands import doctor as doctor_command

    doctor_command.run(hub, token_file, nvml_library, config)
