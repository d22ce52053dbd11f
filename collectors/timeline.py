"""Places rows in time when the node's clock is set: no moment of the clock is ever told twice.

A row covers (t - dt, t]: t is the wall clock's, dt comes from a clock that is never set. Rows arrive in the order in
which they were measured. For each series (a GPU, an engine, or the host):

* The clock agrees, or was set forward: the row stays as it is; a step forward leaves a gap between rows.
* The clock is behind the last row by up to MAX_SLEW_US: the row follows the last one without a gap, and dt is shortened
  by at most 1% until the clock has caught up. Energies stay whole; power as energy / dt is off by that 1%.
* It is further behind: the earlier time was wrong, so the row takes the new time at once. Where the new time comes past
  moments that were told under the old one, rows are left out and counted. A row that reaches past such moments by half
  of itself or more, as one that bridges a gap may, is cut to the part that is new, with its whole energy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from collectors.samples import EngineSamples, GpuSamples, HostSamples

MAX_SLEW_US = 60_000_000
_SLEW = 100  # dt gives up one part in this many
_MAX_TOLD = 20

TableT = TypeVar("TableT", GpuSamples, HostSamples, EngineSamples)


@dataclass
class Series:
    """Where one series has got to: the run of rows (start_us, last_us], and runs told before the clock was set."""

    start_us: int | None = None
    last_us: int | None = None
    told: list[tuple[int, int]] = field(default_factory=list)

    def place(self, t_us: int, dt_us: int) -> tuple[int, int] | None:
        """(t, dt) of the next row, or None if its time was told before."""
        begin_us = t_us - dt_us
        if self.start_us is None or self.last_us is None:
            self.start_us, self.last_us = begin_us, t_us
            return t_us, dt_us
        behind_us = self.last_us - begin_us
        if abs(behind_us) > MAX_SLEW_US:
            self._begin_run(self.start_us, self.last_us, begin_us)
        elif behind_us > 0:
            dt_us = max(dt_us - min(behind_us, dt_us // _SLEW), 1)
            t_us = self.last_us + dt_us
        self.last_us = t_us
        return self._past_told(t_us, dt_us)

    def _begin_run(self, start_us: int, last_us: int, begin_us: int) -> None:
        self.told.append((start_us, last_us))
        if len(self.told) > _MAX_TOLD:
            self.told.remove(min(self.told, key=lambda span: span[1]))
        self.start_us = begin_us

    def _past_told(self, t_us: int, dt_us: int) -> tuple[int, int] | None:
        ends = [min(end, t_us) for start, end in self.told if start < t_us and end > t_us - dt_us]
        left_us = t_us - max(ends, default=t_us - dt_us)
        return (t_us, left_us) if left_us * 2 >= dt_us else None


class Timeline:
    """All series of a node. `state` goes into the spool with the rows, so that a restart goes on from there."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._series: dict[str, Series] = {}
        for name, (start_us, last_us, told) in (state or {}).items():
            self._series[name] = Series(start_us, last_us, [(start, end) for start, end in told])

    def state(self) -> dict[str, Any]:
        """Series name -> [start, last, [[start, end], ...]] in UTC microseconds, as JSON can hold it."""
        return {name: [s.start_us, s.last_us, [list(span) for span in s.told]] for name, s in self._series.items()}

    def place(self, table: TableT, series: Sequence[str]) -> tuple[TableT, int]:
        """`table` with its rows placed; series: the name of each row's series. Returns also how many were left out."""
        kept: list[int] = []
        t_us: list[int] = []
        dt_us: list[int] = []
        for row, name in enumerate(series):
            placed = self._series.setdefault(name, Series()).place(table.t_us[row], table.dt_us[row])
            if placed is not None:
                kept.append(row)
                t_us.append(placed[0])
                dt_us.append(placed[1])
        columns = {name: [column[row] for row in kept] for name, column in table.__dict__.items()}
        placed_table = table.model_copy(update={**columns, "t_us": t_us, "dt_us": dt_us})
        return placed_table, len(series) - len(kept)
