"""What replicas did at which load: minutes by step of load, their latencies, and what is left out, counted."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.store import load_bins as module
from app.store.database import Store
from app.store.load_bins import LoadBins, load_bins
from app.store.moment import moment
from tests.batches import (
    CARD,
    DAY,
    HOUR,
    MINUTE,
    MODEL,
    SECOND,
    T0,
    Clock,
    Row,
    at,
    batch,
    engine,
    gpu,
    put,
    writing,
)
from tests.store.test_accounts import join_fleet
from tests.store.test_replica_loads import PAIR, minutes
from tests.store.test_rollup import AFTER, roll_up_all

WARM = 5  # minutes of start-up
TYPE = {"fleet": "h100", "model": MODEL, "gpu_name": CARD, "replica_gpus": 2, "simulated": False}


def scrapes(first: int, tokens: Sequence[int | None], number: int = 0, **values: Any) -> list[Row]:
    """A minute each: a fifth of the tokens generated, and a request for each 100 of them."""
    return [
        {"engine": number, "t_us": T0 + (first + place + 1) * MINUTE, "dt_us": MINUTE,
         "prompt_tokens": None if made is None else made - made // 5,
         "generated_tokens": None if made is None else made // 5,
         "finished_stop": None if made is None else made // 100, "finished_length": 0,
         "running": 4 if made else 0, "waiting": 0, **values}
        for place, made in enumerate(tokens)
    ]  # fmt: skip


def take(store: Store, rows: list[Row], engine_rows: list[Row], fleet: str | None = "h100", **given: Any) -> None:
    known = {"gpus": [gpu(index=0), gpu(index=1)], "engines": [engine(gpus=PAIR)]}
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        put(taking, batch(1, rows=rows, engine_rows=engine_rows, **{**known, **given}))
    roll_up_all(store)
    if fleet is not None:
        join_fleet(store, "node-7", fleet)


def bins(store: Store, first: int = T0, end: int = T0 + HOUR) -> LoadBins:
    with moment(store) as reader:
        return load_bins(reader, at(first), at(end))


def left_out(store: Store) -> dict[str, float]:
    return {row["reason"]: row["minutes"] for row in bins(store).left_out}


def step_of(tokens_per_s: float) -> int:
    return math.floor(32 * math.log2(tokens_per_s))


def test_a_step_has_the_sums_of_its_stretches(store: Store) -> None:
    """Minutes 5 to 9: 6,000 tokens each = 100/s, 300 + 200 W; 10 to 14: twice that at 400 + 200 W."""
    loads = [0] * WARM + [6000] * 5 + [12_000] * 5
    timed = {"prefill_us": 4_000_000, "decode_us": 96_000_000}
    take(store, minutes(0, [[80] * 5 + [300] * 5 + [400] * 5, [200] * 15]), scrapes(0, loads, **timed))
    slow, fast = bins(store).steps
    assert slow.items() >= {
        **TYPE, "step": step_of(100), "is_throttled": False, "engines": 1, "minutes": 5, "seconds": 300,
        "queued_s": 0, "finished": 300, "failed": 0, "prompt_tokens": 24_000, "generated_tokens": 6_000,
        "running_s": 4 * 300, "gauged_s": 300, "prefill_us": 20e6, "decode_us": 480e6, "timed_prompt_tokens": 24_000,
        "timed_generated_tokens": 6_000, "power_ws": 500 * 300.0,
    }.items()  # fmt: skip
    # 32 steps to the double of a load: log2(200) = log2(100) + 1
    assert (fast["step"], fast["power_ws"]) == (step_of(100) + 32, 600 * 300.0)


def test_a_load_is_the_mean_of_five_minutes(store: Store) -> None:
    """Arrivals of chance: 0, 3,000, 6,000, 9,000 and 12,000 tokens are five minutes of 100/s, not five loads."""
    take(store, minutes(0, [[300] * 10, [200] * 10]), scrapes(0, [6000] * 5 + [0, 3000, 6000, 9000, 12_000]))
    (step,) = bins(store).steps
    assert (step["step"], step["minutes"], step["seconds"]) == (step_of(100), 5, 300)
    assert step["prompt_tokens"] + step["generated_tokens"] == 30_000


def test_minutes_without_work_are_idle(store: Store) -> None:
    """80 + 70 W for five minutes; a minute with a running request and no token is none of them."""
    rows = scrapes(0, [6000] * 5 + [0] * 5) + scrapes(10, [0], running=1)
    take(store, minutes(0, [[300] * 5 + [80] * 6, [200] * 5 + [70] * 6]), rows)
    (idle,) = bins(store).idle
    assert idle == {**TYPE, "minutes": 5, "seconds": 300, "power_ws": 150 * 300.0}
    assert bins(store).steps == []


def test_latencies_follow_their_minute_s_load(store: Store) -> None:
    """Buckets up to 10, 50, 100 ms and above: two requests a minute in the second, in the doubled load one above."""
    slow = scrapes(5, [6000] * 5, ttft_buckets=[0, 2, 0, 0])
    fast = scrapes(10, [12_000] * 5, ttft_buckets=[0, 0, 0, 1])
    take(store, minutes(0, [[300] * 15, [200] * 15]), scrapes(0, [0] * WARM) + slow + fast)
    found = [(row["step"], row["metric"], row["lower_us"], row["upper_us"], row["n"]) for row in bins(store).latency]
    assert found == [(step_of(100), 0, 10_000, 50_000, 10), (step_of(200), 0, 100_000, None, 5)]


def test_a_queue_is_told_by_its_stretches(store: Store) -> None:
    """Five minutes with three waiting, five with none: the first five count."""
    waited = scrapes(5, [6000] * 5, waiting=3) + scrapes(10, [6000] * 5)
    take(store, minutes(0, [[300] * 15, [200] * 15]), scrapes(0, [0] * WARM) + waited)
    (step,) = bins(store).steps
    assert (step["seconds"], step["queued_s"]) == (600, 300)


def overloaded(waiting: int) -> list[Row]:
    """Minutes 10 to 34 at 100/s; from 17 to 26, in which so many wait, at 200/s: 120 requests end in each."""
    before, after = scrapes(10, [6000] * 7), scrapes(27, [6000] * 8)
    return scrapes(0, [0] * 10) + before + scrapes(17, [12_000] * 10, waiting=waiting) + after


def test_stretches_that_an_overload_begins_or_ends_in_are_left_out_and_the_next(store: Store) -> None:
    """600 wait, five minutes of work: of 15 to 19 it is two minutes, of 25 to 29 two, and 30 to 34 come next. Between
    them it is all of 20 to 24."""
    take(store, minutes(0, [[300] * 35, [200] * 35]), overloaded(600))
    assert left_out(store) == {"start_up": 5, "overload_edge": 15}
    assert [(row["step"], row["minutes"]) for row in bins(store).steps] == [(step_of(100), 5), (step_of(200), 5)]


def test_a_shorter_queue_is_one_of_chance(store: Store) -> None:
    """599 wait: each stretch counts, those with 3 and 2 minutes of 200/s at a load between."""
    take(store, minutes(0, [[300] * 35, [200] * 35]), overloaded(599))
    assert left_out(store) == {"start_up": 5}
    steps = [step_of(load) for load in (100, 140, 160, 200)]
    assert [(row["step"], row["minutes"]) for row in bins(store).steps] == list(zip(steps, (10, 5, 5, 5), strict=True))


def test_the_first_minutes_are_left_out_and_those_after_a_hole(store: Store) -> None:
    """Minutes 0 to 4, then 20 to 24: nobody saw the engine from 10 to 19. 5 to 9 and 25 to 29 are left."""
    take(
        store,
        minutes(0, [[300] * 30, [200] * 30]),
        scrapes(0, [6000] * 10) + scrapes(20, [6000] * 10),
    )
    assert left_out(store) == {"start_up": 10}
    assert [row["minutes"] for row in bins(store).steps] == [10]


def test_a_restart_within_a_minute_is_a_start(store: Store) -> None:
    """The engine's process began in minute 12: that one and the next five are left out, beside the first five."""
    began = [engine(gpus=PAIR, started_us=T0 + 12 * MINUTE + 20 * SECOND)]
    take(store, minutes(0, [[300] * 20, [200] * 20]), scrapes(0, [6000] * 20), engines=began)
    assert left_out(store) == {"start_up": 5 + 6}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param({"engine_rows": scrapes(5, [6000] * 5, dt_us=50 * SECOND)}, "gap", id="engine covered for 50 s"),
        pytest.param(
            {"rows": [{**row, "dt_us": 50 * SECOND} for row in minutes(5, [[300] * 5, [200] * 5])]}, "gap",
            id="GPUs covered for 50 s",
        ),
        pytest.param({"rows": minutes(5, [[300] * 5])}, "gap", id="a GPU of two is not there"),
        pytest.param({"engine_rows": scrapes(5, [None] * 5)}, "no_tokens_told", id="no tokens"),
        pytest.param({"fleet": None}, "not_placed", id="no fleet"),
        pytest.param({"engines": [engine(gpus=None)]}, "not_placed", id="no GPUs"),
        pytest.param({"engines": [engine(gpus=PAIR, model=None)]}, "not_placed", id="no model"),
        pytest.param(
            {"engines": [engine(gpus=PAIR), engine(url="http://h:8001/metrics", gpus=PAIR)]}, "shared_gpu",
            id="shared",
        ),
    ],
)  # fmt: skip
def test_what_tells_nothing_of_a_load_is_left_out_and_counted(store: Store, said: dict[str, Any], reason: str) -> None:
    rows, engine_rows = minutes(0, [[300] * 5, [200] * 5]), scrapes(0, [6000] * 5)
    rows += said.pop("rows", minutes(5, [[300] * 5, [200] * 5]))
    engine_rows += said.pop("engine_rows", scrapes(5, [6000] * 5))
    if reason == "shared_gpu":
        engine_rows += scrapes(0, [600] * 10, number=1)
    take(store, rows, engine_rows, **said)
    assert left_out(store)[reason] >= 5
    assert bins(store).steps == []


def test_throttled_minutes_are_told_apart(store: Store) -> None:
    """A GPU that was slowed down for the whole minute: five of ten minutes."""
    slowed = [row | {"thermal_slowdown": True} for row in minutes(10, [[250] * 5, [200] * 5])]
    take(store, minutes(0, [[300] * 10, [200] * 10]) + slowed, scrapes(0, [6000] * 15))
    assert [(row["is_throttled"], row["minutes"], row["power_ws"]) for row in bins(store).steps] == [
        (False, 5, 500 * 300.0), (True, 5, 450 * 300.0),
    ]  # fmt: skip


def test_simulated_replicas_are_of_a_type_of_their_own(store: Store) -> None:
    """Law 10."""
    take(store, minutes(0, [[300] * 10, [200] * 10]), scrapes(0, [6000] * 10), simulated=True)
    assert [row["simulated"] for row in bins(store).steps] == [True]


def test_the_fleet_is_that_of_the_time(store: Store) -> None:
    take(store, minutes(0, [[300] * 15, [200] * 15]), scrapes(0, [6000] * 15), fleet="old")
    join_fleet(store, "node-7", "new", T0 + 10 * MINUTE)
    assert [(row["fleet"], row["minutes"]) for row in bins(store).steps] == [("new", 5), ("old", 5)]


def test_days_and_hours_sum_to_the_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two days of a minute in twenty: read by days and hours, kept, and read anew once an hour is built again."""
    count = 26 * 60
    take(store, minutes(0, [[300] * count, [200] * count]), scrapes(0, [6000] * count))
    reads: list[tuple[int, int]] = []
    read = module._of_block

    def counted(reader: Any, block: tuple[int, int]) -> Any:
        reads.append(block)
        return read(reader, block)

    monkeypatch.setattr(module, "_of_block", counted)
    first, end = T0 - 4 * HOUR, T0 + 26 * HOUR  # a day, and six hours of the next
    (step,) = bins(store, first, end).steps
    assert (step["minutes"], step["engines"]) == (count - WARM, 1)
    assert [(end - start) // HOUR for start, end in reads] == [24, 1, 1, 1, 1, 1, 1]
    assert bins(store, first, end).steps == [step]
    assert len(reads) == 7
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        late = [{**row, "t_us": row["t_us"] + count * MINUTE} for row in minutes(0, [[300], [200]])]
        more = scrapes(count, [6000])
        put(taking, batch(2, gpus=[gpu(index=0), gpu(index=1)], engines=[engine(gpus=PAIR)], rows=late,
                          engine_rows=more))  # fmt: skip
    roll_up_all(store)
    assert bins(store, first, end + HOUR).steps[0]["minutes"] == count - WARM + 1
    # the hour that is new; the sum of the last stretch is of one minute
    assert [start for start, _ in reads[7:]][-1] == end


def test_of_many_replicas_some_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two engines on a GPU each: one of them stands for both. The store itself keeps nothing of what was read."""
    apart = [engine(gpus=PAIR[:1]), engine(url="http://h:8001/metrics", gpus=PAIR[1:])]
    rows = scrapes(0, [6000] * 10) + scrapes(0, [6000] * 10, number=1)
    take(store, minutes(0, [[300] * 10, [200] * 10]), rows, engines=apart)
    for most, minutes_read in ((2, 10), (1, 5)):
        monkeypatch.setattr(module, "MOST_ENGINES", most)
        (step,) = load_bins(store, at(T0), at(T0 + HOUR)).steps
        assert (step["engines"], step["minutes"]) == (most, minutes_read)


def test_nothing_is_no_rows(store: Store) -> None:
    assert bins(store) == LoadBins([], [], [], [])
    assert bins(store, T0, T0) == LoadBins([], [], [], [])


# Cost


def add_history(store: Store, days: int) -> None:
    """Earlier days of the same engine, straight into the rollups."""
    first = T0 - (days + 1) * DAY
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO engine_minute BY NAME SELECT one.* REPLACE ($1 + i * $2 AS minute_us) "
            "FROM (FROM engine_minute LIMIT 1) AS one, range($3) AS r(i)", [first, MINUTE, days * 1440],
        )  # fmt: skip
        connection.execute(
            "INSERT INTO engine_latency_minute SELECT 1, $1 + i * $2, 0, 0, 10000, 2 FROM range($3) AS r(i)",
            [first, MINUTE, days * 1440],
        )
    store._connection.execute("CHECKPOINT")


def scanned(store: Store, profile: Path) -> int:
    """Rows of minutes that the newest hour reads, by DuckDB's own counts."""
    with store.transaction() as connection:
        connection.execute("SET enable_profiling = 'json'")
        connection.execute(f"SET profiling_output = '{profile}'")
        connection.sql(module._READ, params={"start": T0, "end": T0 + HOUR, "most": 64, "known_at": at(AFTER)}).pl()
        connection.execute("SET enable_profiling = 'no_output'")
    return sum(_scans(json.loads(profile.read_text())))


def _scans(node: dict[str, Any]) -> Iterator[int]:
    """DuckDB 2 names the counts otherwise than 1.5."""
    if "_minute" in str(node.get("extra_info", {}).get("Table", "")):
        yield int(node.get("rows_scanned", node.get("operator_rows_scanned", 0)))
    for child in itertools.chain(node.get("children", []), node.get("operator", [])):
        yield from _scans(child)


def test_the_newest_hour_costs_the_same_however_long_the_store_is(store: Store, tmp_path: Path) -> None:
    take(store, minutes(0, [[300] * 10, [200] * 10]), scrapes(0, [6000] * 10, ttft_buckets=[2, 0, 0, 0]))
    add_history(store, 170)
    before = scanned(store, tmp_path / "before.json")
    add_history(store, 340)
    after = scanned(store, tmp_path / "after.json")
    assert 0 < after <= 1.1 * before
