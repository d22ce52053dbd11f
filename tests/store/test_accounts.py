"""What GPUs were used for and engines did, by segment of time, fleet, model and key: parts of one whole."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.store.accounts import engine_rows, latency_rows, use_rows
from app.store.buckets import Segment, buckets
from app.store.database import Store
from app.store.kept import Kept
from app.store.moment import Moment, moment
from tests.batches import CARD, DAY, HOUR, MINUTE, SECOND, T0, Clock, Row, at, batch, engine, gpu, put, uuid_of, writing
from tests.store.test_rollup import AFTER, _operators, roll_up_all

KNOWN = at(AFTER)
RTX = "NVIDIA GeForce RTX 4090"
EDGES = [(0, 10_000), (10_000, 50_000), (50_000, 100_000), (100_000, None)]


def join_fleet(store: Store, node: str, fleet: str | None, since_us: int = 0, known_us: int = 0) -> None:
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO node_fleet SELECT node_id, $1, $2, $3, 'test' FROM node WHERE name = $4",
            [fleet, at(since_us), at(known_us), node],
        )


def minute_rows(count: int, watts: float, first: int = 0, **values: Any) -> list[Row]:
    """A GPU's row a minute from minute `first` on."""
    return [
        {"t_us": T0 + (first + n + 1) * MINUTE, "dt_us": MINUTE, "energy_mj": round(watts * 60_000), **values}
        for n in range(count)
    ]


def scrapes(count: int, tokens: int, first: int = 0, **values: Any) -> list[Row]:
    """An engine's row a minute, half of whose tokens are a prompt's, with one request of 20 ms to its first token."""
    half = {"prompt_tokens": tokens // 2, "generated_tokens": tokens - tokens // 2, "finished_stop": 1, "running": 1}
    return [
        {"t_us": T0 + (first + n + 1) * MINUTE, "dt_us": MINUTE, "ttft_buckets": [0, 1, 0, 0], **half, **values}
        for n in range(count)
    ]


def uses(store: Store, *segments: Segment, by: str = "none", **only: Any) -> list[Row]:
    return use_rows(store, segments, by, KNOWN, **only)


def total(rows: Sequence[Row], name: str) -> Any:
    return sum(row[name] for row in rows)


def hours(first: int, last: int, position: int = 0) -> Segment:
    return position, T0 + first * HOUR, T0 + last * HOUR


@pytest.fixture
def two_fleets(store: Store) -> Store:
    """Two hours of two nodes.

    big (node-7, team a): two H100s at 300 W; one engine on both makes 100 tokens a minute in the first hour.
    small (node-8): an RTX 4090 at 100 W without an engine, and one at 200 W whose engine of team b makes 40.
    """
    cards = [gpu(), gpu(index=1)]
    wide = engine(model="m-wide", gpus=[uuid_of("node-7", 0), uuid_of("node-7", 1)])
    rows = [row | {"gpu": index} for index in (0, 1) for row in minute_rows(120, 300)]
    consumer = [gpu("node-8", index, name=RTX) for index in (0, 1)]
    own = engine(model="m-small", gpus=[uuid_of("node-8", 1)], labels={"team": "b"})
    other = [row | {"gpu": index} for index, watts in ((0, 100), (1, 200)) for row in minute_rows(120, watts)]
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        put(taking, batch(1, gpus=cards, engines=[wide], rows=rows, engine_rows=scrapes(60, 100), labels={"team": "a"}))
        put(taking, batch(1, node="node-8", gpus=consumer, engines=[own], rows=other, engine_rows=scrapes(120, 40)))
    roll_up_all(store)
    join_fleet(store, "node-7", "big")
    join_fleet(store, "node-8", "small")
    return store


# Rows


def test_a_row_per_fleet_and_model_with_what_its_gpus_did(two_fleets: Store) -> None:
    """big: 2 GPUs x 60 x 300 W x 60 s = 2.16 MJ an hour; small: 1.08 MJ with no engine on it and 0.72 MJ."""
    rows = uses(two_fleets, hours(0, 1), hours(1, 2, position=1))
    names = ("position", "fleet", "model", "allocated", "gpu_name", "replica_gpus", "used_s", "provisioned_s")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, "big", "m-wide", True, CARD, 2, 7200, 7200),
        (0, "small", "m-small", True, RTX, 1, 3600, 3600),
        (0, "small", None, False, RTX, None, 0, 3600),
        (1, "big", None, False, CARD, None, 0, 7200),
        (1, "small", "m-small", True, RTX, 1, 3600, 3600),
        (1, "small", None, False, RTX, None, 0, 3600),
    ]
    assert [round(row["known_j"]) for row in rows] == [2_160_000, 720_000, 360_000] * 2
    assert [row["idle_j"] for row in rows] == pytest.approx([0, 0, 360_000, 2_160_000, 0, 360_000])
    assert {(row["shared"], row["simulated"]) for row in rows} == {(False, False)}


def test_one_segment_of_many_hours_is_their_sum(two_fleets: Store) -> None:
    (big, idle_big, small, idle_small) = uses(two_fleets, hours(0, 2))
    assert (big["known_j"], idle_big["known_j"]) == (pytest.approx(2_160_000), pytest.approx(2_160_000))
    assert (small["used_s"], idle_small["provisioned_s"]) == (7200, 7200)


def test_engines_by_fleet_and_model(two_fleets: Store) -> None:
    rows = engine_rows(two_fleets, [hours(0, 2)], "none", KNOWN)
    names = ("fleet", "model", "gpu_name", "replica_gpus", "prompt_tokens", "generated_tokens", "finished", "failed")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("big", "m-wide", CARD, 2, 3_000, 3_000, 60, None),
        ("small", "m-small", RTX, 1, 2_400, 2_400, 120, None),
    ]
    assert [(row["busy_s"], row["unplaced"], row["cached_tokens"]) for row in rows] == [
        (3600, 0, None),
        (7200, 0, None),
    ]


@pytest.mark.parametrize(
    ("by", "names", "expected"),
    [
        ("node", ("node",), {("node-7",): 4.32, ("node-8",): 2.16}),
        ("gpu", ("gpu", "node"), {
            ("node-7-0", "node-7"): 2.16, ("node-7-1", "node-7"): 2.16,
            ("node-8-0", "node-8"): 0.72, ("node-8-1", "node-8"): 1.44,
        }),
        ("label:team", ("label",), {("a",): 4.32, ("b",): 1.44, (None,): 0.72}),
        ("label:no such", ("label",), {(None,): 6.48}),
        ("replica", ("node", "url", "engine"), {
            ("node-7", "http://127.0.0.1:8000/metrics", ""): 2.16, ("node-7", None, None): 2.16,
            ("node-8", "http://127.0.0.1:8000/metrics", ""): 1.44, ("node-8", None, None): 0.72,
        }),
    ],
)  # fmt: skip
def test_rows_have_the_key_that_is_asked_for(
    two_fleets: Store, by: str, names: tuple[str, ...], expected: dict[tuple[str | None, ...], float]
) -> None:
    found: dict[tuple[str | None, ...], float] = {}
    for row in uses(two_fleets, hours(0, 2), by=by):
        key = tuple(row[name] for name in names)
        found[key] = found.get(key, 0.0) + row["known_j"] / 1e6
    assert found == pytest.approx(expected)


def test_tokens_of_an_engine_are_its_gpus_in_equal_whole_parts(two_fleets: Store) -> None:
    (segment,) = [(0, T0, T0 + MINUTE)]
    rows = engine_rows(two_fleets, [segment], "gpu", KNOWN, fleet="big")
    assert [(row["gpu"], row["generated_tokens"], row["busy_s"], row["finished"]) for row in rows] == [
        ("node-7-0", 25, 30.0, 0), ("node-7-1", 25, 30.0, 1),
    ]  # fmt: skip


def test_only_the_fleet_or_model_that_is_asked_for(two_fleets: Store) -> None:
    assert {row["fleet"] for row in uses(two_fleets, hours(0, 2), fleet="big")} == {"big"}
    assert [row["model"] for row in uses(two_fleets, hours(0, 2), model="m-small")] == ["m-small"]
    assert [row["model"] for row in engine_rows(two_fleets, [hours(0, 2)], "none", KNOWN, model="m-small")] == [
        "m-small"
    ]
    assert uses(two_fleets, hours(0, 2), fleet="big", model="m-small") == []
    assert latency_rows(two_fleets, [hours(0, 2)], "ttft", "none", KNOWN, fleet="none such") == []


def test_latencies_by_fleet_and_model(two_fleets: Store) -> None:
    rows = latency_rows(two_fleets, [hours(0, 1), hours(1, 2, 1)], "ttft", "none", KNOWN)
    names = ("position", "fleet", "model", "lower_us", "upper_us", "n")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, "big", "m-wide", 10_000, 50_000, 60), (0, "small", "m-small", 10_000, 50_000, 60),
        (1, "small", "m-small", 10_000, 50_000, 60),
    ]  # fmt: skip
    assert latency_rows(two_fleets, [hours(0, 1)], "e2e", "none", KNOWN) == []
    by_gpu = latency_rows(two_fleets, [hours(0, 1)], "ttft", "gpu", KNOWN)
    assert {row["gpu"]: row["n"] for row in by_gpu} == {"node-7-0": 60, "node-7-1": 60, "node-8-1": 60}


def test_engines_whose_gpus_are_not_known_are_counted(store: Store) -> None:
    unknown = engine(model="m", gpus=None, gpus_source=None)
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        put(taking, batch(1, engines=[unknown], rows=minute_rows(10, 100), engine_rows=scrapes(10, 10)))
    roll_up_all(store)
    for by in ("none", "gpu"):
        (row,) = engine_rows(store, [hours(0, 1)], by, KNOWN)
        assert (row["unplaced"], row["gpu_name"], row["replica_gpus"], row["generated_tokens"]) == (1, None, None, 50)
    (use,) = uses(store, hours(0, 1))
    assert (use["allocated"], use["model"]) == (False, None)


def test_an_engine_that_moves_counts_where_it_was(store: Store) -> None:
    """Ten minutes on the H100, then twenty on the RTX; an hour counts to where it was at its end."""
    cards = [gpu(), gpu(index=1, name=RTX)]
    rows = [row | {"gpu": index} for index in (0, 1) for row in minute_rows(30, 100)]
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        first, then = (engine(gpus=[uuid_of("node-7", index)]) for index in (0, 1))
        put(taking, batch(1, gpus=cards, engines=[first], rows=rows, engine_rows=scrapes(10, 100)))
        put(taking, batch(2, gpus=cards, engines=[then], rows=[], engine_rows=scrapes(20, 100, first=10)))
    roll_up_all(store)
    minutes = engine_rows(store, [(0, T0, T0 + 30 * MINUTE)], "none", KNOWN)
    assert {row["gpu_name"]: row["generated_tokens"] for row in minutes} == {CARD: 500, RTX: 1_000}
    by_gpu = engine_rows(store, [(0, T0, T0 + 30 * MINUTE)], "gpu", KNOWN)
    assert {row["gpu"]: row["generated_tokens"] for row in by_gpu} == {"node-7-0": 500, "node-7-1": 1_000}
    assert {row["gpu_name"]: row["generated_tokens"] for row in engine_rows(store, [hours(0, 1)], "none", KNOWN)} == {
        RTX: 1_500
    }
    used = {row["gpu_name"]: row["used_s"] for row in uses(store, hours(0, 1)) if row["allocated"]}
    assert used == {CARD: 600, RTX: 1_200}


# Time


def test_a_fleet_change_at_13_37_splits_the_hour(two_fleets: Store) -> None:
    """T0 is four o'clock, so 04:37: of 120 minutes at 600 W big has 37, new 83; what is not of the node stays."""
    join_fleet(two_fleets, "node-7", "new", since_us=T0 + 37 * MINUTE)
    found = {}
    for row in uses(two_fleets, hours(0, 2)):
        found[row["fleet"]] = found.get(row["fleet"], 0.0) + row["known_j"]
    assert found == pytest.approx({"big": 37 * 36_000, "new": 83 * 36_000, "small": 120 * 18_000})
    tokens = {row["fleet"]: row["generated_tokens"] for row in engine_rows(two_fleets, [hours(0, 2)], "none", KNOWN)}
    assert tokens == {"big": 37 * 50, "new": 23 * 50, "small": 2_400}
    only = uses(two_fleets, hours(0, 2), fleet="new")
    assert total(only, "known_j") == pytest.approx(83 * 36_000)
    n = {row["fleet"]: row["n"] for row in latency_rows(two_fleets, [hours(0, 1)], "ttft", "none", KNOWN)}
    assert n == {"big": 37, "new": 23, "small": 60}


def test_a_change_within_a_minute_counts_from_the_next_whole_minute_on(two_fleets: Store) -> None:
    join_fleet(two_fleets, "node-7", "new", since_us=T0 + 36 * MINUTE + 1)
    (row,) = uses(two_fleets, hours(0, 1), fleet="big")
    assert row["used_s"] == 37 * 120


def test_what_was_known_later_does_not_count(two_fleets: Store) -> None:
    join_fleet(two_fleets, "node-7", "new", since_us=T0, known_us=T0 + HOUR)
    fleets = {
        known: {row["fleet"] for row in use_rows(two_fleets, [hours(0, 1)], "none", at(known))}
        for known in (T0, T0 + HOUR)
    }
    assert fleets == {T0: {"big", "small"}, T0 + HOUR: {"new", "small"}}


def test_minutes_that_are_gone_are_read_from_hours_where_they_begin(two_fleets: Store) -> None:
    edges = [T0, T0 + 37 * MINUTE, T0 + HOUR, T0 + 90 * MINUTE, T0 + 2 * HOUR]
    segments = [(number, low, high) for number, (low, high) in enumerate(pairwise(edges))]

    def by_segment(oldest_minute_us: int) -> dict[int, float]:
        found: dict[int, float] = {}
        for row in uses(two_fleets, *segments, fleet="small", oldest_minute_us=oldest_minute_us):
            found[row["position"]] = found.get(row["position"], 0.0) + row["provisioned_s"] / 120
        return found

    assert by_segment(0) == pytest.approx({0: 37, 1: 23, 2: 30, 3: 30})
    assert by_segment(T0 + 1) == pytest.approx({0: 60, 2: 30, 3: 30})
    assert by_segment(T0 + HOUR + 1) == pytest.approx({0: 60, 2: 60})


def test_segments_of_one_position_count_together(two_fleets: Store) -> None:
    rows = uses(two_fleets, (3, T0, T0 + 10 * MINUTE), (3, T0 + 50 * MINUTE, T0 + 70 * MINUTE), fleet="small")
    assert {(row["position"], row["provisioned_s"]) for row in rows} == {(3, 1800)}


def test_no_time_has_no_rows(two_fleets: Store) -> None:
    assert uses(two_fleets) == uses(two_fleets, hours(5, 6)) == uses(two_fleets, (0, T0, T0)) == []


def test_reads_of_one_moment_do_not_see_what_comes_meanwhile(two_fleets: Store) -> None:
    with moment(two_fleets) as reader:
        before = use_rows(reader, [hours(0, 2)], "none", KNOWN)
        join_fleet(two_fleets, "node-7", "new", since_us=T0)
        assert use_rows(reader, [hours(0, 2)], "none", KNOWN) == before
    assert uses(two_fleets, hours(0, 2)) != before


# Properties


@pytest.fixture(scope="module")
def busy_day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """30 hours of three nodes, two GPUs each, with engines that share, move and stop; nodes that change fleets."""
    rng = random.Random(7)
    store = Store.open(tmp_path_factory.mktemp("accounts") / "s.duckdb")
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        for node in ("n-0", "n-1", "n-2"):
            for sequence in range(1, 7):
                begin = (sequence - 1) * 300
                cards = [gpu(node, 0), gpu(node, 1, name=RTX)]
                places = [rng.choice([None, [0], [1], [0, 1]]) for _ in range(2)]
                running = [
                    engine(
                        url=f"http://h:{number}/metrics",
                        model=f"m{number}",
                        labels={"team": f"t{number}"} if node == "n-0" else {},
                        gpus=None if place is None else [uuid_of(node, index) for index in place],
                    )
                    for number, place in enumerate(places)
                ]
                rows = [
                    row | {"gpu": index}
                    for index in (0, 1)
                    for row in minute_rows(300, rng.randrange(50, 400), first=begin)
                    if rng.random() < 0.9
                ]
                done = [
                    row | {"engine": number, "ttft_buckets": [rng.randrange(5) for _ in range(4)]}
                    for number in (0, 1)
                    for row in scrapes(300, rng.randrange(1000), first=begin)
                    if rng.random() < 0.8
                ]
                put(taking, batch(sequence, node=node, gpus=cards, engines=running, rows=rows, engine_rows=done,
                                  labels={"team": "node"} if node == "n-1" else {}))  # fmt: skip
    roll_up_all(store)
    for node, changes in (("n-0", [0]), ("n-1", [0, 617 * MINUTE]), ("n-2", [400 * MINUTE + 17, 20 * HOUR])):
        for number, since in enumerate(changes):
            join_fleet(store, node, f"f{number}", since_us=T0 + since if since else 0)
    yield store
    store.close()


edges = st.lists(
    st.one_of(st.integers(0, 30).map(lambda hour: hour * 60), st.integers(0, 1800)), min_size=2, max_size=7, unique=True
).map(sorted)
SUMS = ("provisioned_s", "used_s", "known_j", "estimated_j", "idle_j", "covered_s")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=edges, by=st.sampled_from(["none", "node", "gpu", "replica", "label:team"]))
def test_rows_sum_to_what_the_minutes_hold_however_time_and_gpus_are_cut(
    busy_day: Store, edges: list[int], by: str
) -> None:
    segments = [(number, T0 + low * MINUTE, T0 + high * MINUTE) for number, (low, high) in enumerate(pairwise(edges))]
    bounds = [segments[0][1], segments[-1][2]]
    span = "WHERE minute_us >= $1 AND minute_us < $2"
    with moment(busy_day) as reader:
        found = use_rows(reader, segments, by, KNOWN)
        done = engine_rows(reader, segments, by, KNOWN)
        seen = latency_rows(reader, segments, "ttft", "node" if by == "gpu" else by, KNOWN)
    sums = ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in SUMS)
    (whole,) = busy_day.query(f"SELECT {sums} FROM gpu_use_minute {span}", bounds).iter_rows(named=True)
    assert {name: total(found, name) for name in SUMS} == pytest.approx(whole, rel=1e-9, abs=1e-6)
    tokens, n = (
        busy_day.query(f"SELECT coalesce(sum({column}), 0)::BIGINT AS n FROM {table} {span}", bounds)["n"][0]
        for column, table in (("generated_tokens", "engine_minute"), ("n", "engine_latency_minute"))
    )
    if by != "gpu":
        assert total(seen, "n") == n
    assert sum(row["generated_tokens"] or 0 for row in done) == tokens


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=edges, fleet=st.sampled_from(["f0", "f1"]), model=st.sampled_from([None, "m0", "m1"]))
def test_what_is_asked_for_alone_is_as_among_all(
    busy_day: Store, edges: list[int], fleet: str, model: str | None
) -> None:
    """A filter changes no number; nor does a cut at the change of another node's fleet."""
    segments = [(0, T0 + edges[0] * MINUTE, T0 + edges[-1] * MINUTE)]
    for read in (use_rows, engine_rows):
        everything = read(busy_day, segments, "gpu", KNOWN)
        wanted = [row for row in everything if row["fleet"] == fleet and model in (None, row["model"])]
        found = read(busy_day, segments, "gpu", KNOWN, fleet=fleet, model=model)
        assert [_rounded(row) for row in found] == [_rounded(row) for row in wanted]


def _rounded(row: Row) -> Row:
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()}


@given(
    segments=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 500), st.integers(0, 500)), max_size=4),
    changes=st.lists(st.integers(0, 2000 * MINUTE), max_size=4),
)
def test_every_minute_of_a_segment_is_read_once(segments: list[tuple[int, int, int]], changes: list[int]) -> None:
    begin, placed = 0, []
    for position, gap, length in segments:
        placed.append((position, (begin + gap) * MINUTE, (begin + gap + length) * MINUTE))
        begin += gap + length
    found = buckets(placed, changes, 0)
    read = [
        (minute, piece) for start, end, piece in [*found.hours, *found.minutes] for minute in range(start, end, MINUTE)
    ]
    minutes = dict(read)
    assert len(minutes) == len(read)
    assert {minute: found.pieces[piece][0] for minute, piece in read} == {
        minute: position for position, start, end in placed for minute in range(start, end, MINUTE)
    }
    assert all(start % HOUR == end % HOUR == 0 for start, end, _ in found.hours)
    for first, second in pairwise(sorted(minutes)):
        if minutes[first] == minutes[second]:  # no node changes its fleet in between
            assert not any(first < change <= second for change in changes)


# Cost


class _Counting:
    """A query that counts the rows that DuckDB reads."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._cursor = store._connection.cursor()
        self._profile = folder / "profile.json"
        self.scanned = 0

    def query(self, sql: str, parameters: Any = None) -> pl.DataFrame:
        self._cursor.execute("SET enable_profiling = 'json'")
        self._cursor.execute(f"SET profiling_output = '{self._profile}'")
        found: pl.DataFrame = self._cursor.sql(sql, params=parameters or []).pl()
        self._cursor.execute("SET enable_profiling = 'no_output'")
        self.scanned += sum(one["scanned"] for one in _operators(json.loads(self._profile.read_text())))
        return found


def test_the_cost_of_a_read_does_not_grow_with_what_is_not_asked_for(two_fleets: Store, tmp_path: Path) -> None:
    """Two hours after 40 years of hours and minutes, beside a million raw samples: a row group more of each table."""
    scanned = []
    for has_history in (False, True):
        if has_history:
            _add_history(two_fleets)
        counting = _Counting(two_fleets, tmp_path)
        reader = Moment(counting.query, Kept(), {})
        segments = [(0, T0 + 10 * MINUTE, T0 + 2 * HOUR)]
        assert use_rows(reader, segments, "none", KNOWN)
        assert engine_rows(reader, segments, "none", KNOWN)
        scanned.append(counting.scanned)
    row_group, tables = 122_880, 4
    assert 0 < scanned[1] <= scanned[0] + tables * row_group


def _add_history(store: Store) -> None:
    with store.transaction() as connection:
        for table, key, step, length in (
            ("gpu_use_hour", "hour_us", HOUR, 400_000), ("gpu_use_minute", "minute_us", MINUTE, 1_000_000),
            ("engine_hour", "hour_us", HOUR, 400_000), ("engine_minute", "minute_us", MINUTE, 1_000_000),
        ):  # fmt: skip
            first = T0 - 40 * 365 * DAY
            connection.execute(
                f"INSERT INTO {table} SELECT * EXCLUDE (i) REPLACE ($1 + i * $2 AS {key}) "
                f"FROM (SELECT * FROM {table} LIMIT 1), range($3) AS r(i)",
                [first, min(step, 40 * 365 * DAY // length), length],
            )
        connection.execute(
            "INSERT INTO gpu_sample (gpu_id, t_us, dt_us) SELECT 1, $1 + i * $2, 1 FROM range(1000000) AS r(i)",
            [T0 - DAY, SECOND],
        )
    store._connection.execute("CHECKPOINT")
