"""`python -m app.simulator --hub http://127.0.0.1:8501`: simulated nodes that fill a hub with a week and go on."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from app.errors import WattmixError
from app.simulator.fleet import World, demo_world
from app.simulator.push import Feed
from app.simulator.recurring import DAY_S
from app.simulator.run import fill_past, follow, past

SEED = 2025


def main() -> None:
    """Run until a signal, or with --end-with-input until standard input closes."""
    options = _options(sys.argv[1:])
    if options.end_with_input:
        threading.Thread(target=_end_with_the_input, daemon=True).start()
    try:
        _simulate(demo_world(options.seed), options.hub, options.days)
    except WattmixError as problem:
        Console(stderr=True, soft_wrap=True).print(Text.assemble(("error:", "bold red"), f" {problem}"))
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        sys.exit(0)


def _simulate(world: World, hub: str, past_days: float) -> None:
    feeds = [Feed(world, node, hub) for node in world.nodes]
    start_s, end_s = past(time.time(), past_days)
    began_s = time.monotonic()
    console = Console(soft_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"simulating {len(feeds)} nodes up to now", total=len(feeds) * (end_s - start_s))
        rows = fill_past(feeds, start_s, end_s, lambda seconds: progress.advance(task, seconds))
    took_s = time.monotonic() - began_s
    days = (end_s - start_s) / DAY_S
    console.print(
        f"{len(feeds)} simulated nodes: {rows:,} rows of the last {days:.1f} days in {took_s:.1f} s; "
        "they go on every five seconds."
    )
    follow(feeds, end_s)


def _end_with_the_input() -> None:
    """Wait for the other end of the pipe to close, however that comes: the simulator never outlives its hub."""
    while os.read(0, 4096):
        pass
    # A progress bar that is cut short has hidden it.
    Console().show_cursor(True)
    os._exit(0)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m app.simulator", description=__doc__)
    parser.add_argument("--hub", required=True, help="the hub's address")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the noise ({SEED})")
    parser.add_argument("--days", type=float, default=7.0, help="how much of the past to fill first (7)")
    parser.add_argument("--end-with-input", action="store_true", help="end when standard input closes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
