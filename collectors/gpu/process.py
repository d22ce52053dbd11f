"""The GPU collector as the agent sees it: a child process that is watched, restarted and listened to.

NVML can block for tens of seconds, hang for ever, or crash its process when a GPU disappears; so it lives in a child
that is killed when it misses its deadline, and the agent itself never waits for it.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Any

from collectors.gpu.child import Order
from collectors.gpu.child_handle import Child
from collectors.gpu.ledger import GpuDrain, Ledger
from collectors.gpu.nvml import PCI_DEVICES, Pace
from collectors.gpu.quarantine import Quarantine
from collectors.gpu.reading import Facts, Process, Reading

__all__ = ["GpuDrain", "GpuMeter", "read_once"]

LONGEST_BACKOFF_S = 60.0


class GpuMeter:
    """Reads all GPUs of the node once per `interval_s`.

    nvml_library: the driver's library, if not where the system looks. state: of an earlier meter's last drain.
    boot_id: of this boot. tick_deadline_s: for one GPU's answers; init_deadline_s: for NVML's start and for finding a
    GPU. After a failure the child is started again after `backoff_s`, doubling up to a minute; a GPU that made it
    hang or crash is left alone for `quarantine_s`, doubling up to ten minutes. pace: what is asked less often.
    Not thread-safe.
    """

    def __init__(
        self,
        *,
        nvml_library: str | None = None,
        interval_s: float = 1.0,
        state: dict[str, Any] | None = None,
        boot_id: str | None = None,
        tick_deadline_s: float = 5.0,
        init_deadline_s: float = 60.0,
        backoff_s: float = 1.0,
        quarantine_s: float = 30.0,
        pace: Pace | None = None,
        pci_devices: Path = PCI_DEVICES,
    ) -> None:
        self._order = Order(nvml_library, interval_s, pace=list(pace or Pace()), pci_devices=str(pci_devices))
        self._tick_deadline_s, self._init_deadline_s = tick_deadline_s, init_deadline_s
        self._first_backoff_s = self._backoff_s = backoff_s
        self._ledger = Ledger(state, boot_id)
        self._state = self._ledger.state()
        self._quarantine = Quarantine(quarantine_s)
        self._child: Child | None = None
        self._running = False
        self._status: str | None = None
        self._missing: dict[str, str] = {}
        self._restarts = 0
        self._rejected_before = self._rejected = 0
        self._ticks_us: deque[int] = deque(maxlen=3600)
        self.ticks = 0  # complete ticks so far
        self._at = ""  # the GPU being asked
        self._expected_end = False
        self._ready_s: float | None = None
        self._due_s = self._not_before_s = self._polled_s = 0.0

    @property
    def child_pid(self) -> int | None:
        """Process id of the running child."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start reading; returns at once."""
        self._running = True
        self._not_before_s = 0.0
        self._polled_s = time.monotonic()
        self._launch()

    resume = start

    def pause(self) -> None:
        """Close NVML, so that a driver can be unloaded; `resume` starts again."""
        self._running = False
        self._end_child()

    stop = pause

    def poll(self, timeout_s: float) -> None:
        """Take what has come, waiting up to `timeout_s` for a complete tick.

        Also watches the child: kills it past its deadline, starts it again.
        """
        now_s = time.monotonic()
        if now_s - self._polled_s > self._tick_deadline_s:
            # We were held up ourselves, perhaps with the whole machine: the child gets its time again.
            self._due_s = max(self._due_s, now_s + self._tick_deadline_s)
        end_s = now_s + timeout_s
        ticks = self.ticks
        while True:
            left_s = end_s - now_s
            if self._child is None:
                time.sleep(max(0.0, min(left_s, self._not_before_s - now_s if self._running else left_s)))
                self._launch()
            else:
                self._listen(self._child, min(left_s, self._due_s - now_s))
            now_s = self._polled_s = time.monotonic()
            if self.ticks > ticks or now_s >= end_s:
                return

    def drain(self) -> GpuDrain:
        """Everything since the last drain, complete and ready for a batch."""
        held = self._quarantine.held()
        gpus = self._ledger.gpus({uuid: why for gpu, why in held.items() if (uuid := self._uuid_of(gpu)) is not None})
        ticks_us = sorted(self._ticks_us)
        self._ticks_us.clear()
        missing = self._ledger.missing() | self._missing
        missing |= {f"gpu {gpu}": why for gpu, why in held.items()}
        self._state = self._ledger.state()
        return GpuDrain(
            gpus=gpus,
            samples=self._ledger.samples(gpus),
            processes=self._ledger.processes(gpus),
            status=self._status if self._running else "paused: NVML is closed",
            missing=missing,
            restarts=self._restarts,
            rejected_readings=self._rejected_before + self._rejected + self._ledger.rejected,
            tick_p99_us=ticks_us[(len(ticks_us) * 99) // 100] if ticks_us else 0,
            driver_version=self._ledger.driver_version,
            state=self._state,
        )

    def state(self) -> dict[str, dict[str, Any]]:
        """Up to where energy was booked at the last drain, JSON-able: for `state` of the next meter."""
        return self._state

    def _launch(self) -> None:
        if not self._running or self._child is not None or time.monotonic() < self._not_before_s:
            return
        self._quarantine.release(time.monotonic())
        self._at, self._expected_end, self._ready_s = "", False, None
        self._due_s = time.monotonic() + self._init_deadline_s
        try:
            self._child = Child(self._order._replace(skip=list(self._quarantine.held())))
        except OSError as problem:
            self._status = f"no_process: the process that reads NVML cannot be started ({problem})"
            self._retry_later()

    def _end_child(self, *, kill: bool = False) -> int | None:
        if self._child is None:
            return None
        status = self._child.stop(kill=kill)
        self._child = None
        self._rejected_before, self._rejected = self._rejected_before + self._rejected, 0
        return status

    def _listen(self, child: Child, timeout_s: float) -> None:
        """Take the child's lines, then see whether it is still well."""
        for line in child.lines(timeout_s):
            self._take(line)
        now_s = time.monotonic()
        if child.ended:
            self._bury()
        elif now_s >= self._due_s:
            self._end_child(kill=True)
            self._blame("not answering: a call of the driver did not return in time; see dmesg")
        elif self._ready_s is not None and self._at == "" and self._quarantine.release(now_s):
            self._end_child()  # its successor tries those again

    def _take(self, line: list[Any]) -> None:
        """Act on one line."""
        kind, *words = line
        now_s = time.monotonic()
        if kind == "gpu":
            self._ledger.take(Reading(*words[0]))
        elif kind == "at":
            self._at = words[0]
            finding = self._at.startswith("#")
            between_ticks_s = 0.0 if self._at else self._order.interval_s
            self._due_s = now_s + (self._init_deadline_s if finding else self._tick_deadline_s + between_ticks_s)
        elif kind == "end":
            self._at = ""
            self._due_s = now_s + self._order.interval_s + self._tick_deadline_s
            self._ticks_us.append(words[0])
            self._rejected = words[1]
            self.ticks += 1
        elif kind == "facts":
            self._ledger.tell_facts([Facts(*facts) for facts in words[0]])
            self._missing = words[1]
            self._status = None if self._ledger.facts else _no_gpu(self._quarantine.held() | self._missing)
        elif kind == "processes":
            self._ledger.take_processes([Process(*process) for process in words[0]])
        elif kind == "ready":
            self._ready_s = now_s
            self._due_s = now_s + self._init_deadline_s
            self._ledger.use_driver(words[0])
        elif kind == "failed":
            self._status, self._expected_end = words[0], True
            self._retry_later()
        elif kind == "recycle":
            self._expected_end = True
            self._retry_later(recycled=True)

    def _bury(self) -> None:
        """The child has ended: as announced, or by a crash."""
        code = self._end_child()
        if not self._expected_end:
            how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
            self._blame(f"not answering: the driver's library crashed ({how}); see dmesg")

    def _blame(self, why: str) -> None:
        """A failure: leave the GPU at fault alone and go on at once, or try again later when none is."""
        self._restarts += 1
        if self._at:
            self._quarantine.put(self._at, why, time.monotonic())
            self._not_before_s = 0.0
            self._launch()
            return
        if self._ready_s is None:
            self._status = f"nvml_fails: NVML did not start; {why.removeprefix('not answering: ')}"
        self._retry_later()

    def _retry_later(self, *, recycled: bool = False) -> None:
        now_s = time.monotonic()
        if self._ready_s is not None and now_s - self._ready_s > 2 * self._backoff_s:
            self._backoff_s = self._first_backoff_s
            if recycled:
                self._not_before_s = now_s
                return
        self._not_before_s = now_s + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, LONGEST_BACKOFF_S)

    def _uuid_of(self, gpu: str) -> str | None:
        """The UUID of a GPU named by UUID or `#<index>`, as far as it is known."""
        if not gpu.startswith("#"):
            return gpu
        return next((facts.uuid for facts in self._ledger.facts.values() if f"#{facts.nvml_index}" == gpu), None)


def _no_gpu(missing: dict[str, str]) -> str:
    """The status of a node on which NVML works and shows no GPU."""
    reason = next(iter(missing.values()), "NVML lists none; check lspci, and NVIDIA_VISIBLE_DEVICES in a container")
    return f"no_gpu: {reason}"[:500]


def read_once(nvml_library: str | None = None, *, deadline_s: float = 65.0, interval_s: float = 1.0) -> GpuDrain:
    """One full reading, over an interval of `interval_s`, in a child that is given `deadline_s`."""
    meter = GpuMeter(nvml_library=nvml_library, interval_s=interval_s)
    meter.start()
    end_s = time.monotonic() + deadline_s
    try:
        while meter.ticks < 2 and (left_s := end_s - time.monotonic()) > 0:
            meter.poll(min(left_s, 0.5))
            if meter.child_pid is None:
                break  # NVML cannot be used: the status says why
        return meter.drain()
    finally:
        meter.stop()
