"""Laws of the energy meter under random resets, frozen spells, silences, jumps, gaps and restarts.

The simulated power is linear between readings, so the trapezoid is exact, and the counter is exact where it works:
whatever the meter books must add up to the truth, to the rounding of a millijoule per row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.gpu.counter import EnergyMeter, Interval, Mark
from collectors.gpu.reading import Reading

LIMIT_MW = 1_000_000

# How many ticks the counter stands still, and whether it then catches up.
STILL = {"late": (1, True), "frozen, catches up": (8, True), "frozen, goes on": (8, False)}
EVENTS = ("run", "reset", *STILL, "silent", "jump", "gap", "blind", "restart")


@dataclass
class World:
    """A GPU that draws power, a counter with faults, and the meter that watches."""

    at_us: int = 10**9
    power_mw: int = 300_000
    true_mj: float = 0.0
    offset_mj: float = 1e9
    frozen_at_mj: float | None = None
    meter: EnergyMeter = field(default_factory=lambda: EnergyMeter(boot_id="b", driver_version="d"))
    rows: list[Interval] = field(default_factory=list)
    first: bool = True

    def step(self, dt_us: int, power_mw: int, *, silent: bool = False, blind: bool = False) -> None:
        """Let time pass, then read."""
        self.true_mj += (self.power_mw + power_mw) / 2 * dt_us / 1e6
        self.at_us += dt_us
        self.power_mw = power_mw
        counter = self.frozen_at_mj if self.frozen_at_mj is not None else self.true_mj + self.offset_mj
        power = None if blind else power_mw
        reading = Reading("u", 10**15 + self.at_us, self.at_us, None if silent else int(counter), power)
        row = self.meter.observe(reading, LIMIT_MW)
        if self.first:
            self.true_mj, self.first = 0.0, False
            self.offset_mj = counter
        if row is not None:
            self.rows.append(row)

    def freeze(self) -> None:
        """The counter stands still."""
        self.frozen_at_mj = self.true_mj + self.offset_mj

    def thaw(self, *, catch_up: bool) -> None:
        """It moves again, from where the energy is or from where it stood."""
        if self.frozen_at_mj is not None and not catch_up:
            self.offset_mj = self.frozen_at_mj - self.true_mj
        self.frozen_at_mj = None

    def restart(self) -> None:
        """A new agent with the old one's state."""
        mark = self.meter.mark
        kept = Mark.from_json(json.loads(json.dumps(mark._asdict()))) if mark else None
        self.meter = EnergyMeter(boot_id="b", driver_version="d", mark=kept)


steps = st.tuples(st.integers(500_000, 1_500_000), st.integers(20_000, LIMIT_MW))
episodes = st.lists(st.tuples(st.sampled_from(EVENTS), st.lists(steps, min_size=1, max_size=12)), max_size=12)


def play(story) -> World:
    world = World()
    world.step(1_000_000, 300_000)
    for event, beats in story:
        _play(world, event, beats)
    world.step(1_000_000, 300_000)
    return world


def _play(world: World, event: str, beats) -> None:
    if event == "reset":
        # A counter that restarts and is past its old value at the next reading cannot be told from one that went on.
        if world.true_mj + world.offset_mj > 2 * LIMIT_MW:
            world.offset_mj = -world.true_mj
    elif event == "jump":
        world.offset_mj += 1e8
    elif event == "gap":
        world.step(6_000_000 + 100 * beats[0][0], beats[0][1])
    elif event == "restart":
        world.restart()
    elif event in STILL:
        ticks, catch_up = STILL[event]
        world.freeze()
        for _ in range(ticks):
            world.step(*beats[0])
        world.thaw(catch_up=catch_up)
    for dt_us, power_mw in beats:
        world.step(dt_us, power_mw, silent=event == "silent", blind=event == "blind")
    if event == "silent":
        world.step(*beats[0])  # it answers with what is true, not with what is late: no reader could tell those apart


@settings(max_examples=400, deadline=None)
@given(episodes)
def test_energy_is_never_negative_and_never_counted_twice(story):
    world = play(story)
    known = [row.energy_mj for row in world.rows if row.energy_mj is not None]
    assert all(energy_mj >= 0 for energy_mj in known)
    assert sum(known) <= world.true_mj + len(world.rows) + 1


@settings(max_examples=400, deadline=None)
@given(episodes)
def test_where_no_row_is_unknown_the_rows_add_up_to_the_truth(story):
    world = play(story)
    if all(row.energy_mj is not None for row in world.rows):
        assert abs(sum(row.energy_mj or 0 for row in world.rows) - world.true_mj) <= len(world.rows) + 1


@settings(max_examples=200, deadline=None)
@given(episodes)
def test_rows_follow_each_other_without_hole_or_overlap(story):
    world = play(story)
    assert sum(row.dt_us for row in world.rows) == world.rows[-1].t_us - 10**15 - (10**9 + 1_000_000)
    assert all(later.t_us - later.dt_us == row.t_us for row, later in pairwise(world.rows))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**64)), max_size=30), st.lists(st.integers(-9, 2**33)))
def test_no_counter_and_no_power_whatever_gives_an_energy_beyond_the_bound(counters, powers):
    meter = EnergyMeter(boot_id="b", driver_version="d")
    for second, counter in enumerate(counters):
        power = powers[second % len(powers)] if powers else None
        at_us = (second + 1) * 1_000_000
        row = meter.observe(Reading("u", at_us, at_us, counter, power, power), LIMIT_MW)
        assert row is None or row.energy_mj is None or 0 <= row.energy_mj <= 1.5 * LIMIT_MW * 5.1
