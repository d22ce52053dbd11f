"""`wattmix runs`: the accounts of the imported runs as a table, CSV or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answers.runs import Assume, rows_as_csv
from app.commands.opening import opened
from app.config import load_config
from app.formatting import number
from app.reference.gpus import display_name

_COLUMNS: dict[str, tuple[str, int]] = {
    "requests_per_s": ("req/s", 2),
    "total_tokens_per_s": ("tok/s", 0),
    "cost_per_run_usd": ("$ per run", 3),
    "usd_per_mtok_total": ("$/Mtok", 3),
    "usd_per_mtok_output": ("$/Mtok output", 3),
    "ttft_p50_ms": ("TTFT p50 ms", 0),
    "ttft_p99_ms": ("TTFT p99 ms", 0),
    "joules_per_token": ("J/token", 3),
    "g_per_mtok": ("g/Mtok", 1),
}


def show(model: str | None, gpu: str | None, assume: str, form: str, db: Path | None, config_file: Path | None) -> None:
    config = load_config(config_file)
    with opened(db, config, config_file) as backend:
        rows = backend.run_rows(model=model, gpu=gpu, assume=cast(Assume, assume))
    if form == "csv":
        typer.echo(rows_as_csv(rows), nl=False)
    elif form == "json":
        typer.echo(json.dumps({"runs": rows}, indent=2, allow_nan=False))
    else:
        _print(rows)


def _print(rows: list[dict[str, Any]]) -> None:
    console = Console()
    if not rows:
        console.print("The store holds no benchmark runs yet. Import some: wattmix import PATH")
        return
    table = Table(header_style="bold", caption=Text(_caption(rows)), caption_justify="left")
    for name in ("model", "GPUs", "target req/s"):
        table.add_column(name, overflow="fold", justify="right" if name == "target req/s" else "left")
    for name, _ in _COLUMNS.values():
        table.add_column(name, justify="right")
    table.add_column("flags")
    for row in rows:
        cells = [number(row[name], digits) for name, (_, digits) in _COLUMNS.items()]
        load = "all at once" if row["qps"] is None else f"{row['qps']:g}"
        gpus = f"{row['gpu_count']}x {display_name(row['gpu'])}"
        plain = (row["model"].rsplit("/", 1)[-1], gpus, load, *cells, row["flags"] or "")
        table.add_row(*map(Text, plain))
    console.print(table)


def _caption(rows: list[dict[str, Any]]) -> str:
    reasons = sorted({row["missing"] for row in rows if row["missing"] and row["cost_per_run_usd"] is None})
    grids = ", ".join(sorted({row["grid"] for row in rows}))
    lines = [
        f"$/Mtok on total tokens. Energy: tdp_estimate, GPU only. Carbon: operational, {grids}.",
        *(f"Missing: {reason}" for reason in reasons),
    ]
    return "\n".join(lines)
