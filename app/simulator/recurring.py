"""Events that come back: a daily outage, an hour of heat, a restart. Pure arithmetic on UTC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.simulator.arrays import Ints

MINUTE_S = 60
DAY_S = 86_400
DAY_MINUTES = DAY_S // MINUTE_S
SLOT_S = 5


@dataclass(frozen=True)
class Recurring:
    """Every `period_s` seconds, from `offset_s` after UTC midnight of 1970 on, for `length_s`.

    It begins with a minute and lasts whole slots of five seconds, so a minute is touched from its start or not at all.
    """

    period_s: int
    offset_s: int
    length_s: int

    def __post_init__(self) -> None:
        if self.period_s % MINUTE_S or self.offset_s % MINUTE_S or self.length_s % SLOT_S:
            raise ValueError(f"an event that begins with a minute and lasts whole slots of {SLOT_S} s, not {self}")

    def covered_s(self, minutes: Ints) -> Ints:
        """Seconds at the start of each minute that the event takes: 0 to 60."""
        since_s = (minutes * MINUTE_S - self.offset_s) % self.period_s
        return np.clip(self.length_s - since_s, 0, MINUTE_S)

    def begins(self, time_s: int) -> int:
        """How many times it had begun since 1970."""
        return (time_s - self.offset_s) // self.period_s + 1

    def last_begin_s(self, time_s: int) -> int:
        return time_s - (time_s - self.offset_s) % self.period_s

    def active(self, time_s: int) -> bool:
        return time_s - self.last_begin_s(time_s) < self.length_s

    def begins_within(self, start_s: int, end_s: int) -> list[int]:
        """Moments within (start, end) at which it begins."""
        return [begin for begin in range(self.last_begin_s(start_s), end_s, self.period_s) if begin > start_s]


def covered_s(events: tuple[Recurring, ...], minutes: Ints) -> Ints:
    """Seconds at the start of each minute that any of the events takes."""
    taken = np.zeros(len(minutes), np.int64)
    for event in events:
        taken = np.maximum(taken, event.covered_s(minutes))
    return taken
