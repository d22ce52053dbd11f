"""Options that several commands have, and what they need to be installed."""

from __future__ import annotations

import importlib.util
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.errors import MissingPart

HUB_MODULES = ("cronsim", "duckdb", "polars", "pyarrow", "streamlit", "plotly", "highspy", "uvicorn")

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


class RouterName(StrEnum):
    litellm = "litellm"
    production_stack = "production-stack"
    gateway_api = "gateway-api"


class JsonFormat(StrEnum):
    json = "json"


class Scope(StrEnum):
    node = "node"
    read = "read"


class Assume(StrEnum):
    corrected = "corrected"
    study = "study"


def need_hub(command: str) -> None:
    """Raises MissingPart, with the command that installs it, on a machine without the hub's packages."""
    missing = [name for name in HUB_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingPart(
            f"`wattmix {command}` needs the hub, which is not installed here ({', '.join(missing)} missing). "
            "Install it with: pip install 'wattmix[hub]'"
        )
