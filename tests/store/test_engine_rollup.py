"""Minutes and hours of engines add up to their scrapes in whole numbers, whatever came when."""

from __future__ import annotations

import json
import math
import uuid
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.store import rollup
from app.store.database import Store
from app.store.engine_ingest import ENGINE_COUNTS
from app.store.retention import delete_expired
from app.store.rollup import roll_up, waiting_minutes
from tests.batches import DAY, HOUR, MINUTE, SECOND, T0, Clock, Row, batch, put, writing
from tests.store.test_rollup import AFTER, _operators, roll_up_all

METRICS = ("ttft", "itl", "e2e")
EDGES = [(0, 10_000), (10_000, 50_000), (50_000, 100_000), (100_000, None)]


def take(store: Store, *rows: Row, sequence: int = 1, node: str = "node-7") -> None:
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        put(taking, batch(sequence, node=node, rows=[], engine_rows=rows))


def buckets(store: Store, table: str) -> dict[int, dict[str, Any]]:
    key = "minute_us" if table.endswith("minute") else "hour_us"
    found = store.query(f"SELECT * FROM {table} WHERE engine_id = 1 ORDER BY {key}")
    rows = {row[key]: row for row in found.iter_rows(named=True)}
    assert len(rows) == found.height
    return rows


def latencies(store: Store, table: str) -> dict[tuple[int, int, int], int]:
    """(bucket of time, metric, lower bound) -> n."""
    key = "minute_us" if table.endswith("minute") else "hour_us"
    rows = store.query(f"SELECT {key}, metric, lower_us, n FROM {table}").rows()
    assert len({row[:3] for row in rows}) == len(rows)
    return {(time, metric, lower): n for time, metric, lower, n in rows}


# The parts again, in plain Python


def parts(row: Row) -> list[tuple[int, Fraction, Fraction, Fraction]]:
    """(minute, share of the row before it, share up to its end, seconds in it)."""
    start, end = row["t_us"] - row["dt_us"], row["t_us"]
    found = []
    for minute in range(start // MINUTE * MINUTE, end, MINUTE):
        low, high = max(minute, start), min(minute + MINUTE, end)
        share = Fraction(low - start, row["dt_us"]), Fraction(high - start, row["dt_us"])
        found.append((minute, *share, Fraction(high - low, SECOND)))
    return found


def whole(count: int, start: Fraction, end: Fraction) -> int:
    # The store computes with doubles: a product that is a whole number may come out a hair below it.
    return math.floor(count * float(end)) - math.floor(count * float(start))


count_values = st.none() | st.integers(0, 10**9)
bucket_values = st.none() | st.lists(st.integers(0, 1000), min_size=4, max_size=4)
row_values = st.fixed_dictionaries(
    {
        "dt_us": st.one_of(st.just(5 * SECOND), st.integers(1, MINUTE), st.integers(MINUTE + 1, 40 * MINUTE)),
        "gap": st.one_of(st.just(0), st.integers(0, 3 * MINUTE)),
        "running": st.none() | st.integers(0, 3),
        **dict.fromkeys(("prompt_tokens", "generated_tokens", "finished_stop", "prefill_us"), count_values),
        **{f"{name}_buckets": bucket_values for name in METRICS},
    }
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.lists(row_values, min_size=1, max_size=12), begin=st.integers(0, 2 * MINUTE), order=st.randoms())
def test_minutes_and_hours_are_the_sums_of_scrapes(
    tmp_path: Path, drawn: list[dict[str, Any]], begin: int, order: Any
) -> None:
    moment, rows = T0 + HOUR - begin, []
    for one in drawn:
        moment += one["gap"] + one["dt_us"]
        rows.append({name: value for name, value in one.items() if name != "gap"} | {"t_us": moment})
    store = Store.open(tmp_path / f"{uuid.uuid4().hex}.duckdb")
    shuffled = rows.copy()
    order.shuffle(shuffled)
    half = len(rows) // 2
    for sequence, some in enumerate((shuffled[:half], shuffled[half:]), 1):
        if some:
            take(store, *some, sequence=sequence)
            roll_up_all(store)  # the second half comes late
    assert_counts(store, rows)
    assert_seen(store, rows)
    assert_latencies(store, rows)
    assert waiting_minutes(store) == 0
    store.close()


def assert_counts(store: Store, rows: list[Row]) -> None:
    minutes, hours = buckets(store, "engine_minute"), buckets(store, "engine_hour")
    for name in ENGINE_COUNTS:
        wanted: dict[int, int] = defaultdict(int)
        counted = [row for row in rows if row.get(name) is not None]
        for row in counted:
            for minute, start, end, _ in parts(row):
                wanted[minute] += whole(row[name], start, end)
        assert {minute: values[name] for minute, values in minutes.items()} == {
            minute: wanted.get(minute) for minute in minutes
        }, name
        assert sum(values[name] or 0 for values in hours.values()) == sum(row[name] for row in counted), name


def assert_seen(store: Store, rows: list[Row]) -> None:
    seen: dict[int, Fraction] = defaultdict(Fraction)
    for row in rows:
        for minute, _, _, seconds in parts(row):
            seen[minute] += seconds
    found = {minute: values["seen_s"] for minute, values in buckets(store, "engine_minute").items()}
    assert found == pytest.approx({minute: float(seconds) for minute, seconds in seen.items()})


def assert_latencies(store: Store, rows: list[Row]) -> None:
    for table in ("engine_latency_minute", "engine_latency_hour"):
        found = latencies(store, table)
        for metric, name in enumerate(METRICS):
            for position, (lower, _) in enumerate(EDGES):
                total = sum(row[f"{name}_buckets"][position] for row in rows if row[f"{name}_buckets"])
                assert sum(n for (_, m, low), n in found.items() if (m, low) == (metric, lower)) == total


def test_a_scrape_over_a_minute_is_split_in_whole_tokens(store: Store) -> None:
    # 2 s before the minute and 3 s after it, 7 tokens: floor(7 x 0.4) = 2, and 7 - 2 = 5
    take(store, {"t_us": T0 + MINUTE + 3 * SECOND, "generated_tokens": 7, "running": 2, "waiting": 5})
    roll_up_all(store)
    first, second = buckets(store, "engine_minute").values()
    assert (first["generated_tokens"], second["generated_tokens"]) == (2, 5)
    assert (first["busy_s"], second["busy_s"]) == (pytest.approx(2), pytest.approx(3))
    assert (first["mean_running"], second["mean_waiting"], second["max_waiting"]) == (2, 5, 5)
    assert first["prompt_tokens"] is None


def test_a_gap_is_spread_evenly_and_said(store: Store) -> None:
    # Ten minutes without a scrape, 1000 tokens: 100 a minute
    take(store, {"t_us": T0 + 10 * MINUTE, "dt_us": 10 * MINUTE, "generated_tokens": 1000, "running": 4})
    roll_up_all(store)
    minutes = buckets(store, "engine_minute")
    assert [row["generated_tokens"] for row in minutes.values()] == [100] * 10
    assert {row["gap_s"] for row in minutes.values()} == {60.0}
    # What ran at its end says nothing of the ten minutes.
    assert {(row["mean_running"], row["gauged_s"]) for row in minutes.values()} == {(None, 0.0)}
    (hour,) = buckets(store, "engine_hour").values()
    assert (hour["generated_tokens"], hour["gap_s"], hour["busy_s"]) == (1000, 600.0, 600.0)


def test_busy_is_a_running_request_or_a_token(store: Store) -> None:
    rows = [
        {"running": 1, "generated_tokens": 0, "prompt_tokens": 0},
        {"running": 0, "generated_tokens": 3, "prompt_tokens": 0},
        {"running": 0, "generated_tokens": 0, "prompt_tokens": 8},
        {"running": 0, "generated_tokens": 0, "prompt_tokens": 0},
        {"running": None, "generated_tokens": None, "prompt_tokens": None},
    ]
    take(store, *({"t_us": T0 + (n + 1) * 5 * SECOND, **row} for n, row in enumerate(rows)))
    roll_up_all(store)
    (minute,) = buckets(store, "engine_minute").values()
    assert (minute["busy_s"], minute["seen_s"], minute["gauged_s"], minute["scrapes"]) == (15, 25, 20, 5)


def test_minutes_are_dropped_with_their_latencies_and_hours_stay(store: Store) -> None:
    row = {"generated_tokens": 1, "ttft_buckets": [1, 0, 0, 0]}
    take(store, {"t_us": T0 + 5 * SECOND, **row}, {"t_us": T0 + 3 * DAY, **row})
    roll_up_all(store)
    delete_expired(store, T0 + 3 * DAY + HOUR, raw_days=1, minute_days=2)
    assert len(buckets(store, "engine_minute")) == len(latencies(store, "engine_latency_minute")) == 1
    assert len(buckets(store, "engine_hour")) == len(latencies(store, "engine_latency_hour")) == 2
    assert store.query("SELECT t_us FROM engine_sample").rows() == [(T0 + 3 * DAY,)]
    assert store.query("SELECT count(*) AS n FROM engine_latency_sample")["n"].to_list() == [1]
    assert store.query("SELECT deleted_up_to_us FROM raw_horizon").rows() == [(T0 + 2 * DAY + HOUR,)]


def test_the_cost_of_a_rollup_does_not_grow_with_the_raw_table(store: Store, tmp_path: Path) -> None:
    """One minute's rebuild reads a row group's worth at most, however many older scrapes there are."""
    take(store, {"t_us": T0 - 18 * DAY, "generated_tokens": 1, "ttft_buckets": [1, 0, 0, 0]})
    roll_up_all(store)
    scanned = []
    for sequence, history in ((2, 300_000), (3, 1_200_000)):
        _add_history(store, T0 - 17 * DAY, history)
        row = {"t_us": T0 + sequence * HOUR, "generated_tokens": 1, "ttft_buckets": [1, 0, 0, 0]}
        take(store, row, sequence=sequence)
        scanned.append(_scanned_by_a_rebuild(store, tmp_path / "profile.json"))
        roll_up_all(store)
    row_group = 122_880
    assert 0 < scanned[1] <= scanned[0] + 2 * row_group < 500_000


def _add_history(store: Store, first_us: int, rows: int) -> None:
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO engine_sample (engine_id, t_us, dt_us, generated_tokens) "
            "SELECT 1, $1 + (i + 1) * 1000000, 1000000, 3 FROM range($2) AS r(i)",
            [first_us, rows],
        )
    store._connection.execute("CHECKPOINT")


def _scanned_by_a_rebuild(store: Store, profile: Path) -> int:
    engines = rollup.SUBJECTS[1]
    due = store.query(rollup._take_dirty(engines), [AFTER, rollup.SPAN_US, rollup.MAX_PAIRS])
    with store.transaction() as connection:
        connection.register("due", due)
        connection.execute(rollup._touched(engines), [0])
        first, last = rollup._bounds(due)
        connection.execute("SET enable_profiling = 'json'")
        connection.execute(f"SET profiling_output = '{profile}'")
        connection.execute(engines.tables[0].rebuild_minutes, [first, last + MINUTE])
        connection.execute("SET enable_profiling = 'no_output'")
        connection.unregister("due")
    operators = _operators(json.loads(profile.read_text()))
    return sum(one["scanned"] for one in operators if "engine_sample" in one["table"])


def test_a_rollup_can_be_repeated(store: Store) -> None:
    take(store, {"t_us": T0 + MINUTE, "generated_tokens": 7, "e2e_buckets": [0, 0, 1, 2]})
    assert roll_up_all(store) == 1 + 1  # and the use of its GPU in that hour
    before = buckets(store, "engine_hour"), latencies(store, "engine_latency_hour")
    with store.transaction() as connection:
        connection.execute("INSERT INTO dirty_engine_minute VALUES (1, $1)", [T0])
    assert roll_up(store, AFTER, oldest_raw_us=0, oldest_minute_us=0) == 1 + 1
    assert (buckets(store, "engine_hour"), latencies(store, "engine_latency_hour")) == before
