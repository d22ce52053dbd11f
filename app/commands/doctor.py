"""`wattmix doctor`: what this node can and cannot read, and what to do about it, in plain words."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import requests
from rich.console import Console
from rich.text import Text

from app.commands.agent import agent_settings
from app.commands.checks import Check, Level
from app.commands.engine_checks import engine_checks
from app.commands.grid_checks import grid_checks
from app.commands.price_checks import price_checks
from app.config import load_config
from collectors import agent
from collectors.agent_settings import AgentSettings

SKEW_S = 5.0
TIMEOUT_S = 5.0
_MARKS: dict[Level, tuple[str, str]] = {"ok": ("✓", "green"), "note": ("•", "cyan"), "problem": ("✗", "red")}


def run(hub: str | None, token_file: Path | None, nvml_library: Path | None, config_file: Path | None) -> None:
    """Print every check. Exit code 2 when there is a problem."""
    config = load_config(config_file)
    settings = agent_settings(config, hub, token_file, None, nvml_library)
    console = Console(soft_wrap=True)
    found: list[Check] = []
    for check in chain(examine(settings), grid_checks(config), price_checks(config)):
        mark, colour = _MARKS[check.level]
        remedy = f"  → {check.remedy}" if check.remedy else ""
        console.print(Text.assemble((mark, colour), f" {check.what}{remedy}"))
        found.append(check)
    if any(check.level == "problem" for check in found):
        sys.exit(2)


def examine(settings: AgentSettings) -> Iterator[Check]:
    """Every check of this node, the GPUs first, then the engines."""
    yield from _binding()
    yield from _surroundings()
    reading = agent.once(settings)
    yield from _gpus(reading)
    yield from engine_checks(reading, is_searching=settings.discover_engines)
    yield from _missing(reading)
    yield from _spool(settings.spool_path)
    yield from _hub(settings)


def _binding() -> Iterator[Check]:
    """Which `pynvml` Python finds: an old package of that name wins over NVIDIA's own module."""
    import pynvml

    if hasattr(pynvml, "_nvmlGetFunctionPointer"):
        yield Check("ok", "the NVML binding is nvidia-ml-py")
        return
    remedy = "pip uninstall pynvml, then reinstall nvidia-ml-py"
    yield Check("problem", f"an old pynvml shadows nvidia-ml-py ({getattr(pynvml, '__file__', '?')})", remedy)


def _surroundings() -> Iterator[Check]:
    version = Path("/proc/version")
    if version.is_file() and "microsoft" in version.read_text(encoding="utf-8", errors="replace").lower():
        remedy = "if NVML is not found: --nvml-library /usr/lib/wsl/lib/libnvidia-ml.so.1"
        yield Check("note", "this is WSL: utilisation and processes are often not available", remedy)
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        remedy = "give it the utility capability (NVIDIA_DRIVER_CAPABILITIES=utility) and the host's pids"
        yield Check("note", "this is a container: process ids are its own", remedy)


def _gpus(reading: dict[str, Any]) -> Iterator[Check]:
    if reading["node"]["status"]:
        yield Check("problem", reading["node"]["status"])
    elif not reading["gpus"]:
        yield Check("problem", "NVML answers, and knows no GPU", "is it passed through to this machine? nvidia-smi -L")
    for gpu in reading["gpus"]:
        yield from _gpu(gpu, f"GPU {gpu['index']} {gpu['name']}")


def _gpu(gpu: dict[str, Any], name: str) -> Iterator[Check]:
    sample = gpu["sample"]
    if gpu["status"] != "ok":
        yield Check("problem", f"{name}: {gpu['status']}", "see the kernel log, then reset the GPU or reboot")
    elif sample is None or gpu["energy_method"] is None:
        yield Check("problem", f"{name}: no energy source", "its energy is missing, not 0; it needs another meter")
    else:
        power = sample["power_instant_mw"] or sample["power_average_mw"]
        watts = "power unknown" if power is None else f"{power / 1e3:.1f} W"
        yield Check("ok", f"{name}: energy by {gpu['energy_method']}, {watts}")
    if gpu["persistence_mode"] is False:
        yield Check("note", f"{name}: persistence mode is off", "nvidia-smi -pm 1 keeps calls fast")


def _missing(reading: dict[str, Any]) -> Iterator[Check]:
    for field, why in reading["missing"].items():
        if not field.startswith("engine"):
            yield Check("note", f"{field} is not measured", why)


def _spool(path: Path) -> Iterator[Check]:
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if os.access(folder, os.W_OK):
        yield Check("ok", f"the spool can be written: {path}")
    else:
        remedy = "name another with --spool, or change the folder's owner"
        yield Check("problem", f"the spool cannot be written: {path}", remedy)


def _hub(settings: AgentSettings) -> Iterator[Check]:
    session = requests.Session()
    session.trust_env = False
    sent_s = time.time()
    try:
        health = session.get(f"{settings.hub}/healthz", timeout=TIMEOUT_S).json()
    except (requests.RequestException, ValueError) as problem:
        remedy = "is `wattmix serve` running there, and the port open? --hub names another address"
        yield Check("problem", f"the hub at {settings.hub} does not answer ({type(problem).__name__})", remedy)
        return
    yield Check("ok", f"the hub at {settings.hub} answers, version {health.get('version')}")
    skew_s = (sent_s + time.time()) / 2 - health.get("time_us", time.time() * 1e6) / 1e6
    if abs(skew_s) > SKEW_S:
        yield Check("problem", f"this clock and the hub's differ by {skew_s:.0f} s", "set both by NTP")
    else:
        yield Check("ok", f"the clocks agree within {abs(skew_s):.1f} s")
    yield from _token(session, settings)


def _token(session: requests.Session, settings: AgentSettings) -> Iterator[Check]:
    """A hub that lets us write refuses an empty batch for what it lacks (422), another one for the token."""
    headers = {"Content-Type": "application/json"}
    if settings.token_file is not None:
        try:
            headers["Authorization"] = f"Bearer {settings.token_file.read_text(encoding='utf-8').strip()}"
        except OSError as problem:
            yield Check("problem", f"the token file cannot be read: {problem.strerror}: {settings.token_file}")
            return
    url = f"{settings.hub}/api/v1/ingest"
    try:
        status = session.post(url, data=b"{}", headers=headers, timeout=TIMEOUT_S).status_code
    except requests.RequestException as problem:
        yield Check("problem", f"the hub does not take batches ({type(problem).__name__})")
        return
    if status in (401, 403):
        remedy = "on the hub: wattmix token create NAME; here: --token-file FILE"
        yield Check("problem", "the hub does not let this node write", remedy)
    else:
        yield Check("ok", "the hub lets this node write")
