"""The process that holds NVML: one nvmlInit for its life, one tick per interval, told to the agent as lines of JSON.

Each line is a list whose first item says what it is:
  ["start"]                     NVML is being started, which may take long
  ["ready", driver_version]
  ["failed", status]            NVML cannot be used; the process ends
  ["at", gpu]                   this GPU is about to be asked; "" when none is
  ["facts", [Facts, ...], {missing}]   when they have changed
  ["gpu", Reading]
  ["processes", [Process, ...]]
  ["end", tick_us, rejected]    the tick is complete
  ["recycle", why]              the process ends in good order and wants a successor
It ends when its standard input closes, even while NVML hangs: so it never outlives the agent.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from collectors.gpu import reading
from collectors.gpu.asking import NvmlGone
from collectors.gpu.nvml import PCI_DEVICES, NvmlUnavailable, Pace, Reader, driver_version, start_nvml

Facts = tuple[list[reading.Facts], dict[str, str]]

# NVML has leaked memory and file descriptors on some drivers.
MOST_RSS_BYTES = 256 * 2**20
MOST_FILES = 256


class Order(NamedTuple):
    """What the agent asks of the child, as one JSON argument."""

    library: str | None = None
    interval_s: float = 1.0
    skip: list[str] = []  # noqa: RUF012  a default that nothing writes to
    pace: list[float] = []  # noqa: RUF012
    pci_devices: str = str(PCI_DEVICES)
    most_rss_bytes: int = MOST_RSS_BYTES
    most_files: int = MOST_FILES


class Line:
    """The way to the agent: lines are sent together at the next flush."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting = bytearray()

    def say(self, *words: Any, flush: bool = False) -> None:
        """Queue one line; with `flush`, send all that is queued."""
        self._waiting += json.dumps(words, separators=(",", ":")).encode() + b"\n"
        if flush:
            self.flush()

    def flush(self) -> None:
        """Send what is queued, waiting while the agent does not read."""
        while self._waiting:
            del self._waiting[: os.write(self._descriptor, self._waiting)]


def main() -> None:
    """Run until the agent goes away, NVML fails or a bound is passed."""
    order = Order(**json.loads(sys.argv[-1]))
    # Ctrl-C is for the agent: it lets the child finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A library may print: only our own copy of standard output leads to the agent.
    line = Line(os.dup(1))
    os.dup2(2, 1)
    threading.Thread(target=_end_with_the_agent, daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        _run(order, line)


def _end_with_the_agent() -> None:
    """Wait for the agent's end of the pipe to close; NVML calls release the interpreter, so this runs in any hang."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def _run(order: Order, line: Line) -> None:
    line.say("start", flush=True)
    try:
        nvml = start_nvml(order.library)
    except NvmlUnavailable as problem:
        line.say("failed", str(problem), flush=True)
        return
    line.say("ready", driver_version(nvml), flush=True)
    pace = Pace(*order.pace)
    reader = Reader(
        nvml,
        pace=pace,
        skip=frozenset(order.skip),
        announce=lambda gpu: line.say("at", gpu, flush=True),
        pci_devices=Path(order.pci_devices),
    )
    try:
        _tick_for_ever(order, pace, reader, line)
    except NvmlGone as problem:
        line.say("recycle", str(problem), flush=True)
    with contextlib.suppress(nvml.NVMLError):
        nvml.nvmlShutdown()


def _tick_for_ever(order: Order, pace: Pace, reader: Reader, line: Line) -> None:
    told: Facts | None = None
    due_s = time.monotonic()
    next_check_s = due_s + pace.facts_s
    lost_since_s = None
    while True:
        begun_ns = time.perf_counter_ns()
        reader.survey()
        told = _tell_facts(reader, line, told)
        for row in reader.tick():
            line.say("gpu", row)
        if processes := reader.processes():
            line.say("processes", processes)
        told = _tell_facts(reader, line, told)
        line.say("end", (time.perf_counter_ns() - begun_ns) // 1000, reader.rejected, flush=True)
        now_s = time.monotonic()
        lost_since_s = (lost_since_s or now_s) if reader.lost else None
        # A GPU that was reset needs a fresh start of NVML: old handles of it can crash.
        if lost_since_s is not None and now_s - lost_since_s > pace.reprobe_s:
            line.say("recycle", "a GPU has been lost for long", flush=True)
            return
        if now_s >= next_check_s:
            next_check_s = now_s + pace.facts_s
            if (why := _outgrown(order)) is not None:
                line.say("recycle", why, flush=True)
                return
        # On the beat; a beat that was missed is not made up for.
        due_s += order.interval_s * max(1, math.ceil((now_s - due_s) / order.interval_s))
        time.sleep(max(0.0, due_s - time.monotonic()))


def _tell_facts(reader: Reader, line: Line, told: Facts | None) -> Facts:
    facts = (reader.facts, dict(reader.missing))
    if facts != told:
        line.say("facts", *facts)
    return facts


def _outgrown(order: Order) -> str | None:
    """Which bound this process has passed, in words."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  no Path objects in a process that counts its bytes
    except (OSError, ValueError):
        return None
    rss_bytes = pages * os.sysconf("SC_PAGE_SIZE")
    if rss_bytes > order.most_rss_bytes:
        return f"the process had grown to {rss_bytes // 2**20} MiB"
    if files > order.most_files:
        return f"the process had {files} open files"
    return None
