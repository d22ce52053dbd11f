"""Epochs of an engine: what counts from 0, what is a rise, and what is only a baseline (design law 5)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.engine.difference import MAX_ABSENT, MAX_INTERVAL_US, Differences, HistogramDelta, Interval
from collectors.engine.page import read_page
from collectors.engine.reading import EngineReading, Histogram
from tests.collectors.engine.pages import Version, Work, vllm_page

SECOND = 1_000_000
T0 = 1_796_151_000 * SECOND
STARTED = T0 - 3_600 * SECOND
BOUNDS = (100_000, 500_000)


def at(seconds: float) -> int:
    return T0 + round(seconds * SECOND)


def engine(
    *,
    label: str = "0",
    model: str | None = "m",
    started_us: int | None = STARTED,
    ttft: tuple[int, ...] | None = None,
    sum_us: int = 0,
    bounds_us: tuple[int, ...] = BOUNDS,
    **counters: int,
) -> EngineReading:
    """A reading; `ttft` are counts per bucket."""
    histograms: dict[Any, Histogram] = {} if ttft is None else {"ttft": Histogram(bounds_us, ttft, sum_us)}
    return EngineReading("vllm", label, model, None, started_us, counters, histograms)


def looked(*readings: EngineReading, seconds: float = 0) -> Differences:
    """After a first look, which is a baseline."""
    differences = Differences()
    assert differences.look(readings, at(seconds)) == []
    return differences


def only(intervals: list[Interval]) -> Interval:
    (interval,) = intervals
    return interval


def test_the_first_look_ever_is_a_baseline() -> None:
    differences = looked(engine(prompt_tokens=1_000_000))
    interval = only(differences.look([engine(prompt_tokens=1_000_007)], at(5)))
    assert (interval.key, interval.t_us, interval.dt_us) == (("0", "m"), at(5), 5 * SECOND)
    assert interval.counters == {"prompt_tokens": 7}


def test_a_failed_look_first_leaves_the_next_one_a_baseline() -> None:
    differences = Differences()
    differences.missed(at(0))
    assert differences.look([engine(prompt_tokens=50)], at(5)) == []


def test_an_engine_that_an_earlier_look_did_not_show_counts_from_0() -> None:
    differences = looked(engine(label="0", prompt_tokens=10))
    intervals = differences.look(
        [engine(label="0", prompt_tokens=10), engine(label="1", prompt_tokens=9, started_us=None)], at(5)
    )
    assert [(one.key, one.counters["prompt_tokens"], one.dt_us) for one in intervals] == [
        (("0", "m"), 0, 5 * SECOND),
        (("1", "m"), 9, 5 * SECOND),
    ]


def test_an_engine_after_a_refused_connection_counts_from_0_since_its_start() -> None:
    differences = Differences()
    differences.missed(at(0), refused=True)
    differences.missed(at(5))  # timed out: says nothing
    interval = only(differences.look([engine(prompt_tokens=9, started_us=at(3))], at(10)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 9}, 7 * SECOND)


def test_a_process_that_was_loading_while_it_refused_counts_since_the_refusal() -> None:
    differences = Differences()
    differences.missed(at(0), refused=True)
    interval = only(differences.look([engine(prompt_tokens=9, started_us=at(-40))], at(5)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 9}, 5 * SECOND)


def test_a_later_start_is_a_new_process_even_when_nothing_fell() -> None:
    differences = looked(engine(prompt_tokens=10))
    interval = only(differences.look([engine(prompt_tokens=500, started_us=at(2))], at(5)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 500}, 3 * SECOND)


def test_a_start_that_moves_by_less_than_a_second_is_the_same_process() -> None:
    differences = looked(engine(prompt_tokens=10))
    interval = only(differences.look([engine(prompt_tokens=12, started_us=STARTED + 900_000)], at(5)))
    assert interval.counters == {"prompt_tokens": 2}


def test_a_start_that_is_missing_once_changes_nothing() -> None:
    differences = looked(engine(prompt_tokens=10))
    assert only(differences.look([engine(prompt_tokens=12, started_us=None)], at(5))).counters["prompt_tokens"] == 2
    again = only(differences.look([engine(prompt_tokens=3, started_us=at(7))], at(10)))
    assert (again.counters["prompt_tokens"], again.dt_us) == (3, 3 * SECOND)


def test_another_process_that_ran_all_along_behind_the_address_is_only_a_baseline() -> None:
    # Two replicas behind one address, each with hours of tokens: their sums are nobody's delta.
    mine, other = engine(prompt_tokens=1_000), engine(prompt_tokens=900_000, started_us=STARTED - 100 * SECOND)
    differences = looked(mine)
    for seconds in (5, 10, 15, 20):
        assert differences.look([other if seconds % 10 else mine], at(seconds)) == []
    assert only(differences.look([replace(mine, counters={"prompt_tokens": 1_003})], at(25))).counters == {
        "prompt_tokens": 3
    }


@pytest.mark.parametrize(
    "fallen",
    [
        engine(started_us=None, prompt_tokens=3, generated_tokens=99, ttft=(9, 9, 9)),
        engine(started_us=None, prompt_tokens=99, generated_tokens=99, ttft=(9, 0, 9)),
        engine(started_us=None, prompt_tokens=99, generated_tokens=99, ttft=(1, 0), bounds_us=(7,)),
    ],
)
def test_a_count_or_a_bucket_that_falls_is_a_new_process(fallen: EngineReading) -> None:
    differences = looked(engine(started_us=None, prompt_tokens=10, generated_tokens=20, ttft=(1, 1, 1)))
    interval = only(differences.look([fallen], at(5)))
    assert interval.counters == fallen.counters
    assert interval.histograms["ttft"].counts == fallen.histograms["ttft"].counts
    assert interval.dt_us == 5 * SECOND


def test_a_sum_of_times_that_falls_is_a_stepped_clock_and_no_new_process() -> None:
    differences = looked(engine(prompt_tokens=10, queue_us=900, ttft=(1, 1, 1), sum_us=900))
    interval = only(differences.look([engine(prompt_tokens=12, queue_us=100, ttft=(1, 2, 1), sum_us=100)], at(5)))
    assert interval.counters == {"prompt_tokens": 2}
    assert interval.histograms == {"ttft": HistogramDelta((0, 1, 0), None)}
    after = only(differences.look([engine(prompt_tokens=12, queue_us=150, ttft=(1, 2, 1), sum_us=150)], at(10)))
    assert (after.counters["queue_us"], after.histograms["ttft"].sum_us) == (50, 50)


def test_an_engine_that_a_complete_page_no_longer_shows_is_a_new_and_idle_process() -> None:
    # V0: after a restart it shows nothing until its first request, and it has no start time.
    differences = looked(engine(started_us=None, prompt_tokens=10))
    assert differences.look([], at(5)) == []
    interval = only(differences.look([engine(started_us=None, prompt_tokens=400)], at(10)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 400}, 5 * SECOND)


def test_an_engine_that_comes_back_with_the_same_start_never_went() -> None:
    differences = looked(engine(prompt_tokens=10))
    differences.look([], at(5))
    interval = only(differences.look([engine(prompt_tokens=14)], at(10)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 4}, 10 * SECOND)


def test_a_gap_is_covered_by_the_next_interval() -> None:
    differences = looked(engine(prompt_tokens=10))
    for seconds in (5, 10):
        differences.missed(at(seconds))
    differences.missed(at(15), refused=True)  # a proxy that restarts refuses as well
    interval = only(differences.look([engine(prompt_tokens=90)], at(20)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 80}, 20 * SECOND)


def test_a_column_that_appears_counts_from_0() -> None:
    differences = looked(engine(prompt_tokens=10))
    interval = only(differences.look([engine(prompt_tokens=11, finished_stop=2, ttft=(2, 0, 0), sum_us=7)], at(5)))
    assert interval.counters == {"prompt_tokens": 1, "finished_stop": 2}
    assert interval.histograms == {"ttft": HistogramDelta((2, 0, 0), 7)}


def test_a_column_that_vanishes_is_unknown_and_not_forgotten() -> None:
    differences = looked(engine(prompt_tokens=10, generated_tokens=5, ttft=(1, 0, 0)))
    interval = only(differences.look([engine(prompt_tokens=11)], at(5)))
    assert (interval.counters, interval.histograms) == ({"prompt_tokens": 1}, {})
    back = only(differences.look([engine(prompt_tokens=12, generated_tokens=8, ttft=(1, 1, 0))], at(10)))
    assert back.counters == {"prompt_tokens": 1, "generated_tokens": 3}
    assert back.histograms["ttft"].counts == (0, 1, 0)


def test_other_bounds_make_the_histogram_unknown_once() -> None:
    differences = looked(engine(prompt_tokens=1, ttft=(1, 1, 1)))
    changed = engine(prompt_tokens=2, ttft=(3, 2), bounds_us=(250_000,))
    interval = only(differences.look([changed], at(5)))
    assert (interval.counters, interval.histograms) == ({"prompt_tokens": 1}, {})
    after = only(differences.look([engine(prompt_tokens=2, ttft=(3, 4), bounds_us=(250_000,))], at(10)))
    assert after.histograms["ttft"].counts == (0, 2)


def test_a_clock_that_is_set_back_loses_no_token() -> None:
    differences = looked(engine(prompt_tokens=10), seconds=100)
    assert differences.look([engine(prompt_tokens=15)], at(100)) == []
    assert differences.look([engine(prompt_tokens=18)], at(40)) == []
    interval = only(differences.look([engine(prompt_tokens=20)], at(45)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 10}, 5 * SECOND)
    differences.missed(at(10), refused=True)
    interval = only(differences.look([engine(prompt_tokens=21)], at(12)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 1}, 2 * SECOND)


def test_a_start_in_the_future_does_not_bend_the_interval() -> None:
    differences = looked(engine(prompt_tokens=10))
    interval = only(differences.look([engine(prompt_tokens=7, started_us=at(500))], at(5)))
    assert (interval.counters, interval.dt_us) == ({"prompt_tokens": 7}, 5 * SECOND)


def test_a_gap_of_more_than_a_year_is_not_bridged() -> None:
    differences = looked(engine(prompt_tokens=10))
    later = T0 + MAX_INTERVAL_US + 1
    assert differences.look([engine(prompt_tokens=90)], later) == []
    assert only(differences.look([engine(prompt_tokens=95)], later + SECOND)).counters == {"prompt_tokens": 5}


def test_what_no_row_can_hold_is_unknown() -> None:
    differences = looked(engine(started_us=None, prompt_tokens=1, finished_stop=1))
    huge = engine(started_us=None, prompt_tokens=2**62, finished_stop=2**40, ttft=(2**31, 0, 0))
    interval = only(differences.look([huge], at(5)))
    assert (interval.counters, interval.histograms) == ({"prompt_tokens": 2**62 - 1}, {})


def test_the_gauges_of_the_moment_come_along() -> None:
    differences = looked(engine(prompt_tokens=1))
    now = replace(engine(prompt_tokens=1), running=3, waiting=2, kv_usage_ppm=500_000)
    assert only(differences.look([now], at(5))).reading is now


def test_the_state_survives_a_restart_of_the_agent() -> None:
    differences = looked(engine(prompt_tokens=10, ttft=(1, 0, 0), sum_us=5), engine(label="1", model=None))
    differences.look([engine(prompt_tokens=10, ttft=(1, 0, 0), sum_us=5)], at(5))
    restored = Differences(json.loads(json.dumps(differences.state())))
    assert restored.state() == differences.state()
    readings = [engine(prompt_tokens=17, ttft=(1, 2, 0), sum_us=9), engine(label="1", model=None, prompt_tokens=3)]
    expected = differences.look(readings, at(60))
    assert restored.look(readings, at(60)) == expected
    assert [(one.counters, one.dt_us) for one in expected] == [
        ({"prompt_tokens": 7}, 55 * SECOND),
        ({"prompt_tokens": 3}, 60 * SECOND),
    ]
    assert Differences(Differences().state()).look([engine(prompt_tokens=1)], at(0)) == []


@pytest.mark.parametrize("state", [[], {"engines": "x"}, {"engines": [{"label": "0"}]}, "state"])
def test_a_state_of_another_kind_is_refused(state: object) -> None:
    with pytest.raises(ValueError, match="no state of an engine's counters"):
        Differences(state)


def test_engines_that_went_do_not_pile_up() -> None:
    differences = looked()
    for number in range(3):
        differences.look([engine(label=f"{number}-{n}") for n in range(MAX_ABSENT)], at(number + 1))
    assert len(differences.state()["engines"]) == 2 * MAX_ABSENT


def test_pages_of_a_v0_across_a_restart() -> None:
    differences = Differences()
    assert differences.look(read_page(vllm_page("0.8.5-v0")), at(0)) == []
    work = Work(prompt_tokens=100, finished={"length": 1}, ttft=[0.2])
    first = only(differences.look(read_page(vllm_page("0.8.5-v0", work)), at(5)))
    assert (first.counters["prompt_tokens"], first.counters["finished_length"]) == (100, 1)
    assert sum(first.histograms["ttft"].counts) == 1
    assert differences.look(read_page(vllm_page("0.8.5-v0", Work())), at(10)) == []
    again = Work(prompt_tokens=300, finished={"stop": 2})
    second = only(differences.look(read_page(vllm_page("0.8.5-v0", again)), at(15)))
    assert (second.counters["prompt_tokens"], second.counters["finished_stop"], second.dt_us) == (300, 2, 5 * SECOND)


def test_an_upgrade_across_a_rename_loses_no_token() -> None:
    differences = Differences()
    versions: tuple[Version, ...] = ("0.8.5", "0.10.2", "0.32.0")
    total = 0
    for number, version in enumerate(versions):
        # Each version is a process of its own that starts 1 s after the last look and serves 500 tokens, then 700.
        started_s = (at(number * 10 - 4)) / SECOND
        for seconds, tokens in ((number * 10, 500), (number * 10 + 5, 700)):
            work = Work(prompt_tokens=tokens, cached_tokens=160)
            intervals = differences.look(read_page(vllm_page(version, work, started_s=started_s)), at(seconds))
            total += sum(one.counters["prompt_tokens"] for one in intervals)
    # The first 500 were there at the first look: 200 + 700 + 700.
    assert total == 1_600


COLUMNS = ("prompt_tokens", "generated_tokens", "finished_stop")


@dataclass
class Play:
    """One simulated engine that is looked at, and both sums.

    told: what the intervals said. last: of the present process the last that a look showed, less the baseline of the
    first look ever; scraped: the same of the processes before it.
    """

    tells_start: bool
    differences: Differences = field(default_factory=Differences)
    now_us: int = T0
    started_us: int = T0
    counters: Counter[str] = field(default_factory=Counter)
    buckets: list[int] = field(default_factory=lambda: [0, 0, 0])
    told: Counter[str] = field(default_factory=Counter)
    last: Counter[str] = field(default_factory=Counter)
    scraped: Counter[str] = field(default_factory=Counter)

    def work(self, amount: int, bucket: int) -> None:
        for weight, column in enumerate(COLUMNS, start=1):
            self.counters[column] += amount * weight
        self.buckets[bucket] += amount

    def look(self, hidden: frozenset[str] = frozenset()) -> None:
        shown = {name: self.counters[name] for name in COLUMNS if name not in hidden}
        ttft = None if "ttft" in hidden else tuple(self.buckets)
        reading = engine(started_us=self.started_us if self.tells_start else None, ttft=ttft, **shown)
        for interval in self.differences.look([reading], self.now_us):
            assert interval.dt_us > 0
            assert all(delta >= 0 for delta in interval.counters.values())
            self.told.update(interval.counters)
            for histogram in interval.histograms.values():
                assert min(histogram.counts) >= 0
                self.told["ttft"] += sum(histogram.counts)
        self.last.update({name: value - self.last[name] for name, value in shown.items()})
        if ttft is not None:
            self.last["ttft"] = sum(ttft)

    def restart(self, bucket: int) -> None:
        if not self.tells_start:
            # Only a fall can tell: the old process must have done something, and a look must see the new one while it
            # has done less.
            self.work(1, bucket)
            self.look()
        self.scraped.update(self.last)
        self.last.clear()
        self.now_us += SECOND
        self.started_us = self.now_us
        self.counters.clear()
        self.buckets = [0, 0, 0]
        if not self.tells_start:
            self.now_us += SECOND
            self.look()

    def step(self, action: str, amount: int, bucket: int, hidden: frozenset[str]) -> None:
        self.now_us += 2 * SECOND
        match action:
            case "work":
                self.work(amount, bucket)
            case "restart":
                self.restart(bucket)
            case "miss" | "refuse":
                self.differences.missed(self.now_us, refused=action == "refuse")
            case "respool":
                self.differences = Differences(json.loads(json.dumps(self.differences.state())))
            case _:
                self.look(hidden)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["look", "look", "look", "work", "work", "restart", "miss", "refuse", "respool"]),
        st.integers(0, 50),
        st.integers(0, 2),
        st.frozensets(st.sampled_from([*COLUMNS, "ttft"]), max_size=2),
    ),
    max_size=40,
)


def played(steps: list[tuple[str, int, int, frozenset[str]]], *, tells_start: bool) -> Play:
    """The steps between two looks that show all columns."""
    play = Play(tells_start)
    for step in [("look", 0, 0, frozenset[str]()), *steps, ("look", 0, 0, frozenset[str]())]:
        play.step(*step)
    return play


@given(STEPS)
def test_the_deltas_add_up_to_all_that_was_scraped(steps: list[tuple[str, int, int, frozenset[str]]]) -> None:
    play = played(steps, tells_start=True)
    assert play.told == play.scraped + play.last


@given(STEPS)
def test_they_add_up_without_start_times_where_a_fall_tells(steps: list[tuple[str, int, int, frozenset[str]]]) -> None:
    play = played(steps, tells_start=False)
    assert play.told == play.scraped + play.last


READINGS = st.builds(
    engine,
    label=st.sampled_from(["", "0", "1"]),
    model=st.sampled_from([None, "m"]),
    started_us=st.none() | st.integers(at(-50), at(50)),
    ttft=st.none() | st.tuples(*[st.integers(0, 2**40)] * 3),
    sum_us=st.integers(0, 2**62),
    prompt_tokens=st.integers(0, 2**63 - 1),
    finished_stop=st.integers(0, 2**63 - 1),
    queue_us=st.integers(0, 2**63 - 1),
)


@given(st.lists(st.tuples(st.integers(-20, 40), st.lists(READINGS, max_size=3)), max_size=12))
def test_nothing_is_ever_negative_whatever_is_read(looks: list[tuple[int, list[EngineReading]]]) -> None:
    differences = Differences()
    for seconds, readings in looks:
        for interval in differences.look(readings, at(seconds)):
            assert 0 < interval.dt_us <= MAX_INTERVAL_US
            assert all(0 <= delta < 2**63 for delta in interval.counters.values())
            assert interval.counters.get("finished_stop", 0) < 2**31
            for histogram in interval.histograms.values():
                assert all(0 <= count < 2**31 for count in histogram.counts)
        differences = Differences(json.loads(json.dumps(differences.state())))
