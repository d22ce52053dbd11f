"""Energy of one GPU from its cumulative counter, checked against and repaired by the integral of its power.

Pure: readings come in with their times, intervals go out. Energies are integer millijoules, powers milliwatts, times
microseconds. A delta of the counter is used when it is sound, else dropped and filled by the power integral; what was
filled is never counted again when the counter catches up.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from collectors.gpu.power import PowerSensor, believable_mw
from collectors.gpu.reading import Reading
from collectors.samples import EnergyMethod

Powers = tuple[int | None, int | None]  # instantaneous and average, mW
Fill = tuple[int | None, EnergyMethod | None]  # energy of an interval, mJ, and where it comes from

# Longer than this is a gap: power in between is unknown, only the counter knows.
GAP_US = 5_000_000
FROZEN_AFTER_US = 3_000_000
# Boards publish the counter in steps of up to 100 ms: within a step and a half, no movement means "not yet".
STEP_US = 150_000
# One step of energy may fall into either of two intervals.
SLACK_US = 100_000
# Another boot: a gap up to this long is still the same stay of the GPU, its energy unknown.
REBOOT_GAP_US = 600_000_000
LONGEST_GAP_US = 366 * 86_400_000_000
# At this utilisation a GPU cannot draw nothing.
BUSY_PCT = 10


class CounterState(Enum):
    """Where the counter stands: see design rule 3 of the energy meter."""

    BASELINE = "baseline"
    OK = "ok"
    WAITING = "waiting"  # has not moved, or not answered, since the last interval
    RESET = "reset"
    FROZEN = "frozen"
    IMPLAUSIBLE = "implausible"
    ABSENT = "absent"


class Mark(NamedTuple):
    """Up to where a GPU's energy has been booked; JSON-able by `_asdict()`.

    counter_mj: None when the counter cannot be trusted across a gap. ahead_mj: energy already filled beyond it.
    """

    counter_mj: int | None
    ahead_mj: int
    t_us: int
    mono_us: int
    boot_id: str | None
    driver_version: str | None

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Mark | None:
        """The mark of `facts`, or None when they are of another shape."""
        try:
            mark = cls(
                facts["counter_mj"],
                int(facts.get("ahead_mj", 0)),
                int(facts["t_us"]),
                int(facts["mono_us"]),
                facts["boot_id"],
                facts["driver_version"],
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return mark if mark.counter_mj is None or isinstance(mark.counter_mj, int) else None


class Interval(NamedTuple):
    """Energy of (t - dt, t]. energy_mj None: unknown. integral_mj: the power integral, None where it is unknown."""

    t_us: int
    dt_us: int
    energy_mj: int | None
    energy_method: EnergyMethod | None
    integral_mj: int | None
    power_instant_mw: int | None
    power_average_mw: int | None


class _Integral(NamedTuple):
    energy_mj: int
    method: EnergyMethod


class EnergyMeter:
    """The energy of one GPU, reading after reading.

    mark: where an earlier run stopped. boot_id and driver_version: of now; a counter only continues within both.
    `rejected` counts deltas and powers that were refused; `problems` says why, by field.
    """

    def __init__(self, *, boot_id: str | None, driver_version: str | None, mark: Mark | None = None) -> None:
        self.state = CounterState.BASELINE
        self.driver_version = driver_version
        self._boot_id = boot_id
        self._alive = False  # whether the mark is of this run, and so of this boot even where its id is unknown
        self._instant, self._average = PowerSensor(), PowerSensor()
        self._rejected_deltas = 0
        self._mark = mark
        self._powers: Powers = (None, None)
        self._moved_us = mark.mono_us if mark else 0

    @property
    def mark(self) -> Mark | None:
        """Up to where energy has been booked; None before the first reading."""
        if self._mark is None or self.state is not CounterState.FROZEN:
            return self._mark
        return self._mark._replace(counter_mj=None, ahead_mj=0)

    @property
    def rejected(self) -> int:
        """Readings refused so far."""
        return self._rejected_deltas + self._instant.rejected + self._average.rejected

    @property
    def problems(self) -> dict[str, str]:
        """Field -> why it is not believed at present."""
        said = {"power_instant_mw": self._instant.problem, "power_average_mw": self._average.problem}
        if self.state is CounterState.FROZEN:
            said["energy_counter"] = "the energy counter stands still though power is drawn; power is integrated"
        if self.state is CounterState.IMPLAUSIBLE:
            said["energy_counter"] = "the energy counter jumped beyond what the GPU can draw; power is integrated"
        return {field: why for field, why in said.items() if why is not None}

    def observe(self, reading: Reading, limit_mw: int | None, max_limit_mw: int | None = None) -> Interval | None:
        """The interval that `reading` ends; None for a first reading, or when nothing can be said of the time since.

        limit_mw: the power limit in force; max_limit_mw: the highest the board accepts; None: unknown.
        """
        bound_mw = believable_mw(limit_mw, max_limit_mw)
        at = (reading.mono_us, reading.utilisation_pct, bound_mw)
        powers = (
            self._instant.believe(reading.power_instant_mw, *at),
            self._average.believe(reading.power_average_mw, *at),
        )
        before, before_powers = self._mark, self._powers
        if before is None:
            self._start(reading, powers)
            return None
        dt_us = self._elapsed_us(before, reading)
        if dt_us <= 0:
            # A reading that repeats an instant, or a wall clock set back across a restart, spans no time.
            if self._is_other_life(before):
                self._start(reading, powers)
            return None
        if self._is_other_life(before) or dt_us > GAP_US:
            bridged = self._bridge(before, reading, dt_us, bound_mw)
            self._start(reading, powers)
            return bridged and bridged._replace(power_instant_mw=powers[0], power_average_mw=powers[1])
        integral = _integral(before_powers, powers, dt_us)
        energy_mj, method = self._energy(before, reading, integral, powers, bound_mw)
        self._powers = powers
        return Interval(reading.t_us, dt_us, energy_mj, method, integral and integral.energy_mj, *powers)

    def _elapsed_us(self, before: Mark, reading: Reading) -> int:
        """Time since `before`: by the monotonic clock within a boot, else by the wall clock."""
        if before.boot_id == self._boot_id and reading.mono_us >= before.mono_us:
            return reading.mono_us - before.mono_us
        return reading.t_us - before.t_us

    def _is_other_life(self, before: Mark) -> bool:
        return (before.boot_id, before.driver_version) != (self._boot_id, self.driver_version)

    def _start(self, reading: Reading, powers: Powers) -> None:
        self.state = CounterState.BASELINE if reading.counter_mj is not None else CounterState.ABSENT
        self._powers = powers
        self._anchor(reading, reading.counter_mj, 0)

    def _anchor(self, reading: Reading, counter_mj: int | None, ahead_mj: int) -> None:
        self._moved_us = reading.mono_us
        self._pass(reading, counter_mj, ahead_mj)

    def _pass(self, reading: Reading, counter_mj: int | None, ahead_mj: int) -> None:
        self._alive = True
        at = (reading.t_us, reading.mono_us, self._boot_id, self.driver_version)
        self._mark = Mark(counter_mj, ahead_mj, *at)

    def _bridge(self, before: Mark, reading: Reading, dt_us: int, bound_mw: int) -> Interval | None:
        """One row for a gap: the counter's difference, or an unknown energy of a GPU that was there all the same."""
        same_boot = self._alive or (before.boot_id is not None and before.boot_id == self._boot_id)
        if (not same_boot and dt_us > REBOOT_GAP_US) or dt_us > LONGEST_GAP_US:
            return None
        energy_mj = None
        start_mj = None if self.state is CounterState.FROZEN else before.counter_mj
        continues = same_boot and not self._is_other_life(before)
        if continues and start_mj is not None and reading.counter_mj is not None:
            delta_mj = reading.counter_mj - start_mj
            # A counter that stood still across a gap says nothing: nothing draws no energy for so long.
            if 0 < delta_mj <= _most_mj(bound_mw, dt_us + FROZEN_AFTER_US):
                energy_mj = max(0, delta_mj - before.ahead_mj)
            elif delta_mj != 0:
                self._rejected_deltas += 1
        return Interval(reading.t_us, dt_us, energy_mj, "bridged", None, None, None)

    def _energy(
        self,
        before: Mark,
        reading: Reading,
        integral: _Integral | None,
        powers: Powers,
        bound_mw: int,
    ) -> Fill:
        """Energy and method of one ordinary interval; moves the state and the mark."""
        filled: Fill = (integral.energy_mj, integral.method) if integral else (None, None)
        now_mj, then_mj = reading.counter_mj, before.counter_mj
        if now_mj is None or then_mj is None:
            return self._without_counter(before, reading, filled)
        delta_mj = now_mj - then_mj
        if delta_mj == 0:
            return self._unmoved(before, reading, filled, powers)
        span_us = reading.mono_us - self._moved_us
        if delta_mj < 0 or delta_mj > _most_mj(bound_mw, span_us):
            self.state = CounterState.RESET if delta_mj < 0 else CounterState.IMPLAUSIBLE
            self._rejected_deltas += 1
            self._anchor(reading, now_mj, 0)
            return filled
        if self.state is CounterState.FROZEN or span_us > GAP_US:
            # It may have caught up on what was filled meanwhile, or gone on from where it stood: nobody can tell.
            self.state = CounterState.OK
            self._anchor(reading, now_mj, 0)
            return filled
        self.state = CounterState.OK
        energy_mj = max(0, delta_mj - before.ahead_mj)
        self._anchor(reading, now_mj, max(0, before.ahead_mj - delta_mj))
        return energy_mj, "counter"

    def _without_counter(self, before: Mark, reading: Reading, filled: Fill) -> Fill:
        """The counter is silent now, or was until now."""
        if reading.counter_mj is not None:
            self.state = CounterState.BASELINE
            self._anchor(reading, reading.counter_mj, 0)
        elif before.counter_mj is None or reading.mono_us - self._moved_us > FROZEN_AFTER_US:
            self.state = CounterState.ABSENT
            self._pass(reading, None, 0)
        else:
            self.state = CounterState.WAITING
            self._pass(reading, before.counter_mj, before.ahead_mj + (filled[0] or 0))
        return filled

    def _unmoved(self, before: Mark, reading: Reading, filled: Fill, powers: Powers) -> Fill:
        """The counter did not move: not yet, not drawing, or frozen; what is filled meanwhile is remembered."""
        span_us = reading.mono_us - self._moved_us
        draws = next((power > 0 for power in powers if power is not None), None)
        if draws is False:
            self._anchor(reading, before.counter_mj, before.ahead_mj)
            busy = (reading.utilisation_pct or 0) >= BUSY_PCT
            return (None, None) if busy else (0, "counter")
        if span_us <= STEP_US:
            self._pass(reading, before.counter_mj, before.ahead_mj)
            return 0, "counter"
        frozen = span_us > FROZEN_AFTER_US and draws is True
        if self.state is not CounterState.FROZEN:
            self.state = CounterState.FROZEN if frozen else CounterState.WAITING
        self._pass(reading, before.counter_mj, before.ahead_mj + (filled[0] or 0))
        return filled


def _most_mj(bound_mw: int, span_us: int) -> int:
    """The most energy a GPU can have drawn in `span_us`; the slack is one step of the counter at that power."""
    return bound_mw * (span_us + SLACK_US) // 1_000_000


def _integral(before: Powers, now: Powers, dt_us: int) -> _Integral | None:
    """Trapezoid of the instantaneous power, else of the average power; None when either end is unknown."""
    methods: tuple[EnergyMethod, EnergyMethod] = ("integral_instant", "integral_average")
    for start, end, method in zip(before, now, methods, strict=True):
        if start is not None and end is not None:
            return _Integral(round((start + end) * dt_us / 2_000_000), method)
    return None
