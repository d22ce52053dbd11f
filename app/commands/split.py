"""`wattmix split`: the recommendation as tables or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answers.split import read_demand
from app.commands.opening import opened
from app.config import load_config
from app.formatting import fleet_prices, number, percent, usd

_SHOWN_EXCLUSIONS = 12


def show(demand_file: Path | None, form: str, db: Path | None, config_file: Path | None) -> None:
    config = load_config(config_file)
    demand = read_demand(demand_file) if demand_file else None
    with opened(db, config, config_file) as backend:
        answer = backend.split(demand)
    if form == "json":
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))
    else:
        _print(answer)


def _print(answer: dict[str, Any]) -> None:
    console = Console(soft_wrap=True)
    if answer["status"] == "infeasible":
        console.print(Text.assemble(("Infeasible.", "bold red"), f" {answer['reason']}"))
    else:
        console.print(_headline(answer), highlight=False)
        console.print(Text(f"Price: {fleet_prices(answer['assumptions']['prices'])}."))
        console.print(_replicas(answer))
        for reason in answer["reasons"]:
            console.print(Text.assemble((reason["class"], "bold"), f": {reason['text']}"))
        console.print(_baselines(answer))
    _print_exclusions(console, answer["excluded"])
    for note in [*answer["limits"], *answer["missing"]]:
        console.print(Text(f"Note: {note}"))


def _headline(answer: dict[str, Any]) -> str:
    return (
        f"[bold]{usd(answer['usd_per_hour'])}/h[/]   {usd(answer['usd_per_mtok'], 3)}/Mtok   "
        f"{number(answer['watts'], 0)} W (GPUs, from TDP)   {number(answer['g_per_hour'], 0)} gCO2e/h   "
        f"{number(answer['g_per_mtok'], 1)} g/Mtok   gap {percent(answer['solver']['gap'], 2)}"
    )


def _replicas(answer: dict[str, Any]) -> Table:
    table = Table(header_style="bold")
    for name in ("fleet", "replica", "operating point", "count", "load", "$/h", "W", "carries", "flags"):
        table.add_column(name, justify="right" if name in ("count", "load", "$/h", "W") else "left")
    for pool in answer["replicas"]:
        mine = [share for share in answer["shares"] if _shape(share) == _shape(pool)]
        carries = ", ".join(f"{percent(share['share'], 1)} of {share['class']}" for share in mine)
        flags = sorted({flag for share in mine for flag in share["flags"]})
        point = "all at once" if pool["qps_point"] is None else f"{pool['qps_point']:g} req/s"
        plain = (
            pool["fleet"],
            f"{pool['gpus_per_replica']}x {pool['gpu_label']}",
            point,
            str(pool["count"]),
            percent(pool["utilisation"]),
            number(pool["usd_per_hour"]),
            number(pool["watts"], 0),
            carries,
            " ".join(flags),
        )
        table.add_row(*map(Text, plain))
    return table


def _shape(part: dict[str, Any]) -> tuple[Any, ...]:
    return (part["fleet"], part["gpus_per_replica"], part["qps_point"], part["run_id"])


def _baselines(answer: dict[str, Any]) -> Table:
    table = Table("instead", "$/h", "g/h", "saving $/h", "", header_style="bold")
    for name, baseline in answer["baselines"].items():
        plain = (
            name.replace("_", " "),
            number(baseline["usd_per_hour"]),
            number(baseline["g_per_hour"], 0),
            number(baseline["saving_usd_per_hour"]),
            baseline["reason"] or "",
        )
        table.add_row(*map(Text, plain))
    return table


def _print_exclusions(console: Console, excluded: list[dict[str, Any]]) -> None:
    if not excluded:
        return
    table = Table("out", "for", "because", header_style="bold")
    for out in excluded[:_SHOWN_EXCLUSIONS]:
        table.add_row(*map(Text, (out["option"], out["class"], out["reason"])))
    console.print(table)
    if len(excluded) > _SHOWN_EXCLUSIONS:
        console.print(f"... and {len(excluded) - _SHOWN_EXCLUSIONS} more; --format json has all")
