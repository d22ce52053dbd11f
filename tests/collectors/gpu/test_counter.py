"""The energy state machine, worked by hand: 100 W is 100,000 mJ a second."""

from __future__ import annotations

import json

import pytest

from collectors.gpu.counter import CounterState, EnergyMeter, Interval, Mark
from collectors.gpu.reading import Reading

SECOND_US = 1_000_000
T0_US = 1_800_000_000 * SECOND_US
W100 = 100_000
LIMIT_MW = 400_000


class Bench:
    """A meter fed second by second."""

    def __init__(self, meter: EnergyMeter | None = None, at_s: float = 1000.0) -> None:
        self.meter = meter or EnergyMeter(boot_id="boot", driver_version="580")
        self.at_s = at_s

    def feed(
        self,
        counter_mj: int | None,
        instant_mw: int | None = W100,
        average_mw: int | None = W100,
        *,
        after_s: float = 1.0,
        utilisation_pct: int | None = 50,
        limit_mw: int | None = LIMIT_MW,
    ) -> Interval | None:
        self.at_s += after_s
        at_us = round(self.at_s * SECOND_US)
        reading = Reading("u", T0_US + at_us, at_us, counter_mj, instant_mw, average_mw, utilisation_pct)
        return self.meter.observe(reading, limit_mw)


def energy(interval: Interval | None) -> tuple[int | None, str | None]:
    assert interval is not None
    return interval.energy_mj, interval.energy_method


def test_first_reading_is_only_a_baseline():
    bench = Bench()
    assert bench.feed(5000) is None
    assert bench.meter.state is CounterState.BASELINE


def test_delta_of_the_counter_is_the_energy_and_the_integral_stands_beside_it():
    bench = Bench()
    bench.feed(5000)
    interval = bench.feed(5000 + 98_765, instant_mw=200_000)
    assert interval == Interval(T0_US + 1002 * SECOND_US, SECOND_US, 98_765, "counter", 150_000, 200_000, W100)
    assert bench.meter.state is CounterState.OK


def test_lower_counter_is_a_reset_never_a_negative_delta():
    bench = Bench()
    bench.feed(10**9)
    assert energy(bench.feed(7)) == (W100, "integral_instant")
    assert bench.meter.state is CounterState.RESET
    assert energy(bench.feed(7 + W100)) == (W100, "counter")
    assert bench.meter.rejected == 1


def test_delta_beyond_one_and_a_half_limits_is_implausible():
    bench = Bench()
    bench.feed(0)
    most_mj = 600_000 * 11 // 10  # 1.5 x 400 W for a second and a step of 100 ms
    assert energy(bench.feed(most_mj)) == (most_mj, "counter")
    assert energy(bench.feed(2 * most_mj + 1)) == (W100, "integral_instant")
    assert bench.meter.state is CounterState.IMPLAUSIBLE
    assert "jumped" in bench.meter.problems["energy_counter"]


def test_unknown_limit_is_bounded_by_the_largest_module():
    bench = Bench()
    bench.feed(0, limit_mw=None)
    # A GB300 module may draw 2900 W.
    assert energy(bench.feed(2_900_000, 2_900_000, limit_mw=None)) == (2_900_000, "counter")
    assert energy(bench.feed(2_900_000 + 5_000_000, 2_900_000, limit_mw=None))[1] == "integral_instant"


def test_counter_that_stands_still_within_a_step_is_not_yet():
    bench = Bench()
    bench.feed(0)
    assert energy(bench.feed(0, after_s=0.1)) == (0, "counter")
    assert energy(bench.feed(20_000, after_s=0.1)) == (20_000, "counter")


def test_counter_a_second_late_is_filled_and_then_settled_to_the_millijoule():
    bench = Bench()
    bench.feed(0)
    assert energy(bench.feed(0)) == (W100, "integral_instant")
    assert bench.meter.state is CounterState.WAITING
    assert energy(bench.feed(190_000)) == (90_000, "counter")
    assert energy(bench.feed(290_000)) == (W100, "counter")


def test_overfilled_energy_is_taken_off_the_next_intervals():
    bench = Bench()
    bench.feed(0)
    bench.feed(0)  # filled with 100 J
    assert energy(bench.feed(60_000)) == (0, "counter")
    assert energy(bench.feed(160_000)) == (60_000, "counter")


def test_counter_is_frozen_after_three_seconds_of_power():
    bench = Bench()
    bench.feed(0)
    states = []
    for _ in range(5):
        assert energy(bench.feed(0)) == (W100, "integral_instant")
        states.append(bench.meter.state)
    assert states == [CounterState.WAITING] * 3 + [CounterState.FROZEN] * 2


@pytest.mark.parametrize("now_mj", [600_000, 100_000], ids=["catches up", "goes on from where it stood"])
def test_counter_that_thaws_is_not_counted_twice(now_mj: int):
    bench = Bench()
    bench.feed(0)
    filled = sum(energy(bench.feed(0))[0] or 0 for _ in range(5))
    assert energy(bench.feed(now_mj)) == (W100, "integral_instant")
    assert filled == 5 * W100
    assert energy(bench.feed(now_mj + W100)) == (W100, "counter")


def test_slow_counter_without_power_is_not_called_frozen():
    bench = Bench()
    bench.feed(0, None, None)
    for _ in range(4):
        assert energy(bench.feed(0, None, None)) == (None, None)
        assert bench.meter.state is CounterState.WAITING
    assert energy(bench.feed(5 * W100, None, None)) == (5 * W100, "counter")


def test_no_power_no_movement_is_no_energy():
    bench = Bench()
    bench.feed(0, 0, 0, utilisation_pct=0)
    for _ in range(10):
        assert energy(bench.feed(0, 0, 0, utilisation_pct=0)) == (0, "counter")


def test_zero_power_at_load_is_not_believed():
    bench = Bench()
    bench.feed(0, 0, 0)
    assert energy(bench.feed(0, 0, 0)) == (None, None)


def test_without_counter_instantaneous_then_average_power_is_integrated():
    bench = Bench()
    bench.feed(None)
    assert energy(bench.feed(None, 300_000)) == (200_000, "integral_instant")
    assert energy(bench.feed(None, None)) == (W100, "integral_average")
    assert energy(bench.feed(None, None, None)) == (None, None)
    assert bench.meter.state is CounterState.ABSENT


def test_counter_silent_for_a_moment_is_settled_when_it_answers():
    bench = Bench()
    bench.feed(0)
    assert energy(bench.feed(None)) == (W100, "integral_instant")
    assert energy(bench.feed(203_000)) == (103_000, "counter")


def test_power_out_of_bounds_is_refused():
    bench = Bench()
    bench.feed(0)
    interval = bench.feed(W100, -3, 600_001)
    assert interval is not None
    assert (interval.power_instant_mw, interval.power_average_mw, interval.integral_mj) == (None, None, None)
    assert bench.meter.rejected == 2
    assert bench.feed(2 * W100, 600_000, 0).power_instant_mw == 600_000  # type: ignore[union-attr]


def test_power_that_repeats_for_a_minute_is_stuck_only_if_the_load_moved():
    steady, moving = Bench(), Bench()
    for second in range(63):
        still = steady.feed(second * W100)
        stuck = moving.feed(second * W100, utilisation_pct=second)
    assert still is not None and stuck is not None
    assert (still.power_instant_mw, stuck.power_instant_mw) == (W100, None)
    assert energy(stuck) == (W100, "counter")
    assert moving.feed(63 * W100, W100 + 1).power_instant_mw == W100 + 1  # type: ignore[union-attr]


def test_load_that_moved_before_the_power_settled_does_not_make_it_stuck():
    bench = Bench()
    for second in range(5):
        bench.feed(second * W100, W100 + second, utilisation_pct=20 * second)
    for second in range(5, 80):
        row = bench.feed(second * W100, W100, utilisation_pct=50)
    assert row is not None
    assert row.power_instant_mw == W100


def test_gap_up_to_five_seconds_is_an_ordinary_row():
    bench = Bench()
    bench.feed(0)
    assert bench.feed(500_000, after_s=5) == Interval(
        T0_US + 1006 * SECOND_US, 5 * SECOND_US, 500_000, "counter", 500_000, W100, W100
    )


def test_longer_gap_is_bridged_by_the_counter_and_has_no_integral():
    bench = Bench()
    bench.feed(0)
    interval = bench.feed(360_000_000, after_s=3600)
    assert interval == Interval(T0_US + 4601 * SECOND_US, 3600 * SECOND_US, 360_000_000, "bridged", None, W100, W100)
    assert energy(bench.feed(360_000_000 + W100)) == (W100, "counter")


@pytest.mark.parametrize("now_mj", [None, 5, 1000 + 10**12, 1000], ids=["absent", "fell", "absurd", "unmoved"])
def test_gap_without_a_usable_counter_is_bridged_with_energy_unknown(now_mj: int | None):
    bench = Bench()
    bench.feed(1000)
    assert energy(bench.feed(now_mj, after_s=60)) == (None, "bridged")


def test_gap_after_a_frozen_counter_is_bridged_with_energy_unknown():
    bench = Bench()
    for _ in range(6):
        bench.feed(1000)
    assert energy(bench.feed(10_001_000, after_s=100)) == (None, "bridged")


def restarted(bench: Bench, **changes: str | None) -> Bench:
    """A new agent with the old one's state, as JSON keeps it."""
    assert bench.meter.mark is not None
    mark = Mark.from_json(json.loads(json.dumps(bench.meter.mark._asdict())))
    facts = {"boot_id": "boot", "driver_version": "580"} | changes
    return Bench(EnergyMeter(**facts, mark=mark), bench.at_s)  # type: ignore[arg-type]


def test_restarted_agent_bridges_by_the_counter():
    bench = Bench()
    bench.feed(1000)
    again = restarted(bench)
    assert energy(again.feed(1000 + 20 * W100, after_s=20)) == (20 * W100, "bridged")
    assert energy(again.feed(1000 + 21 * W100)) == (W100, "counter")


def test_agent_restarted_at_once_has_an_ordinary_row():
    bench = Bench()
    bench.feed(1000)
    assert energy(restarted(bench).feed(1000 + 3 * W100, after_s=3)) == (3 * W100, "counter")


def test_what_was_filled_before_a_restart_is_not_counted_after_it():
    bench = Bench()
    bench.feed(0)
    bench.feed(0)  # late: filled with 100 J
    assert energy(restarted(bench).feed(11 * W100, after_s=10)) == (10 * W100, "bridged")


def test_other_driver_in_the_same_boot_is_bridged_with_energy_unknown():
    bench = Bench()
    bench.feed(1000)
    assert energy(restarted(bench, driver_version="590").feed(9000, after_s=3600)) == (None, "bridged")


@pytest.mark.parametrize(("gap_s", "bridged"), [(599, True), (601, False)])
def test_other_boot_is_bridged_only_up_to_ten_minutes(gap_s: int, bridged: bool):
    bench = Bench()
    bench.feed(1000)
    again = restarted(bench, boot_id="another")
    interval = again.feed(500_000, after_s=gap_s)
    assert (interval is not None) is bridged
    if interval:
        assert (interval.energy_mj, interval.energy_method) == (None, "bridged")
    assert energy(again.feed(600_000)) == (W100, "counter")


def test_unknown_boot_counts_as_another_one_across_a_restart_but_not_within_a_run():
    bench = Bench(EnergyMeter(boot_id=None, driver_version="580"))
    bench.feed(0)
    assert energy(bench.feed(60 * W100, after_s=60)) == (60 * W100, "bridged")
    assert energy(restarted(bench, boot_id=None).feed(120 * W100, after_s=60)) == (None, "bridged")


def test_wall_clock_may_step_while_dt_stays_true():
    bench = Bench()
    bench.feed(0)
    back = Reading("u", T0_US - 3600 * SECOND_US, round((bench.at_s + 1) * SECOND_US), W100, W100)
    interval = bench.meter.observe(back, LIMIT_MW)
    assert interval is not None
    assert (interval.dt_us, interval.energy_mj) == (SECOND_US, W100)


def test_reading_of_the_same_instant_makes_no_row():
    bench = Bench()
    bench.feed(0)
    assert bench.feed(0, after_s=0) is None


@pytest.mark.parametrize("facts", [{}, {"counter_mj": "x"}, {"counter_mj": 1, "t_us": None}, []])
def test_state_of_another_shape_is_no_state(facts):
    assert Mark.from_json(facts) is None
