"""The past is filled, and the present goes on from there."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.simulator.push import Feed
from app.simulator.run import fill_past, follow, past
from tests.simulator.wires import (
    DAY_S,
    HUB,
    SECOND_US,
    WORLD,
    HubAdapter,
    node_named,
    of_the_day,
    rows_of,
    session_with,
)  # fmt: skip


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_s += seconds


def feeds(*names: str) -> tuple[list[Feed], list[HubAdapter]]:
    adapters = [HubAdapter() for _ in names]
    made = [
        Feed(WORLD, node_named(WORLD, name), HUB, session=session_with(adapter))
        for name, adapter in zip(names, adapters, strict=True)
    ]
    return made, adapters


def test_a_week_begins_with_a_whole_hour_that_the_hub_still_keeps() -> None:
    now_s = of_the_day(14, 37, 42)
    # 7 days before 14:37:42 the hub keeps no more; with ten minutes for the way the next whole hour is 15:00
    assert past(now_s, 7.0) == (of_the_day(15) - 7 * DAY_S, of_the_day(14, 37))
    # 14:52 + 10 min is past 15:00
    assert past(of_the_day(14, 52), 7.0) == (of_the_day(16) - 7 * DAY_S, of_the_day(14, 52))


def test_no_past_is_no_rows() -> None:
    start_s, end_s = past(of_the_day(14, 37), 0.0)
    assert start_s == end_s == of_the_day(14, 37)
    made, adapters = feeds("h100-1")
    assert fill_past(made, start_s, end_s, lambda _seconds: None) == 0
    assert adapters[0].batches == []


def test_the_past_of_every_node_is_sent_in_order_and_its_progress_told() -> None:
    made, adapters = feeds("h100-1", "h100-4", "gamer-5")
    told: list[int] = []
    rows = fill_past(made, of_the_day(9), of_the_day(11), told.append)
    # two hours: 120 minutes x (2 GPUs + 2 engines), x (2 + 1), and 100 minutes x (2 + 1)
    assert rows == 480 + 360 + 300
    assert sum(told) == 3 * 2 * 3600
    for adapter in adapters:
        times = [batch.gpu_samples.t_us for batch in adapter.batches if batch.gpu_samples]
        assert all(max(one) < min(other) for one, other in pairwise(times))
    # gamer-5 leaves at 10:20 and is another boot from then on
    assert [len(adapter.batches) for adapter in adapters] == [1, 1, 2]


def test_the_present_is_sent_every_five_seconds_from_where_the_past_ended() -> None:
    made, adapters = feeds("h100-1", "gamer-1")
    # the past took 13 s to send
    start_s, clock = of_the_day(9), Clock(of_the_day(9, 0, 13) + 0.4)
    follow(made, start_s, clock=clock, sleep=clock.sleep, until_s=of_the_day(9, 0, 30))
    for adapter in adapters:
        ends_s = [max(batch.gpu_samples.t_us) // SECOND_US for batch in adapter.batches if batch.gpu_samples]
        assert ends_s == [of_the_day(9, 0, second) for second in (10, 15, 20, 25, 30)]
        rows = [row for batch in adapter.batches for row in rows_of(batch.gpu_samples, "gpu") if row["gpu"] == 0]
        assert [row["t_us"] for row in rows] == [(start_s + second) * SECOND_US for second in range(1, 31)]
    # up to the next multiple of five seconds
    assert clock.waits[0] == pytest.approx(1.6)


def test_a_long_pause_is_caught_up_in_pieces() -> None:
    made, adapters = feeds("h100-4")
    clock = Clock(of_the_day(9, 25))
    follow(made, of_the_day(9), clock=clock, sleep=clock.sleep, until_s=of_the_day(9, 25))
    lengths_s = [len(batch.gpu_samples) // 2 for batch in adapters[0].batches if batch.gpu_samples]
    assert lengths_s == [600, 600, 300]


def test_a_clock_that_is_set_back_sends_nothing_twice() -> None:
    made, adapters = feeds("h100-4")
    clock = Clock(of_the_day(9) - 7.0)
    follow(made, of_the_day(9), clock=clock, sleep=clock.sleep, until_s=of_the_day(9, 0, 5))
    assert [batch.sequence for batch in adapters[0].batches] == [1]
    # never longer than a slot at once
    assert max(clock.waits) <= 5.0
