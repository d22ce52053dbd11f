"""`wattmix agent`: settings from the command line over wattmix.toml, then the agent of `collectors`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer
from pydantic import ValidationError

from app import __version__
from app.config import Config, load_config
from app.errors import ConfigError, StoreBusy, StoreError
from app.validation import describe
from collectors import agent
from collectors.agent_settings import AgentSettings
from collectors.spool_file import SpoolBusy, SpoolError


def run(
    hub: str | None,
    token_file: Path | None,
    node: str | None,
    nvml_library: Path | None,
    spool: Path | None,
    config_file: Path | None,
    *,
    once: bool,
) -> None:
    """Run until a signal; with `once` print one reading. Raises ConfigError, StoreError."""
    settings = agent_settings(load_config(config_file), hub, token_file, node, nvml_library, spool)
    if once:
        typer.echo(json.dumps(agent.once(settings), indent=2, allow_nan=False))
        return
    try:
        code = agent.run(settings)
    except SpoolBusy as problem:
        raise StoreBusy(str(problem)) from None
    except SpoolError as problem:
        raise StoreError(str(problem)) from None
    sys.exit(code)


def agent_settings(
    config: Config,
    hub: str | None = None,
    token_file: Path | None = None,
    node: str | None = None,
    nvml_library: Path | None = None,
    spool: Path | None = None,
) -> AgentSettings:
    """The agent's settings: what the command line gives, else `[agent]` of wattmix.toml. Raises ConfigError."""
    given = config.agent
    wanted = {
        "hub": hub or given.hub,
        "node_id": node or given.node,
        "labels": given.labels,
        "token_file": token_file or given.token_file,
        "spool_path": spool or given.spool,
        "spool_max_bytes": given.spool_max_mb * 1_000_000,
        "spool_max_age_s": given.spool_max_days * 86_400,
        "nvml_library": str(nvml_library) if nvml_library else given.nvml_library,
        "interval_s": given.interval_s,
        "push_every_s": given.push_every_s,
        "engines": given.engine,
        "discover_engines": given.discover_engines,
        "scrape_every_s": given.scrape_every_s,
        "agent_version": __version__,
    }
    try:
        return AgentSettings.model_validate({name: value for name, value in wanted.items() if value is not None})
    except ValidationError as problem:
        raise ConfigError(describe(problem, "[agent] and the command line")) from None
