"""Minutes and hours add up to the raw samples, whatever came when; a bucket without its raw samples stays as it is."""

from __future__ import annotations

import itertools
import json
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.store import rollup
from app.store.database import Store
from app.store.rollup import roll_up, waiting_minutes
from app.store.writer import SampleWriter
from collectors.samples import ENERGY_METHODS
from tests.batches import DAY, HOUR, MINUTE, SECOND, T0, Clock, Row, batch, gpu, put, seconds, writing

AFTER = T0 + 20 * DAY
SUMS = (
    "counter_j", "integral_j", "interpolated_j", "covered_s", "bridged_s", "provisioned_s", "throttled_s", "busy_s",
    "powered_s", "check_counter_j", "check_integral_j",
)  # fmt: skip
POWERS = ("mean_power_w", "max_power_w")


def roll_up_all(store: Store, now_us: int = AFTER, *, oldest_raw_us: int = 0, oldest_minute_us: int = 0) -> int:
    """How many GPU-minutes, engine-minutes and hours of a GPU's use were rebuilt."""
    pairs = 0
    while done := roll_up(store, now_us, oldest_raw_us=oldest_raw_us, oldest_minute_us=oldest_minute_us):
        pairs += done
    return pairs


def buckets(store: Store, table: str, uuid: str = "node-7-0") -> dict[int, dict[str, Any]]:
    """Bucket start -> its row, of one GPU; no bucket appears twice."""
    key = "minute_us" if table == "gpu_minute" else "hour_us"
    sql = f"SELECT {table}.* FROM {table} JOIN gpu USING (gpu_id) WHERE uuid = $1 ORDER BY {key}"
    rows = list(store.query(sql, [uuid]).iter_rows(named=True))
    found = {row[key]: row for row in rows}
    assert len(found) == len(rows)
    return found


# The sums again, in plain Python


def expected(rows: Sequence[Row], bucket_us: int) -> dict[int, dict[str, float | None]]:
    """What a bucket holds: each row's part in it, exactly, by Fractions of integers."""
    sums: dict[int, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    most: dict[int, float] = {}
    for row in rows:
        start, end = row["t_us"] - row["dt_us"], row["t_us"]
        for bucket in range(start // bucket_us * bucket_us, end, bucket_us):
            overlap_us = min(end, bucket + bucket_us) - max(start, bucket)
            for name, value in _share(row, Fraction(overlap_us, row["dt_us"]), Fraction(overlap_us, SECOND)):
                sums[bucket][name] += value
            power = _power(row)
            if power is not None:
                most[bucket] = max(most.get(bucket, 0.0), power / 1e3)
    return {
        bucket: {name: float(values[name]) for name in SUMS}
        | {
            "mean_power_w": float(values["power_ws"] / values["powered_s"]) if values["powered_s"] else None,
            "max_power_w": most.get(bucket),
        }
        for bucket, values in sums.items()
    }


def _power(row: Row) -> int | None:
    if row["energy_method"] == "bridged":
        return None
    return row["power_instant_mw"] if row["power_instant_mw"] is not None else row["power_average_mw"]


def _share(row: Row, part: Fraction, overlap_s: Fraction) -> Iterator[tuple[str, Fraction]]:
    """(sum, what the part of a row in a bucket adds to it)."""
    energy, integral, method, power = row["energy_mj"], row["integral_mj"], row["energy_method"], _power(row)
    yield "provisioned_s", overlap_s
    if method == "bridged":
        if energy is not None:
            yield "interpolated_j", part * energy / 1000
            yield "bridged_s", overlap_s
        return
    if energy is not None:
        yield "counter_j" if method == "counter" else "integral_j", part * energy / 1000
        yield "covered_s", overlap_s
        if method == "counter" and integral is not None:
            yield "check_counter_j", part * energy / 1000
    if method == "counter" and integral is not None:
        yield "check_integral_j", part * integral / 1000
    if row["power_cap"] or row["thermal_slowdown"] or row["hardware_slowdown"]:
        yield "throttled_s", overlap_s
    if (row["utilisation_pct"] or 0) > 0:
        yield "busy_s", overlap_s
    if power is not None:
        yield "powered_s", overlap_s
        yield "power_ws", overlap_s * power / 1000


def assert_equals(found: dict[int, dict[str, Any]], wanted: dict[int, dict[str, float | None]]) -> None:
    assert found.keys() == wanted.keys()
    for bucket, values in wanted.items():
        for name in (*SUMS, *POWERS):
            value = values[name]
            wanted_value = None if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)
            assert found[bucket][name] == wanted_value, (bucket, name)


maybe = st.one_of
flag = st.sampled_from([None, False, True])
second_row = st.fixed_dictionaries({
    "dt_us": st.one_of(st.just(SECOND), st.integers(100_000, 10_000_000)),
    "energy_mj": maybe(st.none(), st.integers(0, 2**31 - 1)),
    "integral_mj": maybe(st.none(), st.integers(1, 2**31 - 1)),
    "energy_method": st.sampled_from([name for name in ENERGY_METHODS if name != "bridged"]),
    "power_instant_mw": maybe(st.none(), st.integers(0, 1_000_000)),
    "power_average_mw": maybe(st.none(), st.integers(0, 1_000_000)),
    "utilisation_pct": maybe(st.none(), st.integers(0, 100)),
    "power_cap": flag, "thermal_slowdown": flag, "hardware_slowdown": flag,
})  # fmt: skip
gap_row = st.fixed_dictionaries({
    "dt_us": st.one_of(st.integers(1, 20 * SECOND), st.integers(1, 70 * MINUTE)),
    "energy_mj": maybe(st.none(), st.integers(0, 2**31 - 1)),
    "energy_method": st.just("bridged"),
})  # fmt: skip
hole = st.integers(1, 100 * SECOND)


@st.composite
def timelines(draw: st.DrawFn) -> list[Row]:
    """Rows of one GPU in the order of time: seconds, gaps that are bridged, and holes of which nothing is known."""
    t_us = T0 + HOUR - draw(st.integers(0, 5 * MINUTE))
    rows: list[Row] = []
    for step in draw(st.lists(st.one_of(second_row, second_row, second_row, gap_row, hole), min_size=1, max_size=25)):
        if isinstance(step, int):
            t_us += step
            continue
        t_us += step["dt_us"]
        rows.append(dict.fromkeys(second_row_names(), None) | step | {"t_us": t_us})
    return rows


def second_row_names() -> list[str]:
    return ["energy_mj", "integral_mj", "power_instant_mw", "power_average_mw", "utilisation_pct", "power_cap",
            "thermal_slowdown", "hardware_slowdown"]  # fmt: skip


def dealt(draw: st.DataObject, rows: list[Row]) -> list[list[Row]]:
    """The rows in batches, in an order of their own."""
    order = draw.draw(st.permutations(rows)) if draw.draw(st.booleans()) else rows
    cuts = sorted(draw.draw(st.sets(st.integers(1, max(len(rows) - 1, 1)), max_size=4)))
    ends = [0, *cuts, len(rows)]
    return [part for a, b in itertools.pairwise(ends) if (part := list(order[a:b]))]


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, SampleWriter]]:
    """A store for all examples: each is a node of its own."""
    store = Store.open(tmp_path_factory.mktemp("rollup") / "s.duckdb")
    with writing(store, Clock(AFTER)) as taking:
        yield store, taking
    store.close()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), rows=timelines())
def test_minutes_and_hours_are_the_sums_of_raw(
    lasting: tuple[Store, SampleWriter], data: st.DataObject, rows: list[Row]
) -> None:
    """Late, in any order, sent twice, rolled up between: the same to 1e-9 as each row's exact share (law 9)."""
    store, taking = lasting
    node = f"n{uuid.uuid4().hex}"
    for sequence, part in enumerate(dealt(data, rows), 1):
        sent = batch(sequence, node=node, rows=part)
        assert not put(taking, sent).duplicate
        if data.draw(st.booleans()):
            roll_up_all(store)
        if data.draw(st.booleans()):
            assert put(taking, sent).duplicate
    roll_up_all(store)
    minutes, hours = buckets(store, "gpu_minute", f"{node}-0"), buckets(store, "gpu_hour", f"{node}-0")
    assert_equals(minutes, expected(rows, MINUTE))
    assert_equals(hours, expected(rows, HOUR))
    whole = expected(rows, 1000 * DAY)
    for name in SUMS:
        total = sum(bucket[name] or 0.0 for bucket in whole.values())
        for found in (minutes, hours):
            assert sum(row[name] for row in found.values()) == pytest.approx(total, rel=1e-9, abs=1e-9), name
    assert roll_up_all(store) == 0  # nothing is left to do
    assert waiting_minutes(store) == 0


# By hand


def take(store: Store, *batches: Any) -> None:
    with writing(store, Clock(AFTER)) as taking:
        for one in batches:
            put(taking, one)


def test_a_second_across_a_minute_is_shared_by_time(store: Store) -> None:
    # covers (59.75 s, 60.75 s]: a quarter of 400 J and of its second lies in the first minute
    row = {"t_us": T0 + 60_750_000, "energy_mj": 400_000, "power_instant_mw": 400_000, "utilisation_pct": 5}
    take(store, batch(1, rows=[row]))
    assert roll_up_all(store) == 2 + 1
    found = buckets(store, "gpu_minute")
    assert [(row["counter_j"], row["covered_s"], row["busy_s"], row["max_power_w"]) for row in found.values()] == [
        (pytest.approx(100.0), pytest.approx(0.25), pytest.approx(0.25), 400.0),
        (pytest.approx(300.0), pytest.approx(0.75), pytest.approx(0.75), 400.0),
    ]
    assert list(found) == [T0, T0 + MINUTE]
    assert [row["counter_j"] for row in buckets(store, "gpu_hour").values()] == [pytest.approx(400.0)]


def test_a_bridge_is_spread_evenly_over_its_minutes_and_hours(store: Store) -> None:
    # 90 min from half past: 30 min in the first hour, 60 in the next; 5.4 MJ are 60 kJ a minute
    gap = {"t_us": T0 + 2 * HOUR, "dt_us": 90 * MINUTE, "energy_method": "bridged", "energy_mj": 5_400_000_000}
    take(store, batch(1, rows=[gap]))
    roll_up_all(store)
    assert {row["interpolated_j"] for row in buckets(store, "gpu_minute").values()} == {60_000.0}
    assert {start: row["interpolated_j"] for start, row in buckets(store, "gpu_hour").items()} == {
        T0: pytest.approx(1.8e6), T0 + HOUR: pytest.approx(3.6e6),
    }  # fmt: skip
    hour = buckets(store, "gpu_hour")[T0 + HOUR]
    assert (hour["covered_s"], hour["bridged_s"], hour["provisioned_s"], hour["samples"]) == (0, 3600, 3600, 0)


def test_a_gap_of_unknown_energy_is_provisioned_and_no_more(store: Store) -> None:
    """Missing is not 0 (law 2): the seconds count as there, their energy as neither covered nor bridged."""
    take(store, batch(1, rows=[{"t_us": T0 + MINUTE, "dt_us": MINUTE, "energy_method": "bridged"}]))
    roll_up_all(store)
    (row,) = buckets(store, "gpu_minute").values()
    assert (row["provisioned_s"], row["bridged_s"], row["covered_s"], row["interpolated_j"]) == (60, 0, 0, 0)
    assert (row["mean_power_w"], row["max_power_w"], row["mean_temperature_c"]) == (None, None, None)


def test_a_minute_is_rolled_up_when_it_has_ended_and_settled(store: Store) -> None:
    take(store, batch(1, rows=seconds(T0, 60)))
    # the minute ends at 60 s; pushes have 15 s to arrive
    assert roll_up_all(store, T0 + 75 * SECOND) == 0
    assert waiting_minutes(store) == 1
    assert roll_up_all(store, T0 + 75 * SECOND + 1) == 1 + 1
    assert waiting_minutes(store) == 0


def test_only_what_was_touched_is_rebuilt(store: Store) -> None:
    rows = [row for hour in range(3) for row in seconds(T0 + hour * HOUR, 90)]
    take(store, batch(1, rows=rows), batch(1, node="node-8", rows=rows))
    roll_up_all(store)
    with store.transaction() as connection:  # marks: a rebuilt bucket loses its own
        connection.execute("UPDATE gpu_minute SET samples = -1")
        connection.execute("UPDATE gpu_hour SET samples = -99")
    take(store, batch(2, rows=[{"t_us": T0 + HOUR + 200 * SECOND, "energy_mj": 5}]))
    assert roll_up_all(store) == 1 + 1
    rebuilt = [start for start, row in buckets(store, "gpu_minute").items() if row["samples"] != -1]
    assert rebuilt == [T0 + HOUR + 3 * MINUTE]
    assert [start for start, row in buckets(store, "gpu_hour").items() if row["samples"] != -99] == [T0 + HOUR]
    assert {row["samples"] for row in buckets(store, "gpu_minute", "node-8-0").values()} == {-1}


def test_repeating_a_rollup_changes_nothing(store: Store) -> None:
    take(store, batch(1, rows=seconds(T0 + HOUR - 90 * SECOND, 200)))
    roll_up_all(store)
    before = [buckets(store, table) for table in ("gpu_minute", "gpu_hour")]
    with store.transaction() as connection:
        connection.execute("INSERT INTO dirty_minute SELECT 1, minute_us FROM gpu_minute")
    assert roll_up_all(store) == len(before[0]) + len(before[1]) == 4 + 2
    assert [buckets(store, table) for table in ("gpu_minute", "gpu_hour")] == before


def test_a_backlog_is_worked_off_in_small_transactions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup, "MAX_PAIRS", 7)
    rows = [row for minute in range(150) for row in seconds(T0 + minute * MINUTE, 2)]
    take(store, batch(1, rows=rows))
    done = []
    while one := roll_up(store, AFTER, oldest_raw_us=0, oldest_minute_us=0):
        done.append(one)
    # and the use of three hours, each once its minutes are done
    assert (sum(done), max(done)) == (150 + 3, 7 + 1)
    assert [row["counter_j"] for row in buckets(store, "gpu_hour").values()] == [36_000.0, 36_000.0, 18_000.0]


def test_a_rollup_that_fails_leaves_all_as_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    take(store, batch(1, rows=seconds(T0, 90)))
    roll_up_all(store)
    take(store, batch(2, rows=seconds(T0 + 100 * SECOND, 5)))
    before = (buckets(store, "gpu_minute"), waiting_minutes(store))
    with monkeypatch.context() as patched:
        gpus = rollup.SUBJECTS[0]
        broken = replace(gpus.tables[0], rebuild_hours="SELECT error('disk: ' || $1 || $2)")
        patched.setattr(rollup, "SUBJECTS", (replace(gpus, tables=(broken,)),))
        with pytest.raises(Exception, match="disk"):
            roll_up_all(store)
    assert (buckets(store, "gpu_minute"), waiting_minutes(store)) == before
    roll_up_all(store)
    assert sum(row["counter_j"] for row in buckets(store, "gpu_minute").values()) == pytest.approx(95 * 300.0)


def test_a_gpu_that_moves_to_another_node_keeps_its_samples_in_the_rollups(store: Store) -> None:
    """A node was renamed before its last minutes were rolled up (or its spool came in one go with the new name's)."""
    card = [gpu(uuid="card")]
    take(
        store,
        batch(1, node="old-name", gpus=card, rows=seconds(T0, 60)),
        batch(1, node="new-name", gpus=card, rows=seconds(T0 + 10 * MINUTE, 60)),
    )
    roll_up_all(store)
    assert {start: row["counter_j"] for start, row in buckets(store, "gpu_minute", "card").items()} == {
        T0: pytest.approx(18_000.0), T0 + 10 * MINUTE: pytest.approx(18_000.0),
    }  # fmt: skip


def test_covered_seconds_have_their_energy_in_one_of_the_sums(store: Store) -> None:
    """Law 4: a number without its method is not measured. The wire allows an energy beside a null method."""
    take(store, batch(1, rows=[{"t_us": T0 + SECOND, "energy_mj": 300_000, "energy_method": None}]))
    roll_up_all(store)
    (row,) = buckets(store, "gpu_minute").values()
    energy_j = row["counter_j"] + row["integral_j"] + row["interpolated_j"]
    assert (row["covered_s"], energy_j) in ((1.0, pytest.approx(300.0)), (0.0, 0.0))


# Without raw samples


def test_a_minute_without_its_raw_samples_is_not_rebuilt(store: Store) -> None:
    take(store, batch(1, rows=seconds(T0, 120)))
    roll_up_all(store)
    before = buckets(store, "gpu_minute")
    with store.transaction() as connection:
        connection.execute("DELETE FROM gpu_sample")
    late = [{"t_us": T0 + 30 * SECOND, "energy_mj": 1}, {"t_us": T0 + 90 * SECOND, "energy_mj": 1}]
    take(store, batch(2, rows=late))
    # raw is complete from 60 s on: the first minute keeps its row, the second is what its one sample says
    assert roll_up_all(store, oldest_raw_us=T0 + MINUTE) == 2 + 1
    found = buckets(store, "gpu_minute")
    assert found[T0] == before[T0]
    assert found[T0 + MINUTE]["counter_j"] == pytest.approx(1e-3)
    assert waiting_minutes(store) == 0


def test_a_minute_that_lost_a_part_of_its_raw_samples_is_not_rebuilt(store: Store) -> None:
    take(store, batch(1, rows=seconds(T0, 60)))
    roll_up_all(store)
    before = buckets(store, "gpu_minute")
    take(store, batch(2, rows=[{"t_us": T0 + 50 * SECOND, "energy_mj": 1}]))
    roll_up_all(store, oldest_raw_us=T0 + 1)
    assert buckets(store, "gpu_minute") == before


def test_a_bridge_over_minutes_without_raw_samples_is_credited_where_no_row_is(store: Store) -> None:
    take(store, batch(1, rows=seconds(T0, 60)))
    roll_up_all(store)
    before = buckets(store, "gpu_minute")
    # the node was away for 9 minutes after its first; 54 kJ by the counter across them are 6 kJ a minute
    gap = {"t_us": T0 + 10 * MINUTE, "dt_us": 9 * MINUTE, "energy_method": "bridged", "energy_mj": 54_000_000}
    take(store, batch(2, rows=[gap]))
    roll_up_all(store, oldest_raw_us=T0 + 20 * MINUTE)
    found = buckets(store, "gpu_minute")
    assert found[T0] == before[T0]
    assert {start: row["interpolated_j"] for start, row in found.items() if start > T0} == {
        T0 + minute * MINUTE: pytest.approx(6_000.0) for minute in range(1, 10)
    }
    # 60 x 300 J and the bridge
    assert buckets(store, "gpu_hour")[T0]["interpolated_j"] == pytest.approx(54_000.0)
    assert buckets(store, "gpu_hour")[T0]["counter_j"] == pytest.approx(18_000.0)


def test_an_hour_whose_minutes_are_gone_is_not_rebuilt(store: Store) -> None:
    take(store, batch(1, rows=[row for hour in range(2) for row in seconds(T0 + hour * HOUR, 60)]))
    roll_up_all(store)
    before = buckets(store, "gpu_hour")
    with store.transaction() as connection:
        connection.execute("DELETE FROM gpu_minute WHERE minute_us < $1", [T0 + HOUR])
    take(store, batch(2, rows=[{"t_us": T0 + hour * HOUR + 200 * SECOND, "energy_mj": 1000} for hour in range(2)]))
    roll_up_all(store, oldest_minute_us=T0 + HOUR)
    after = buckets(store, "gpu_hour")
    assert after[T0] == before[T0]
    assert after[T0 + HOUR]["counter_j"] == pytest.approx(60 * 300.0 + 1.0)


# Cost


def profile_of_a_rebuild(store: Store, profile: Path) -> list[dict[str, Any]]:
    """The operators of one rebuild of the minutes that are due, with DuckDB's own counts."""
    gpus = rollup.SUBJECTS[0]
    due = store.query(rollup._take_dirty(gpus), [AFTER, rollup.SPAN_US, rollup.MAX_PAIRS])
    with store.transaction() as connection:
        connection.register("due", due)
        connection.execute(rollup._touched(gpus), [0])
        first, last = rollup._bounds(due)
        connection.execute("SET enable_profiling = 'json'")
        connection.execute(f"SET profiling_output = '{profile}'")
        connection.execute(gpus.tables[0].rebuild_minutes, [first, last + MINUTE])
        connection.execute("SET enable_profiling = 'no_output'")
        connection.unregister("due")
    return list(_operators(json.loads(profile.read_text())))


def _operators(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """DuckDB 2 names the operators and their counts otherwise than 1.5."""
    if "extra_info" in node:
        yield {
            "type": node.get("type", node.get("operator_type")),
            "table": str(node["extra_info"].get("Table", "")),
            "scanned": int(node.get("rows_scanned", node.get("operator_rows_scanned", 0))),
            "rows": int(node.get("intermediate_rows", node.get("operator_cardinality", 0))),
        }
    for child in (*node.get("children", []), *node.get("operator", [])):
        yield from _operators(child)


def add_history(store: Store, first_us: int, rows: int) -> None:
    """Raw samples of GPU 1, a second each, straight into the table."""
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO gpu_sample (gpu_id, t_us, dt_us, energy_mj, energy_method) "
            "SELECT 1, $1 + (i + 1) * 1000000, 1000000, 300000, 0 FROM range($2) AS r(i)",
            [first_us, rows],
        )
    store._connection.execute("CHECKPOINT")


def test_the_cost_of_a_rollup_does_not_grow_with_the_raw_table(store: Store, tmp_path: Path) -> None:
    """One minute's rebuild after 0.3 and after 1.5 million older rows reads about as many: a row group at most more."""
    take(store, batch(1, rows=seconds(T0 - 18 * DAY, 1)))
    roll_up_all(store)
    scanned = []
    for sequence, history in ((2, 300_000), (3, 1_200_000)):
        add_history(store, T0 - 17 * DAY + sequence * DAY, history // 10)
        add_history(store, T0 - 17 * DAY, history)
        take(store, batch(sequence, rows=seconds(T0 + sequence * HOUR, 60)))
        operators = profile_of_a_rebuild(store, tmp_path / "profile.json")
        scanned.append(sum(one["scanned"] for one in operators if "gpu_sample" in one["table"]))
        roll_up_all(store)
    row_group = 122_880
    assert 0 < scanned[1] <= scanned[0] + row_group < 300_000


def test_a_long_bridge_costs_a_rollup_the_minutes_it_rebuilds_and_no_more(store: Store, tmp_path: Path) -> None:
    """The wire allows a gap of a year: half a million minutes, of which one rollup builds a day's."""
    gap = {"t_us": T0 + 2 * HOUR, "dt_us": 300 * DAY, "energy_method": "bridged", "energy_mj": 9}
    take(store, batch(1, rows=[gap]))
    operators = profile_of_a_rebuild(store, tmp_path / "profile.json")
    assert operators and max(one["rows"] for one in operators) <= 1_442
