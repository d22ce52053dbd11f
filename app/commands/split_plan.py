"""The plan of `wattmix split --plan`: asked for beside a spinner, printed as a table with a row per hour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app import units
from app.answers.plan_rows import PlanPool, loads, plan_pools
from app.answers.plan_words import saved, solved, sources
from app.backend.protocol import Backend
from app.formatting import grams, number, percent, usd, utc_clock
from app.split.demand import Demand


def planned(backend: Backend, demand: Demand | None, hours: int) -> dict[str, Any]:
    with Console(stderr=True).status(f"Planning {hours} hours; this takes up to 10 s ..."):
        return backend.split_plan(demand, hours=hours)


def print_plan(answer: dict[str, Any]) -> None:
    console = Console(soft_wrap=True)
    console.print()
    if answer["status"] == "infeasible":
        console.print(Text.assemble(("No plan.", "bold red"), f" {answer['reason']}"))
    else:
        console.print(_headline(answer))
        console.print(_hours(answer))
        console.print(Text(saved(answer)), Text(solved(answer)), sep="\n")
    for told in sources(answer):
        console.print(Text(told))


def _headline(answer: dict[str, Any]) -> Text:
    totals, count = answer["totals"], len(answer["hours"])
    hours = "1 hour" if count == 1 else f"{count} hours"
    switching = f" + {usd(totals['switch_usd'])} switching" if totals["switch_usd"] else ""
    served = f"{number(units.mtok(totals['tokens']), 1)} Mtok"
    told = f"{switching}   {usd(totals['usd_per_mtok'], 3)}/Mtok   {grams(totals['g'])}   {served}"
    return Text.assemble(f"Plan of {hours}: ", (usd(totals["usd"]), "bold"), told)


def _hours(answer: dict[str, Any]) -> Table:
    pools, waits = plan_pools(answer), answer["assumptions"]["deferrable"]
    table = Table(header_style="bold")
    table.add_column("from")
    for name in (
        "load",
        *(pool.name for pool in pools),
        "started",
        "stopped",
        "$",
        "g",
        *(f"{name} waits" for name in waits),
    ):
        table.add_column(Text(name), justify="right")
    for hour in answer["hours"]:
        table.add_row(*map(Text, _cells(hour, pools)))
    return table


def _cells(hour: dict[str, Any], pools: list[PlanPool]) -> Iterator[str]:
    split = hour["split"]
    yield utc_clock(hour["start"])
    yield ", ".join(percent(part) for part in loads(hour))
    yield from (str(pool.count(hour)) for pool in pools)
    yield from (str(hour["started"] or ""), str(hour["stopped"] or ""))
    yield from (number(split["usd_per_hour"]), number(split["g_per_hour"], 0))
    yield from (f"{number(units.mtok(tokens), 1)} Mtok" for tokens in hour["deferred_tokens"].values())
