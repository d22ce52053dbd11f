"""From readings to rows: an energy meter per GPU, and the tables of a batch."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from collectors.gpu.counter import LONGEST_GAP_US, EnergyMeter, Interval, Mark
from collectors.gpu.reading import Facts, Process, Reading
from collectors.samples import EnergyMethod, Gpu, GpuSamples, Processes

# Rows kept for an agent that does not fetch them; the oldest go first.
MOST_ROWS = 100_000
# A batch may carry 200 reasons; the other collectors need some of them.
MOST_REASONS = 150

# NVML's bits of why the clocks are held down.
POWER_CAP_BITS = 0x4
THERMAL_BITS = 0x20 | 0x40
HARDWARE_BITS = 0x8 | 0x80

# Asked only to make sense of other fields: their absence concerns nobody.
_INNER_FIELDS = frozenset({"architecture", "power_max_mw", "mig_enabled", "handle", "uuid"})


@dataclass(frozen=True)
class GpuDrain:
    """What was measured since the last drain.

    gpus: every GPU known; the tables' `gpu` points into it. status: why there are no samples at all, and what to do.
    missing: `gpu <uuid>.<field>` -> why, in words. restarts and rejected_readings count since the meter's start;
    tick_p99_us is of the ticks since the last drain, 0 if there was none. state: what to give to the next GpuMeter so
    that it continues just after these rows; keep it together with them.
    """

    gpus: list[Gpu] = field(default_factory=list)
    samples: GpuSamples | None = None
    processes: Processes | None = None
    status: str | None = None
    missing: dict[str, str] = field(default_factory=dict)
    restarts: int = 0
    rejected_readings: int = 0
    tick_p99_us: int = 0
    driver_version: str | None = None
    state: dict[str, dict[str, Any]] = field(default_factory=dict)


class Ledger:
    """The GPUs of one node and the rows not yet fetched.

    state: of an earlier run, by UUID; boot_id: of this boot, None when unknown.
    """

    def __init__(self, state: dict[str, Any] | None, boot_id: str | None) -> None:
        self.facts: dict[str, Facts] = {}
        self.driver_version: str | None = None
        self._boot_id = boot_id
        self._meters: dict[str, EnergyMeter] = {}
        self._methods: dict[str, EnergyMethod] = {}
        self._marks = _marks(state or {})
        self._rows: deque[tuple[Interval, Reading]] = deque(maxlen=MOST_ROWS)
        self._processes: deque[Process] = deque(maxlen=MOST_ROWS)

    @property
    def rejected(self) -> int:
        """Readings that the energy meters refused so far."""
        return sum(meter.rejected for meter in self._meters.values())

    def use_driver(self, version: str | None) -> None:
        """The driver in force from the next reading on: a counter does not continue in another."""
        self.driver_version = version
        for meter in self._meters.values():
            meter.driver_version = version

    def tell_facts(self, facts: list[Facts]) -> None:
        """Take what a child knows; a GPU that it does not list keeps its facts, and its absence is said."""
        told = {one.uuid: one for one in facts}
        for uuid, known in self.facts.items():
            if uuid not in told and not known.status.startswith("lost"):
                known = known._replace(status="lost: the driver no longer lists it; see dmesg")
            told.setdefault(uuid, known)
        self.facts = told

    def take(self, reading: Reading) -> None:
        """Book one reading."""
        meter = self._meters.get(reading.uuid)
        if meter is None:
            mark = self._marks.get(reading.uuid)
            meter = EnergyMeter(boot_id=self._boot_id, driver_version=self.driver_version, mark=mark)
            self._meters[reading.uuid] = meter
        facts = self.facts.get(reading.uuid) or Facts(reading.uuid, "unknown", 0)
        self.facts.setdefault(reading.uuid, facts)
        interval = meter.observe(reading, facts.power_limit_mw, facts.power_max_mw)
        if interval is None:
            return
        if interval.energy_method is not None and interval.energy_method != "bridged":
            self._methods[reading.uuid] = interval.energy_method
        self._rows.append((interval, reading))

    def take_processes(self, processes: list[Process]) -> None:
        """Keep processes for the next drain."""
        self._processes.extend(processes)

    def gpus(self, silent: dict[str, str]) -> list[Gpu]:
        """All GPUs by index. silent: UUID -> why a GPU is not asked at present."""
        ordered = sorted(self.facts.values(), key=lambda facts: (facts.nvml_index, facts.uuid))
        return [self._gpu(facts, silent.get(facts.uuid, facts.status)) for facts in ordered]

    def samples(self, gpus: list[Gpu]) -> GpuSamples | None:
        """The rows not yet fetched, and forget them; None if there are none."""
        if not self._rows:
            return None
        place = {gpu.uuid: position for position, gpu in enumerate(gpus)}
        rows = [_row(place[reading.uuid], interval, reading) for interval, reading in self._rows]
        self._rows.clear()
        columns = zip(*rows, strict=True)
        return GpuSamples(**dict(zip(GpuSamples.model_fields, map(list, columns), strict=True)))

    def processes(self, gpus: list[Gpu]) -> Processes | None:
        """The processes not yet fetched, and forget them; None if there are none."""
        place = {gpu.uuid: position for position, gpu in enumerate(gpus)}
        seen = [process for process in self._processes if process.uuid in place]
        self._processes.clear()
        if not seen:
            return None
        return Processes(
            gpu=[place[process.uuid] for process in seen],
            t_us=[process.t_us for process in seen],
            pid=[process.pid for process in seen],
            memory_used_bytes=[process.memory_used_bytes for process in seen],
        )

    def missing(self) -> dict[str, str]:
        """Why what is missing, as `gpu <uuid>.<field>`."""
        said: dict[str, str] = {}
        for uuid, facts in self.facts.items():
            meter = self._meters.get(uuid)
            reasons = {**facts.missing, **(meter.problems if meter else {})}
            said |= {f"gpu {uuid}.{name}": why for name, why in reasons.items() if name not in _INNER_FIELDS}
        return dict(list(said.items())[:MOST_REASONS])

    def state(self) -> dict[str, dict[str, Any]]:
        """Up to where each GPU's energy is booked, JSON-able; GPUs of earlier runs are kept for a year."""
        oldest_us = time.time_ns() // 1000 - LONGEST_GAP_US
        marks = dict(self._marks)
        marks |= {uuid: mark for uuid, meter in self._meters.items() if (mark := meter.mark) is not None}
        return {uuid: mark._asdict() for uuid, mark in marks.items() if mark.t_us >= oldest_us}

    def _gpu(self, facts: Facts, status: str) -> Gpu:
        scope = facts.energy_scope
        return Gpu(
            uuid=facts.uuid,
            name=facts.name,
            index=facts.nvml_index,
            pci_bus_id=facts.pci_bus_id,
            power_limit_mw=facts.power_limit_mw,
            memory_total_bytes=facts.memory_total_bytes,
            energy_method=self._methods.get(facts.uuid),
            energy_scope="module" if scope == "module" else "unknown" if scope == "unknown" else "gpu",
            mig_enabled=facts.mig_enabled,
            persistence_mode=facts.persistence_mode,
            status=status[:500],
        )


def _row(gpu: int, interval: Interval, reading: Reading) -> tuple[Any, ...]:
    """One row in the order of the columns of GpuSamples."""
    reasons = reading.event_reasons
    held = [None if reasons is None else bool(reasons & bits) for bits in (POWER_CAP_BITS, THERMAL_BITS, HARDWARE_BITS)]
    return (
        gpu,
        interval.t_us,
        interval.dt_us,
        interval.energy_mj,
        interval.energy_method,
        interval.integral_mj,
        interval.power_instant_mw,
        interval.power_average_mw,
        reading.utilisation_pct,
        reading.memory_utilisation_pct,
        reading.memory_used_bytes,
        reading.temperature_c,
        reading.sm_clock_mhz,
        reading.memory_clock_mhz,
        *held,
    )


def _marks(state: dict[str, Any]) -> dict[str, Mark]:
    """The marks of a saved state; what is of another shape counts as absent."""
    found = {uuid: Mark.from_json(facts) for uuid, facts in state.items()}
    return {uuid: mark for uuid, mark in found.items() if mark is not None}
