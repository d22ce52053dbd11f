"""The plan of the next hours as a table in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app import units
from app.answers.plan_hours import planned_hours, planned_pools, saving_said, standing_on
from app.formatting import grams, number, percent, usd, utc_clock


def print_plan(plan: dict[str, Any]) -> None:
    console = Console(soft_wrap=True)
    if plan["status"] == "infeasible":
        console.print(Text.assemble(("No plan carries this demand.", "bold red"), f" {plan['reason']}"))
    else:
        console.print(_headline(plan))
        console.print(Text(f"{saving_said(plan)}."))
        console.print(_hours(plan))
    for told in standing_on(plan):
        console.print(Text(told))


def _headline(plan: dict[str, Any]) -> Text:
    totals = plan["totals"]
    return Text.assemble(
        (f"{usd(totals['usd'])} in {len(plan['hours'])} hours", "bold"),
        f"   {usd(totals['usd_per_mtok'], 3)}/Mtok   {grams(totals['g'])}   gap {percent(plan['gap'], 2)}"
        + ("" if plan["status"] == "optimal" else " (time ran out first)"),
    )


def _hours(plan: dict[str, Any]) -> Table:
    pools = planned_pools(plan)
    table = Table(header_style="bold", title="Hour by hour (UTC)")
    table.add_column("from", no_wrap=True)
    for pool in pools:
        table.add_column(Text(pool.title), justify="right")
    for name in ("started", "stopped", "$", "W", "gCO2e", "Mtok", "Mtok that wait"):
        table.add_column(name, justify="right")
    for place, hour in enumerate(planned_hours(plan)):
        plain = (
            utc_clock(hour.start),
            *(str(pool.counts[place]) for pool in pools),
            str(hour.started),
            str(hour.stopped),
            number(hour.usd),
            number(hour.watts, 0),
            number(hour.g, 0),
            number(units.mtok(hour.tokens), 1),
            number(units.mtok(hour.deferred_tokens), 1),
        )
        table.add_row(*map(Text, plain))
    return table
