"""`wattmix serve` and `wattmix demo`."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

import platformdirs
from rich.console import Console
from rich.text import Text

from app import __version__
from app.config import Config, load_config, store_path
from app.errors import HubError, StoreError
from app.hub.server import run_hub
from app.reference.tables import checkout_folder, data_folder, in_checkout
from app.simulator.process import SimulatorProcess
from app.store.benchmarks import add_runs
from app.store.database import Store
from collectors.benchmark import facts_csv


def serve(db: Path | None, config_file: Path | None, host: str | None, port: int | None, *, insecure: bool) -> None:
    """Open the store and serve it until a signal."""
    config = load_config(config_file)
    store = Store.open(store_path(db, config))
    _run(store, config, host or config.hub.host, port or config.hub.port, insecure=insecure)


def demo(db: Path | None, port: int | None, *, browser: bool, simulation: bool) -> None:
    """Make the demo store anew from the study's runs and serve it; with `simulation` to simulated nodes, too."""
    config = load_config(data_folder() / "demo.toml")
    path = db or (Path(os.environ["WATTMIX_DB"]) if os.environ.get("WATTMIX_DB") else _demo_path())
    clear_demo_store(path)
    store = Store.open(path, purpose="demo")
    runs = list(facts_csv.read((data_folder() / "aibc2025_runs.csv").read_text(encoding="utf-8")))
    add_runs(store, runs)
    _run(
        store, config, config.hub.host, port or config.hub.port, insecure=False, browser=browser, simulation=simulation
    )


def clear_demo_store(path: Path) -> None:
    """Remove the last demo's store. Raises HubError rather than touch a store that is not a demo's."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return
    try:
        store = Store.open(path)
    except StoreError as problem:
        raise HubError(f"the demo makes its own store and leaves {path} alone: {problem}") from None
    purpose = store.purpose
    store.close()
    if purpose != "demo":
        raise HubError(f"{path} is not a demo store and is left alone. The demo makes its own: name another with --db.")
    path.unlink()
    path.with_name(path.name + ".wal").unlink(missing_ok=True)


def _demo_path() -> Path:
    folder = checkout_folder() / "data" if in_checkout() else Path(platformdirs.user_cache_dir("wattmix"))
    return folder / "demo.duckdb"


def _run(
    store: Store,
    config: Config,
    host: str,
    port: int,
    *,
    insecure: bool,
    browser: bool = False,
    simulation: bool = False,
) -> None:
    console = Console(soft_wrap=True)
    simulators: list[SimulatorProcess] = []

    def on_ready(address: str) -> None:
        what = "demo data" if store.purpose == "demo" else "store"
        console.print(
            Text.assemble(
                f"Wattmix {__version__} is at ", (address, "bold"), f"  ({what}: {store.path}; Ctrl+C stops it)"
            )
        )
        if simulation:
            simulators.append(SimulatorProcess(address))
        if browser and sys.stdout.isatty() and _has_display():
            webbrowser.open(address)

    try:
        run_hub(store, config, host, port, insecure=insecure, on_ready=on_ready)
    finally:
        for simulator in simulators:
            simulator.stop()
        store.close()


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
