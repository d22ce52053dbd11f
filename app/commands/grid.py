"""`wattmix grid`: the carbon intensity of a zone, now, by the yearly table and to come, each with its source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answers.findings import duration
from app.answers.grid import GridQuery
from app.backend.local import LocalBackend
from app.commands.grid_checks import BOUNDS
from app.commands.opening import opened
from app.config import load_config
from app.formatting import MISSING, basis_said, number, utc_clock
from app.hub.grid_feed import read_now
from collectors.http.client import Http

_COLOURS = {"live": "green", "cached": "yellow", "table": "cyan"}


def show(zone: str, db: Path | None, config_file: Path | None, *, as_json: bool) -> None:
    """Where no hub runs, the zone's providers are asked first; a hub asks them all the time."""
    config = load_config(config_file)
    with opened(db, config, config_file) as backend:
        if isinstance(backend, LocalBackend):
            read_now(backend.store, config, config.grid_factor(zone).zone, Http(bounds=BOUNDS))
        answer = backend.grid(GridQuery.around(zone, datetime.now(UTC)))
    if as_json:
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))
        return
    console = Console(soft_wrap=True)
    for line in _lines(answer):
        console.print(line)
    for part in _forecasts(answer["forecast"]):
        console.print(part)


def _lines(answer: dict[str, Any]) -> Iterator[Text]:
    current, table = answer["current"], answer["table"]
    where = current["from"]
    age = f", asked {duration(current['age_s'])} ago" if where == "cached" and current["age_s"] is not None else ""
    yield Text.assemble((answer["zone"], "bold"), " now: ", _value(current), ", ", (f"{where}{age}", _COLOURS[where]))
    yield Text(f"  {_source(current)}")
    if current["why"]:
        yield Text(f"  {current['why']}", "yellow")
    for source in answer["sources"]:
        newest = source["newest"]
        if newest is not None and newest["kind"] == "marginal":
            yield Text.assemble("marginal (of the next kWh; counts in no total): ", _value(newest))
            yield Text(f"  {_source(newest | {'source': source['attribution']})}")
    year = f" of {table['year']}" if table["year"] else ""
    yield Text.assemble(f"yearly average{year}: ", _value(table | {"kind": "average"}))
    yield Text(f"  {table['source']}")
    for source in answer["sources"]:
        for found in source["findings"]:
            yield Text(f"{found['level']} {source['title']}: {found['what']}. {found['remedy']}", "yellow")


def _value(value: dict[str, Any]) -> Text:
    grams, basis = number(value["g_per_kwh"], 0), basis_said(value["basis"])
    return Text.assemble((f"{grams} g/kWh", "bold"), f" {value['kind']}, {basis}, {value['method']}")


def _source(value: dict[str, Any]) -> str:
    if "start" not in value:
        return str(value["source"])
    method = f", {value['estimation_method']}" if value["estimation_method"] else ""
    return f"{value['source']}: {utc_clock(value['start'])} to {utc_clock(value['end'])}{method}"


def _forecasts(values: list[dict[str, Any]]) -> Iterator[Text | Table]:
    """Of each source a table by the hour: what is told finer is one line with its range."""
    if not values:
        yield Text("no forecast")
        return
    table = Table("hour (UTC)", "g/kWh", "kind", "basis", "source", "issued", header_style="bold")
    for (hour, provider, kind, basis), rows in _by_hour(values).items():
        grams = [row["g_per_kwh"] for row in rows]
        low, high = number(min(grams), 0), number(max(grams), 0)
        issued = rows[-1]["issued_at"]
        table.add_row(
            hour, low if low == high else f"{low} to {high}", kind, basis_said(basis), Text(provider),
            utc_clock(issued) if issued else MISSING,
        )  # fmt: skip
    yield table


def _by_hour(values: list[dict[str, Any]]) -> dict[tuple[str, str, str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for value in values:
        hour = f"{datetime.fromisoformat(value['start']):%Y-%m-%d %H:00}"
        found.setdefault((hour, value["provider"], value["kind"], value["basis"]), []).append(value)
    return found
