"""The reader and the ledger in the test's own process, on a clock that only the test moves."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pynvml

from collectors.gpu.ledger import Ledger
from collectors.gpu.nvml import Pace, Reader, driver_version, start_nvml
from collectors.samples import Gpu
from tests.fakenvml.build import FakeDriver

EPOCH_US = 1_800_000_000_000_000
Row = dict[str, Any]


class Rig:
    """`run` lets time pass; `rows` has what was measured since, by UUID."""

    def __init__(self, driver: FakeDriver, pci_devices: Path, pace: Pace | None = None) -> None:
        self.driver = driver
        self.now_us = EPOCH_US
        self.rejected = 0
        for gpu in driver.gpus:
            gpu["epoch"] = EPOCH_US / 1e6
        driver.write()
        _forget_library()
        self._library = ctypes.CDLL(str(driver.library))
        self._set_clock()
        nvml = start_nvml(str(driver.library))
        self.reader = Reader(
            nvml,
            pace=pace,
            wall_us=lambda: self.now_us,
            mono_us=lambda: self.now_us - EPOCH_US,
            pci_devices=pci_devices,
        )
        self.ledger = Ledger(None, "boot")
        self.ledger.use_driver(driver_version(nvml))

    def close(self) -> None:
        """Leave no library behind in nvidia-ml-py."""
        pynvml.nvmlShutdown()
        self._library.fakenvml_set_us(ctypes.c_int64(-1))
        _forget_library()

    def tick(self, after_s: float = 1.0) -> None:
        """Let `after_s` pass, then read every GPU once."""
        self.now_us += round(after_s * 1e6)
        self._set_clock()
        self.reader.survey()
        self.ledger.tell_facts(self.reader.facts)
        for reading in self.reader.tick():
            self.ledger.take(reading)
        self.ledger.take_processes(self.reader.processes())
        self.ledger.tell_facts(self.reader.facts)

    def run(self, ticks: int) -> dict[str, list[Row]]:
        """Tick once a second, so many times; the rows since the last call, by UUID."""
        for _ in range(ticks):
            self.tick()
        return self.rows()

    def rows(self) -> dict[str, list[Row]]:
        """The rows since the last call, by UUID."""
        gpus = self.gpus()
        samples = self.ledger.samples(gpus)
        found: dict[str, list[Row]] = {gpu.uuid: [] for gpu in gpus}
        if samples is not None:
            for values in zip(*(getattr(samples, name) for name in type(samples).model_fields), strict=True):
                row = dict(zip(type(samples).model_fields, values, strict=True))
                found[gpus[row["gpu"]].uuid].append(row)
        return found

    def gpus(self) -> list[Gpu]:
        """All GPUs known."""
        return self.ledger.gpus({})

    def gpu(self, uuid: str) -> Gpu:
        """One of them."""
        return next(gpu for gpu in self.gpus() if gpu.uuid == uuid)

    def _set_clock(self) -> None:
        self._library.fakenvml_set_us(ctypes.c_int64(self.now_us))


def _forget_library() -> None:
    """nvidia-ml-py keeps the library and its functions for the life of a process."""
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()


def energy_mj(rows: list[Row]) -> int:
    """Energy of rows that all have one."""
    assert None not in [row["energy_mj"] for row in rows]
    return sum(row["energy_mj"] for row in rows)


def methods(rows: list[Row]) -> set[str | None]:
    """How the energy of the rows was found."""
    return {row["energy_method"] for row in rows}
