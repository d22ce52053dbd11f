"""`wattmix status`: nodes, engines, GPUs, grid providers and price sources as tables or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answers.engine_findings import engine_gpus
from app.answers.findings import duration, place
from app.commands.opening import opened
from app.config import load_config
from app.formatting import MISSING, basis_said, number, percent
from app.reference.gpus import display_name

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red", "silent": "red", "down": "red", "note": "cyan",
            "absent": "yellow", "failing": "yellow", "behind": "yellow", "waiting": "cyan"}  # fmt: skip


def show(form: str, db: Path | None, config_file: Path | None) -> None:
    config = load_config(config_file)
    with opened(db, config, config_file) as backend:
        answer = backend.health()
    if form == "json":
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))
        return
    console = Console(soft_wrap=True)
    if answer["nodes"]:
        console.print(_nodes(answer["nodes"]))
        if answer["engines"]:
            console.print(_engines(answer["engines"]))
        console.print(_gpus(answer["gpus"]))
    else:
        console.print("No node has sent anything yet. On a GPU node: wattmix agent --hub http://HUB:8501")
    if answer["grid"]:
        console.print(_grid(answer["grid"]))
    if answer["prices"]:
        console.print(_prices(answer["prices"]))
    for finding in _findings(answer):
        console.print(finding)


def _nodes(nodes: list[dict[str, Any]]) -> Table:
    table = Table("node", "state", "fleet", "last seen", "lag", "skew", "GPUs", "waiting", "agent", header_style="bold")
    for node in nodes:
        table.add_row(
            _marked(node["node"], node),
            Text(node["state"], _COLOURS[node["state"]]),
            Text(node["fleet"] or MISSING),
            _ago(node["age_s"]),
            _seconds(node["lag_s"]),
            _seconds(node["skew_s"]),
            str(node["gpus"]),
            str(node["agent"].get("spool_batches", MISSING)),
            Text(node["agent_version"] or MISSING),
        )
    return table


def _engines(engines: list[dict[str, Any]]) -> Table:
    table = Table("engine", "state", "model", "kind", "GPUs", "last seen", header_style="bold")
    for engine in engines:
        table.add_row(
            _marked(engine["engine"], engine),
            Text(engine["state"], _COLOURS[engine["state"]]),
            Text(engine["model"] or MISSING),
            Text(" ".join(filter(None, (engine["kind"], engine["version"])))),
            engine_gpus(engine),
            f"{duration(engine['age_s'])} ago",
        )
    return table


def _marked(name: str, one: dict[str, Any]) -> Text:
    """The name; with the word where its numbers are made up (design law 10)."""
    return Text.assemble(name, (" simulated", "magenta") if one["simulated"] else "")


def _gpus(gpus: list[dict[str, Any]]) -> Table:
    table = Table("node", "GPU", "card", "energy by", "W", "kWh/day", "coverage", "divergence", header_style="bold")
    for gpu in gpus:
        table.add_row(
            Text(gpu["node"]),
            str(gpu["gpu"]),
            Text(display_name(gpu["name"])),
            gpu["energy_method"] or "nothing",
            number(gpu["power_w"], 0),
            number(gpu["energy_day_kwh"], 3),
            percent(gpu["coverage_day"], 1),
            percent(gpu["divergence_hour"], 1),
        )
    return table


def _grid(sources: list[dict[str, Any]]) -> Table:
    table = Table("grid provider", "zone", "state", "g/kWh", "kind", "basis", "last answer", header_style="bold")
    for source in sources:
        newest = source["newest"] or {"g_per_kwh": None, "kind": MISSING, "basis": MISSING}
        table.add_row(
            source["title"], Text(source["zone"]), Text(source["state"], _COLOURS[source["state"]]),
            number(newest["g_per_kwh"], 0), newest["kind"], basis_said(newest["basis"]),
            _ago(source["answered_age_s"]),
        )  # fmt: skip
    return table


def _prices(sources: list[dict[str, Any]]) -> Table:
    table = Table("price source", "market", "state", "cards", "not used", "last answer", header_style="bold")
    for source in sources:
        table.add_row(
            source["title"], source["market"], Text(source["state"], _COLOURS[source["state"]]),
            str(len(source["prices"])), str(len(source["refused"])), _ago(source["answered_age_s"]),
        )  # fmt: skip
    return table


def _ago(age_s: float | None) -> str:
    return MISSING if age_s is None else f"{duration(age_s)} ago"


def _seconds(value: float | None) -> str:
    return MISSING if value is None else f"{value:.1f} s"


def _findings(answer: dict[str, Any]) -> Iterable[Text]:
    for one in [*answer["nodes"], *answer["engines"], *answer["gpus"], *answer["grid"], *answer["prices"]]:
        for finding in one["findings"]:
            colour = _COLOURS[finding["level"]]
            yield Text.assemble((finding["level"], colour), f" {place(one)}: {finding['what']}. {finding['remedy']}")
