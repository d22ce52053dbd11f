"""All GPUs of the node through NVML: which there are, and one reading of each per tick."""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from collectors.gpu.asking import Asker, GpuLost, NvmlGone, text
from collectors.gpu.device import Device
from collectors.gpu.reading import Facts, Process, Reading
from collectors.gpu.words import UNINITIALIZED, code_of, why_missing, why_no_start

PCI_DEVICES = Path("/sys/bus/pci/devices")
_UUID_SIGNS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz.:_-/")


class NvmlUnavailable(Exception):
    """NVML cannot be used; the message is the node's status, with a remedy."""


class Pace(NamedTuple):
    """How often what is asked, in seconds: facts and the list of GPUs, processes, and what was once refused."""

    facts_s: float = 60.0
    processes_s: float = 10.0
    reprobe_s: float = 600.0


def start_nvml(library: str | None) -> ModuleType:
    """nvidia-ml-py, initialised, on the driver's library or on the file `library`. Raises NvmlUnavailable."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError as problem:
        raise NvmlUnavailable(f"no_nvml: nvidia-ml-py is not installed ({problem}); pip install nvidia-ml-py") from None
    if not hasattr(nvml, "_nvmlGetFunctionPointer"):
        raise NvmlUnavailable(
            f"no_nvml: {nvml.__file__} is the old pynvml package, which hides nvidia-ml-py; pip uninstall pynvml and "
            "reinstall nvidia-ml-py"
        )
    if library is not None:
        try:
            nvml.nvmlLib = ctypes.CDLL(library)  # type: ignore[attr-defined]
        except OSError as problem:
            raise NvmlUnavailable(f"no_nvml: --nvml-library {library} cannot be loaded: {problem}"[:400]) from None
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError, OSError, AttributeError) as problem:
        raise NvmlUnavailable(why_no_start(problem)) from None
    return nvml


def driver_version(nvml: ModuleType) -> str | None:
    """The driver's version, or None when it does not tell."""
    try:
        return text(nvml.nvmlSystemGetDriverVersion())
    except (nvml.NVMLError, UnicodeDecodeError, OSError):
        return None


class Reader:
    """The GPUs of an initialised NVML. Clocks and the folder of PCI devices are injectable.

    skip: UUIDs, or `#<index>`, not to be touched. announce: told before each GPU is touched, so that whoever watches
    knows which one hangs.
    """

    def __init__(
        self,
        nvml: ModuleType,
        *,
        pace: Pace | None = None,
        skip: frozenset[str] = frozenset(),
        announce: Callable[[str], None] = lambda _: None,
        wall_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        mono_us: Callable[[], int] = lambda: time.monotonic_ns() // 1000,
        pci_devices: Path = PCI_DEVICES,
    ) -> None:
        self.missing: dict[str, str] = {}
        self.skip = skip
        self._nvml, self._announce, self._pci_devices = nvml, announce, pci_devices
        self._pace = pace or Pace()
        self._wall_us, self._mono_us = wall_us, mono_us
        self._devices: dict[str, Device] = {}  # those that answer, by UUID
        self._known: dict[str, Facts] = {}  # all that were ever seen
        self._count: int | None = None
        self._facts_due_us = self._processes_due_us = 0
        self._rejected_before = 0
        self._stale = True

    @property
    def facts(self) -> list[Facts]:
        """Every GPU seen so far, by index, with why each field of it is missing."""
        known = [
            self._devices[uuid].facts._replace(missing=dict(self._devices[uuid].asker.missing))
            if uuid in self._devices
            else facts
            for uuid, facts in self._known.items()
        ]
        return sorted(known, key=lambda facts: facts.nvml_index)

    @property
    def rejected(self) -> int:
        """Readings out of range so far."""
        return self._rejected_before + sum(device.asker.rejected for device in self._devices.values())

    @property
    def lost(self) -> bool:
        """Whether a GPU is lost."""
        return any(facts.status.startswith("lost") for facts in self._known.values())

    def survey(self) -> None:
        """Find the GPUs and their facts, if that is due or their number has changed. Raises NvmlGone."""
        count = self._ask_count()
        if self._stale or count != self._count or self._mono_us() >= self._facts_due_us:
            self._facts_due_us = self._mono_us() + int(self._pace.facts_s * 1e6)
            self._stale = False
            self._list(count)

    def tick(self) -> Iterator[Reading]:
        """One reading per GPU that answers. Raises NvmlGone."""
        for device in list(self._devices.values()):
            if self._is_suspended(device):
                continue
            self._announce(device.uuid)
            try:
                if not self._is_still(device):
                    self._stale = True  # it is read at the next tick, under its own name
                    continue
                yield device.read(self._wall_us, self._mono_us)
            except GpuLost as problem:
                self._lose(device, str(problem))
        self._announce("")

    def processes(self) -> list[Process]:
        """Processes of all GPUs if they are due, else none. Raises NvmlGone."""
        if self._mono_us() < self._processes_due_us:
            return []
        self._processes_due_us = self._mono_us() + int(self._pace.processes_s * 1e6)
        seen: list[Process] = []
        for device in list(self._devices.values()):
            if device.facts.status != "ok":
                continue
            self._announce(device.uuid)
            try:
                seen += device.processes(self._wall_us())
            except GpuLost as problem:
                self._lose(device, str(problem))
        self._announce("")
        return seen

    def _ask_count(self) -> int:
        try:
            count = int(self._nvml.nvmlDeviceGetCount())
        except (self._nvml.NVMLError, OSError) as problem:
            if code_of(problem) == UNINITIALIZED:
                raise NvmlGone(why_missing(problem)) from None
            self.missing["gpus"] = f"the GPUs cannot be counted: {why_missing(problem)}"
            return self._count or 0
        self.missing.pop("gpus", None)
        return count

    def _list(self, count: int) -> None:
        """Find every GPU again by its UUID: indexes may have been dealt anew."""
        unchanged = count == self._count
        self._count = count
        before, self._devices = self._devices, {}
        self.missing = {key: why for key, why in self.missing.items() if not key.startswith("gpu #")}
        asleep = {device.facts.nvml_index: device for device in before.values() if self._is_suspended(device)}
        for index in range(count):
            device = asleep.get(index) if unchanged else None
            device = device or self._find(index, before)
            if device is not None:
                self._devices[device.uuid] = device
                self._known[device.uuid] = device.facts
        for uuid, device in before.items():
            if uuid not in self._devices:
                self._rejected_before += device.asker.rejected
        for uuid, facts in self._known.items():
            if uuid not in self._devices and not facts.status.startswith("lost"):
                self._known[uuid] = facts._replace(status="lost: the driver no longer lists it; see dmesg")

    def _find(self, index: int, before: dict[str, Device]) -> Device | None:
        """The GPU at `index` with fresh facts, or None with the reason kept."""
        place = f"#{index}"
        if place in self.skip:
            return None
        self._announce(place)
        asker = Asker(self._nvml, self._mono_us, int(self._pace.reprobe_s * 1e6))
        try:
            handle = asker.ask("handle", lambda: self._nvml.nvmlDeviceGetHandleByIndex(index))
            uuid = None if handle is None else self._uuid(asker, handle)
            if uuid is None or uuid in self.skip or uuid in self._devices:
                if uuid is None:
                    self.missing[f"gpu {place}"] = next(iter(asker.missing.values()), "it has no usable UUID")
                return None
            device = before.get(uuid) or Device(self._nvml, handle, uuid, asker)
            device.handle = handle
            self._announce(uuid)
            device.refresh(index)
        except GpuLost as problem:
            self.missing[f"gpu {place}"] = str(problem)
            self._mark_lost_at(index, str(problem))
            return None
        return device

    def _uuid(self, asker: Asker, handle: Any) -> str | None:
        told = text(asker.ask("uuid", lambda: self._nvml.nvmlDeviceGetUUID(handle)))
        uuid = (told or "").lower().removeprefix("gpu-")
        return uuid if 0 < len(uuid) <= 80 and set(uuid) <= _UUID_SIGNS else None

    def _is_still(self, device: Device) -> bool:
        """Whether the handle still is that GPU's: energy must never be booked to another."""
        uuid = self._uuid(device.asker, device.handle)
        return uuid is None or uuid == device.uuid

    def _lose(self, device: Device, why: str) -> None:
        """The handle is not used again; the GPU may come back when the GPUs are listed anew."""
        self._known[device.uuid] = device.facts._replace(status=f"lost: {why}")
        self._rejected_before += device.asker.rejected
        del self._devices[device.uuid]

    def _mark_lost_at(self, index: int, why: str) -> None:
        for uuid, facts in self._known.items():
            if facts.nvml_index == index and uuid not in self._devices:
                self._known[uuid] = facts._replace(status=f"lost: {why}")

    def _is_suspended(self, device: Device) -> bool:
        """Whether the system has put the GPU to sleep: a question would wake it and burn what is measured."""
        if device.facts.pci_bus_id is None:
            return False
        domain, _, rest = device.facts.pci_bus_id.lower().partition(":")
        try:
            path = self._pci_devices / f"{domain[-4:]}:{rest}" / "power" / "runtime_status"
            asleep = path.read_text(encoding="ascii", errors="replace").strip() == "suspended"
        except (OSError, ValueError):
            asleep = False
        status = "suspended" if asleep else "ok"
        if device.facts.status != status:
            device.facts = device.facts._replace(status=status)
        return asleep
