"""`wattmix split`: the recommendation as tables, JSON or the settings of a router."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answers.split import read_demand
from app.commands.opening import opened
from app.commands.split_plan import planned, print_plan
from app.config import load_config
from app.errors import DemandError
from app.formatting import fleet_prices, load_point, number, percent, usd
from app.split.demand import Demand
from app.split.router_files import RouterFormat
from app.split.timeline import MOST_HOURS

_SHOWN_EXCLUSIONS = 12


@dataclass(frozen=True)
class Wanted:
    """live: the demand is what is measured. front: cost against carbon as well. plan_hours: a plan of so many as well.
    export: settings of that router.
    """

    live: bool = False
    front: bool = False
    plan_hours: int | None = None
    export: str | None = None


def show(demand_file: Path | None, wanted: Wanted, form: str, db: Path | None, config_file: Path | None) -> None:
    _check(demand_file, wanted, form)
    config = load_config(config_file)
    demand = read_demand(demand_file) if demand_file else None
    router = cast(RouterFormat, wanted.export) if wanted.export else None
    with opened(db, config, config_file) as backend:
        if wanted.live:
            demand = backend.live_demand()
        if router and form != "json":
            typer.echo(backend.export_split(demand, router), nl=False)
            return
        answer = backend.split(demand)
        front = backend.split_front(demand) if wanted.front else None
        plan = planned(backend, demand, wanted.plan_hours) if wanted.plan_hours is not None else None
        export = backend.export_split(demand, router) if router else None
    if form == "json":
        more = {"front": front, "plan": plan, "export": export and {"format": router, "text": export}}
        told = answer | {name: part for name, part in more.items() if part is not None}
        typer.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        _print(answer, demand if wanted.live else None, front)
        if plan is not None:
            print_plan(plan)


def _check(demand_file: Path | None, wanted: Wanted, form: str) -> None:
    if wanted.live and demand_file is not None:
        raise DemandError("--demand and --live: only one of them is accepted, each says what the demand is")
    for name, is_wanted in (("--front", wanted.front), ("--plan", wanted.plan_hours is not None)):
        if is_wanted and wanted.export and form != "json":
            raise DemandError(f"{name} and --export: only one of them is accepted, unless --format json holds both")
    if wanted.plan_hours is not None and not 1 <= wanted.plan_hours <= MOST_HOURS:
        raise DemandError(f"--plan: given {wanted.plan_hours}; accepted: 1 to {MOST_HOURS} hours")


def _print(answer: dict[str, Any], measured: Demand | None, front: dict[str, Any] | None) -> None:
    console = Console(soft_wrap=True)
    if measured is not None:
        rates = ", ".join(f"{one.name} {number(one.requests_per_s, 2)} req/s" for one in measured.classes)
        console.print(Text(f"Demand as measured: {rates}."))
    if answer["status"] == "infeasible":
        console.print(Text.assemble(("Infeasible.", "bold red"), f" {answer['reason']}"))
    else:
        console.print(_headline(answer), highlight=False)
        console.print(Text(f"Price: {fleet_prices(answer['assumptions']['prices'])}."))
        console.print(_replicas(answer))
        for reason in answer["reasons"]:
            console.print(Text.assemble((reason["class"], "bold"), f": {reason['text']}"))
        console.print(_baselines(answer))
    if front is not None:
        console.print(_front(front))
    _print_exclusions(console, answer["excluded"])
    for note in [*answer["limits"], *answer["missing"]]:
        console.print(Text(f"Note: {note}"))


def _front(front: dict[str, Any]) -> Table | Text:
    """A row per point from the cheapest to the greenest; * marks the knee."""
    if not front["points"]:
        return Text(f"No front of cost against carbon: {front['reason']}")
    table = Table("", "", "$/h", "g/h", "replicas", header_style="bold", title="Cost against carbon (* knee)")
    for point in front["points"]:
        pools = ", ".join(
            f"{pool['count']} x {pool['gpus_per_replica']}x {pool['gpu_label']}" for pool in point["split"]["replicas"]
        )
        plain = (
            "*" if point["is_knee"] else "",
            "" if point["kind"] == "between" else point["kind"],
            number(point["usd_per_hour"]),
            number(point["g_per_hour"], 0),
            pools,
        )
        table.add_row(*map(Text, plain))
    return table


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
        plain = (
            pool["fleet"],
            f"{pool['gpus_per_replica']}x {pool['gpu_label']}",
            load_point(pool["qps_point"]),
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
