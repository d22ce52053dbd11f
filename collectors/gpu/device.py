"""One GPU through NVML: its facts once a minute, a reading once a second, its processes now and then."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from collectors.gpu.asking import Asker, GpuLost, text
from collectors.gpu.reading import Facts, Process, Reading
from collectors.gpu.words import FUNCTION_NOT_FOUND, code_words

# Literal ids: constants of the same names are missing in older versions of nvidia-ml-py.
ENERGY, POWER_AVERAGE, POWER_INSTANT = 83, 185, 186
MODULE_SCOPE = 1
HOT_FIELDS: dict[str, int | tuple[int, int]] = {
    "energy_counter": ENERGY,
    "power_instant_mw": POWER_INSTANT,
    "power_average_mw": POWER_AVERAGE,
    "module_power_mw": (POWER_INSTANT, MODULE_SCOPE),
}
_UNION_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

# 10^16 mJ is a kilowatt for three centuries; above it lie the markers for "blank".
HIGHEST_COUNTER_MJ = 10**16
HIGHEST_U31 = 2**31 - 1
HIGHEST_CLOCK_MHZ = 20_000
HIGHEST_MEMORY_BYTES = 2**50
HIGHEST_PID = 2**22
NVML_TURING = 6
SM_CLOCK, MEMORY_CLOCK = 1, 2
UNKNOWN_ERRORS_OF_A_LOST_GPU = 3


class Device:
    """A physical GPU. `uuid` is lower case, without `GPU-`; MIG instances are part of it and never read."""

    def __init__(self, nvml: ModuleType, handle: Any, uuid: str, asker: Asker) -> None:
        self.uuid = uuid
        self.handle = handle
        self.asker = asker
        self.facts = Facts(uuid, "unknown", 0)
        self._nvml = nvml
        self._power_is_instant = False

    def refresh(self, index: int) -> Facts:
        """Ask for the facts. Raises GpuLost and NvmlGone."""
        nvml, handle, ask, within = self._nvml, self.handle, self.asker.ask, self.asker.within
        mig = ask("mig_enabled", lambda: nvml.nvmlDeviceGetMigMode(handle)[0])
        if mig != self.facts.mig_enabled:
            self.asker.forget()
        persistence = ask("persistence_mode", lambda: nvml.nvmlDeviceGetPersistenceMode(handle))
        limit = ask(
            "power_limit_mw",
            lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle),
            lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle),
        )
        highest = ask("power_max_mw", lambda: nvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[1])
        pci = ask("pci_bus_id", lambda: nvml.nvmlDeviceGetPciInfo(handle).busId)
        architecture = ask("architecture", lambda: nvml.nvmlDeviceGetArchitecture(handle))
        self._power_is_instant = architecture is not None and 0 < architecture <= NVML_TURING
        self.facts = Facts(
            self.uuid,
            text(ask("name", lambda: nvml.nvmlDeviceGetName(handle))) or self.facts.name,
            index,
            text(pci) or self.facts.pci_bus_id,
            within("power_limit_mw", limit, 1, HIGHEST_U31),
            within("power_max_mw", highest, 1, HIGHEST_U31),
            self._memory_total(),
            self.facts.energy_scope,
            None if mig is None else bool(mig),
            None if persistence is None else bool(persistence),
            "ok",
        )
        return self.facts

    def read(self, wall_us: Callable[[], int], mono_us: Callable[[], int]) -> Reading:
        """One reading, its time that of the energy counter. Raises GpuLost and NvmlGone."""
        asker = self.asker
        asker.unknown_errors = 0
        counter_mj, instant_mw, average_mw = self._energy_and_power()
        t_us, at_us = wall_us(), mono_us()
        utilisation, memory_utilisation = self._utilisation()
        nvml, handle, ask, within = self._nvml, self.handle, asker.ask, asker.within
        temperature = ask(
            "temperature_c",
            lambda: nvml.nvmlDeviceGetTemperatureV(handle, 0),
            lambda: nvml.nvmlDeviceGetTemperature(handle, 0),
        )
        sm_clock = ask("sm_clock_mhz", lambda: nvml.nvmlDeviceGetClockInfo(handle, SM_CLOCK))
        memory_clock = ask("memory_clock_mhz", lambda: nvml.nvmlDeviceGetClockInfo(handle, MEMORY_CLOCK))
        reasons = ask(
            "event_reasons",
            lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
            lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        )
        reading = Reading(
            self.uuid,
            t_us,
            at_us,
            counter_mj,
            instant_mw,
            average_mw,
            utilisation,
            memory_utilisation,
            self._memory_used(),
            within("temperature_c", temperature, -50, 200),
            within("sm_clock_mhz", sm_clock, 0, HIGHEST_CLOCK_MHZ),
            within("memory_clock_mhz", memory_clock, 0, HIGHEST_CLOCK_MHZ),
            within("event_reasons", reasons, 0, 0xFFFF),
        )
        if asker.unknown_errors >= UNKNOWN_ERRORS_OF_A_LOST_GPU and not any(value is not None for value in reading[3:]):
            raise GpuLost("the GPU answers every question with an unknown error; see dmesg")
        return reading

    def processes(self, t_us: int) -> list[Process]:
        """Processes on the GPU and, in MIG mode, on its instances. Raises GpuLost and NvmlGone."""
        nvml, handle = self._nvml, self.handle
        # The unversioned calls raise a version mismatch on old drivers.
        seen = self.asker.ask(
            "processes",
            lambda: nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle),
            lambda: nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle),
        )
        under_mps = self.asker.ask("mps_processes", lambda: nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(handle))
        self.asker.missing.pop("mps_processes", None)
        memory: dict[int, int | None] = {}
        for process in [*(seen or []), *(under_mps or [])]:
            pid = self.asker.within("processes", process.pid, 1, HIGHEST_PID)
            if pid is None:
                continue
            used = process.usedGpuMemory
            used = used if used is not None and 0 <= used <= self._highest_memory() else None
            memory[pid] = used if used is None or memory.get(pid) is None else used + (memory[pid] or 0)
        return [Process(self.uuid, t_us, pid, used) for pid, used in sorted(memory.items())]

    def _energy_and_power(self) -> tuple[int | None, int | None, int | None]:
        """Counter in mJ, instantaneous and average power in mW: one call on the hot path."""
        nvml, handle, asker = self._nvml, self.handle, self.asker
        found = self._fields([field for field in HOT_FIELDS if not asker.refused(field)])
        counter = found.get("energy_counter")
        if counter is None and asker.refused("energy_counter"):
            counter = asker.ask("energy_total", lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
            asker.missing.pop("energy_total", None)
            if counter is not None:
                asker.missing.pop("energy_counter", None)
        instant, average = found.get("power_instant_mw"), found.get("power_average_mw")
        module = found.get("module_power_mw")
        asker.missing.pop("module_power_mw", None)
        if instant is None and average is None and module is None:
            power = asker.ask("power_usage", lambda: nvml.nvmlDeviceGetPowerUsage(handle))
            if self._power_is_instant:
                instant = power
            else:
                average = power
            if power is not None:
                asker.missing.pop("power_instant_mw" if self._power_is_instant else "power_average_mw", None)
            asker.missing.pop("power_usage", None)
        self._settle_scope(instant, module)
        counter = asker.within("energy_counter", counter, 0, HIGHEST_COUNTER_MJ)
        return counter, module if instant is None and module is not None else instant, average

    def _settle_scope(self, instant_mw: int | None, module_mw: int | None) -> None:
        """On a superchip the counter may cover the module; once known, the module's power is not asked for again."""
        if module_mw is not None:
            scope = "unknown" if instant_mw is not None else "module"
            self.facts = self.facts._replace(energy_scope=scope)
        if instant_mw is not None and not self.asker.refused("module_power_mw"):
            self.asker.refuse("module_power_mw", "")
            self.asker.missing.pop("module_power_mw", None)

    def _fields(self, names: list[str]) -> dict[str, int]:
        """Field -> value of those that answered; each has its own return code and type."""
        if not names:
            return {}
        ids = [HOT_FIELDS[name] for name in names]
        values = self.asker.ask("field_values", lambda: self._nvml.nvmlDeviceGetFieldValues(self.handle, ids))
        why = self.asker.missing.pop("field_values", None)
        if values is None:
            for name in names:
                if self.asker.refused("field_values"):
                    self.asker.refuse(name, why or code_words(FUNCTION_NOT_FOUND))
                elif why:
                    self.asker.missing[name] = why
            return {}
        found = {}
        for name, value in zip(names, values, strict=True):
            if value.nvmlReturn != 0:
                self.asker.settle(name, value.nvmlReturn)
            elif value.valueType >= len(_UNION_MEMBERS):
                self.asker.missing[name] = f"the driver answers with an unknown type of value ({value.valueType})"
            else:
                found[name] = int(getattr(value.value, _UNION_MEMBERS[value.valueType]))
                self.asker.missing.pop(name, None)
        return found

    def _utilisation(self) -> tuple[int | None, int | None]:
        asker, nvml = self.asker, self._nvml
        if self.facts.mig_enabled:
            asker.missing["utilisation_pct"] = "not measured while MIG is on"
            return None, None
        rates = asker.ask("utilisation_pct", lambda: nvml.nvmlDeviceGetUtilizationRates(self.handle))
        if rates is None:
            return None, None
        return (
            asker.within("utilisation_pct", int(rates.gpu), 0, 100),
            asker.within("memory_utilisation_pct", int(rates.memory), 0, 100),
        )

    def _memory_total(self) -> int | None:
        info = self._memory("memory_total_bytes")
        total = self.asker.within("memory_total_bytes", int(info.total), 0, HIGHEST_MEMORY_BYTES) if info else None
        if total == 0:
            self.asker.missing["memory_total_bytes"] = "the GPU shares the host's memory"
        return total or None

    def _memory_used(self) -> int | None:
        info = self._memory("memory_used_bytes")
        return self.asker.within("memory_used_bytes", int(info.used), 0, self._highest_memory()) if info else None

    def _memory(self, field: str) -> Any:
        """Version 1 counts the driver's reserve as used; version 2 does not."""
        nvml, handle = self._nvml, self.handle
        return self.asker.ask(
            field,
            lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2),
            lambda: nvml.nvmlDeviceGetMemoryInfo(handle),
        )

    def _highest_memory(self) -> int:
        return self.facts.memory_total_bytes or HIGHEST_MEMORY_BYTES
