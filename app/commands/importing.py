"""`wattmix import`: result files into the store, file by file, with a bar and a reason for each that stays out."""

from __future__ import annotations

import sys
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import track
from rich.text import Text

from app.commands.opening import opened
from app.config import load_config, store_path
from app.errors import ImportFileError
from collectors.benchmark.fields import GpuOverride
from collectors.benchmark.files import FileOutcome, FoundFile, PathNotFound, find_files, read_file

_SHOWN = 20


def import_paths(
    paths: list[str],
    db: Path | None,
    config_file: Path | None,
    gpu: str | None,
    gpu_count: int | None,
    max_file_mb: int,
) -> None:
    """Exit code 2 when a file is broken; the others are in the store all the same."""
    config = load_config(config_file)
    try:
        files = find_files(paths)
    except PathNotFound as problem:
        raise ImportFileError(str(problem)) from None
    console = Console(stderr=True, soft_wrap=True)
    outcomes = _read(files, GpuOverride(gpu, gpu_count), max_file_mb * 1_000_000, console)
    runs = [run for outcome in outcomes for run in outcome.runs]
    with opened(db, config, config_file) as backend:
        added = backend.add_runs(runs)
    read = sum(outcome.verdict == "read" for outcome in outcomes)
    typer.echo(f"{added.new} runs imported, {added.known} already there; {read} of {len(files)} files read.")
    typer.echo(f"Store: {store_path(db, config)}")
    _tell(console, outcomes, "skipped", "yellow")
    if _tell(console, outcomes, "broken", "red"):
        sys.exit(ImportFileError.exit_code)


def _read(files: list[FoundFile], gpu: GpuOverride, max_bytes: int, console: Console) -> list[FileOutcome]:
    bar = track(files, "Reading", console=console, transient=True, disable=not console.is_terminal)
    return [read_file(file, gpu=gpu, max_bytes=max_bytes) for file in bar]


def _tell(console: Console, outcomes: list[FileOutcome], verdict: str, colour: str) -> int:
    found = [outcome for outcome in outcomes if outcome.verdict == verdict]
    for outcome in found[:_SHOWN]:
        console.print(Text.assemble((verdict, colour), f" {outcome.file}: {outcome.reason}"))
    if len(found) > _SHOWN:
        console.print(f"... and {len(found) - _SHOWN} more {verdict}")
    return len(found)
