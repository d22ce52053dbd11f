"""Raw rows of the last minutes: each engine in its own window, GPUs in their engines', and nothing else is read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.config import Config
from app.store.database import Store
from app.store.live import BIN_S, LiveRows, LiveWindow, history_bounds_us, live_rows, questions
from app.store.membership import assign_fleets
from app.store.rollup import roll_up
from collectors.samples import Batch, Engine
from tests.batches import (
    DAY,
    HOUR,
    MINUTE,
    MODEL,
    SECOND,
    T0,
    URL,
    Clock,
    Row,
    at,
    batch,
    engine,
    put,
    seconds,
    uuid_of,
    writing,
)

NOW = T0 + HOUR


def asked(store: Store, now_us: int = NOW, *, window_s: int = 60, long_s: int = 300) -> LiveRows:
    return live_rows(store, LiveWindow(at(now_us), window_s, long_s))


def take(store: Store, *batches: Batch, clock_us: int = NOW) -> None:
    with writing(store, Clock(clock_us)) as taking:
        for one in batches:
            put(taking, one)


def scrapes(end_us: int, count: int, **values: Any) -> list[Row]:
    """A row every five seconds; the last ends at end_us."""
    return [{"t_us": end_us - number * 5 * SECOND, **values} for number in reversed(range(count))]


def only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = rows
    return row


# Engines


def test_sums_of_the_newest_minute_and_five(store: Store) -> None:
    """12 rows of 5 s in the minute, 60 in the five; each 100 + 20 tokens and 2 requests, one of them failed."""
    row = {"prompt_tokens": 100, "generated_tokens": 20, "finished_stop": 1, "finished_failed": 1, "ttft_us": 9}
    rows = scrapes(NOW - 3 * SECOND, 100, **row, running=4, waiting=1, kv_usage_ppm=250_000)
    take(store, batch(1, engine_rows=rows))
    found = only(asked(store).engines)
    assert (found["start_us"], found["end_us"]) == (NOW - 63 * SECOND, NOW - 3 * SECOND)
    assert (found["tokens"], found["tokens_s"]) == (12 * 120, 60)
    assert (found["generated_tokens"], found["generated_s"]) == (12 * 20, 60)
    assert (found["finished"], found["finished_s"], found["failed"], found["failed_s"]) == (12, 60, 12, 60)
    assert (found["long_ended"], found["long_ended_s"]) == (60 * 2, 300)
    assert (found["running"], found["waiting"], found["kv_usage_ppm"]) == (4, 1, 250_000)
    # 60 x 20 tokens over 4 requests x 300 s
    assert found["long_tokens_per_request_s"] == pytest.approx(1.0)
    assert found["tells_ttft"] is True
    assert (found["uuids"], found["model"], found["status"]) == (["node-7-0"], MODEL, "ok")


def test_each_engine_has_a_window_of_its_own(store: Store) -> None:
    """Nodes push at other times: that one is 8 s behind the other does not thin out its minute."""
    for node, behind_s in (("node-7", 1), ("node-8", 9)):
        rows = scrapes(NOW - behind_s * SECOND, 30, prompt_tokens=10, generated_tokens=0)
        take(store, batch(1, node=node, engines=[engine(gpus=[uuid_of(node)])], engine_rows=rows))
    assert [(row["node"], row["tokens"], row["tokens_s"]) for row in asked(store).engines] == [
        ("node-7", 120, 60), ("node-8", 120, 60),
    ]  # fmt: skip


def test_an_earlier_moment_is_answered_as_it_was(store: Store) -> None:
    """Rows after it do not count."""
    take(store, batch(1, engine_rows=scrapes(NOW, 60, prompt_tokens=10, generated_tokens=0)))
    take(store, batch(2, engine_rows=scrapes(NOW + 10 * SECOND, 2, prompt_tokens=9_999, generated_tokens=0)),
         clock_us=NOW + 10 * SECOND)  # fmt: skip
    assert only(asked(store).engines)["tokens"] == 120
    assert only(asked(store, NOW + 10 * SECOND).engines)["tokens"] == 10 * 10 + 2 * 9_999


def test_what_is_not_told_is_none_and_only_told_seconds_count(store: Store) -> None:
    """Law 2: three scrapes without generated tokens are neither 0 tokens nor 15 s of them."""
    rows = scrapes(NOW, 12, prompt_tokens=10, generated_tokens=5)
    for row in rows[:3]:
        row["generated_tokens"] = None  # type: ignore[index]
    take(store, batch(1, engine_rows=rows))
    found = only(asked(store).engines)
    assert (found["tokens"], found["tokens_s"]) == (9 * 15, 45)
    assert (found["finished"], found["finished_s"], found["failed"], found["running"]) == (None, None, None, None)
    assert (found["long_ended"], found["long_tokens_per_request_s"]) == (None, None)
    assert found["tells_ttft"] is False


def test_what_happened_in_a_gap_is_not_of_this_moment(store: Store) -> None:
    gap = {"t_us": NOW - 20 * SECOND, "dt_us": 10 * MINUTE, "prompt_tokens": 9_999, "generated_tokens": 0,
           "ttft_buckets": [50, 0, 0, 0]}  # fmt: skip
    rows = scrapes(NOW, 4, prompt_tokens=10, generated_tokens=0, ttft_buckets=[1, 0, 0, 0])
    take(store, batch(1, engine_rows=[gap, *rows]))
    found = asked(store)
    assert (only(found.engines)["tokens"], only(found.engines)["start_us"]) == (40, NOW - 20 * SECOND)
    assert found.ttft == {1: [(0, 10_000, 4)]}


def test_an_engine_without_fresh_rows_is_there_without_sums(store: Store) -> None:
    take(store, batch(1, engine_rows=scrapes(NOW - 61 * SECOND, 3, prompt_tokens=10, generated_tokens=0)))
    found = only(asked(store).engines)
    assert (found["end_us"], found["tokens"], found["status"], found["last_seen"]) == (None, None, "ok", at(NOW))
    assert asked(store).ttft == {}


@pytest.mark.parametrize(
    ("status", "age_s", "shown"),
    [("ok", 3599, True), ("ok", 3600, False), ("refused", 86_399, True), ("refused", 86_400, False)],
)
def test_a_silent_engine_is_forgotten_after_an_hour_and_one_that_is_down_after_a_day(
    store: Store, status: str, age_s: int, shown: bool
) -> None:
    take(store, batch(1, engines=[engine(status=status)]))
    assert bool(asked(store, NOW + age_s * SECOND).engines) is shown


def engines_at(store: Store, *moments: tuple[int, Engine]) -> list[Any]:
    """Models shown at NOW + 2 min, of engines that were heard of at those seconds before."""
    clock = Clock()
    with writing(store, clock) as taking:
        for sequence, (before_s, one) in enumerate(moments, 1):
            clock.us = NOW + (120 - before_s) * SECOND
            put(taking, batch(sequence, engines=[one]))
    return [row["model"] for row in asked(store, NOW + 120 * SECOND).engines]


def test_an_engine_that_another_replaced_at_its_url_is_not_shown(store: Store) -> None:
    assert engines_at(store, (100, engine(model="org/old")), (5, engine())) == [MODEL]


def test_two_models_of_one_url_are_both_shown(store: Store) -> None:
    assert engines_at(store, (10, engine(model="org/one")), (5, engine(model="org/two"))) == ["org/one", "org/two"]


def test_another_url_replaces_nothing(store: Store) -> None:
    found = engines_at(store, (100, engine(model="org/old")), (5, engine(url=f"{URL}2")))
    assert sorted(found) == [MODEL, "org/old"]


def test_what_was_noted_before_the_model_was_known_is_not_shown(store: Store) -> None:
    assert engines_at(store, (20, engine(model=None, status="refused")), (5, engine())) == [MODEL]


def test_an_engine_that_never_told_its_model_is_shown(store: Store) -> None:
    assert engines_at(store, (20, engine(model=None, status="refused")), (5, engine(url=f"{URL}3"))) == [None, MODEL]


# First tokens


def test_first_tokens_of_five_minutes_by_bucket(store: Store) -> None:
    """Only of the TTFT: the other latencies have buckets of their own."""
    row = {"ttft_buckets": [1, 0, 0, 2], "itl_buckets": [7, 7, 7, 7], "e2e_buckets": [8, 8, 8, 8]}
    take(store, batch(1, engine_rows=scrapes(NOW - 5 * SECOND, 70, **row)))
    assert {one: sorted(buckets) for one, buckets in asked(store).ttft.items()} == {
        1: [(0, 10_000, 60), (100_000, None, 120)]
    }


# GPUs


def test_the_energy_of_a_gpu_is_that_of_its_engine_s_window(store: Store) -> None:
    """The window is (NOW - 65, NOW - 5]. 100 W before it, 300 W in it, 900 W after it: 60 x 300 J."""
    gpus = [
        *seconds(NOW - 100 * SECOND, 35, energy_mj=100_000), *seconds(NOW - 65 * SECOND, 60),
        *seconds(NOW - 5 * SECOND, 5, energy_mj=900_000),
    ]  # fmt: skip
    take(store, batch(1, rows=gpus, engine_rows=scrapes(NOW - 5 * SECOND, 30, generated_tokens=1)))
    found = only(asked(store).gpus)
    assert (found["energy_j"], found["covered_s"], found["window_s"]) == (18_000.0, 60.0, 60.0)


def test_a_second_that_lies_half_in_the_window_counts_half(store: Store) -> None:
    gpus = seconds(NOW - 70 * SECOND - SECOND // 2, 71)  # whole seconds end at half ones
    take(store, batch(1, rows=gpus, engine_rows=scrapes(NOW, 12, generated_tokens=1)))
    found = only(asked(store).gpus)
    # (NOW - 60, NOW]: half a second of 300 J, and 59 whole ones up to NOW - 0.5, then nothing for half a second; and
    # the row that ends at NOW + 0.5 is of the future
    assert found["covered_s"] == pytest.approx(59.5)
    assert found["energy_j"] == pytest.approx(59.5 * 300)


def test_energy_without_a_method_or_a_value_is_not_covered_and_a_bridge_is_left_out(store: Store) -> None:
    gpus = seconds(NOW - 60 * SECOND, 60)
    for row in gpus[:10]:
        row["energy_method"] = None  # type: ignore[index]
    for row in gpus[10:20]:
        row["energy_mj"] = None  # type: ignore[index]
    for row in gpus[20:30]:
        row["energy_method"] = "bridged"  # type: ignore[index]
    take(store, batch(1, rows=gpus))
    found = only(asked(store).gpus)
    assert (found["energy_j"], found["covered_s"]) == (30 * 300.0, 30.0)


def test_a_gpu_without_an_engine_has_its_own_newest_minute(store: Store) -> None:
    take(store, batch(1, rows=seconds(NOW - 100 * SECOND, 90)))
    found = only(asked(store).gpus)
    assert (found["energy_j"], found["window_s"], found["last_us"]) == (18_000.0, 60.0, NOW - 10 * SECOND)


def test_two_engines_on_one_gpu_have_the_window_of_both(store: Store) -> None:
    """Scrapes end at NOW - 5 s and NOW - 10 s: together 65 s."""
    two = [engine(label="0"), engine(label="1")]
    rows = [
        row | {"engine": position}
        for position in (0, 1)
        for row in scrapes(NOW - (5 + 5 * position) * SECOND, 20, generated_tokens=1)
    ]
    take(store, batch(1, rows=seconds(NOW - 100 * SECOND, 100), engines=two, engine_rows=rows))
    found = only(asked(store).gpus)
    assert (found["window_s"], found["energy_j"]) == (65.0, 65 * 300.0)


def test_seconds_of_heat_are_counted(store: Store) -> None:
    rows = [*seconds(NOW - 60 * SECOND, 45), *seconds(NOW - 15 * SECOND, 15, thermal_slowdown=True, power_cap=True)]
    take(store, batch(1, rows=rows))
    assert only(asked(store).gpus)["slowed_s"] == 15.0


def test_a_gpu_that_has_no_fresh_samples_is_known_by_its_minutes_for_an_hour(store: Store) -> None:
    take(store, batch(1, rows=seconds(NOW - 10 * MINUTE, 60)))
    while roll_up(store, NOW, oldest_raw_us=0, oldest_minute_us=0):
        pass
    found = only(asked(store).gpus)
    assert (found["energy_j"], found["window_s"], found["last_us"]) == (None, None, NOW - 9 * MINUTE)
    assert asked(store, NOW + 50 * MINUTE).gpus == []


# Fleets


def test_nodes_are_in_the_fleet_that_was_known_at_that_moment(store: Store) -> None:
    take(store, batch(1, rows=seconds(NOW - 5 * SECOND, 10), engine_rows=scrapes(NOW + 5 * SECOND, 3)),
         clock_us=NOW - 5 * SECOND)  # fmt: skip
    for name, known_us in (("old", NOW - 4 * SECOND), ("new", NOW + 2 * SECOND)):
        fleet = {"fleet": [{"name": name, "gpu": "*"}], "node": [{"match": "*", "fleet": name}]}
        assign_fleets(store, Config.model_validate(fleet), at(known_us))
    for now_us, fleet_name in ((NOW + 5 * SECOND, "new"), (NOW, "old")):
        found = asked(store, now_us)
        assert (only(found.engines)["fleet"], only(found.gpus)["fleet"]) == (fleet_name, fleet_name)


def test_a_simulated_node_is_marked(store: Store) -> None:
    take(store, batch(1, rows=seconds(NOW - 5 * SECOND, 5), engine_rows=scrapes(NOW, 3), simulated=True))
    found = asked(store)
    assert (only(found.engines)["simulated"], only(found.gpus)["simulated"]) == (True, True)


def test_gpus_are_those_that_were_known_at_that_moment(store: Store) -> None:
    for number, uuid in enumerate(("node-7-0", "node-7-1")):
        take(store, batch(number + 1, engines=[engine(gpus=[uuid])]), clock_us=NOW + number * MINUTE)
    assert [only(asked(store, now_us).engines)["uuids"] for now_us in (NOW, NOW + MINUTE)] == [
        ["node-7-0"], ["node-7-1"],
    ]  # fmt: skip


# History


def test_history_is_whole_bins_up_to_what_has_had_time_to_arrive(store: Store) -> None:
    # (NOW - 15 s) is the start of a bin, as NOW is the start of an hour
    assert history_bounds_us(NOW) == (NOW - 915 * SECOND, NOW - 15 * SECOND)
    assert history_bounds_us(NOW + 14 * SECOND) == history_bounds_us(NOW)
    assert history_bounds_us(NOW + 15 * SECOND) == (NOW - 900 * SECOND, NOW)


def test_history_sums_the_rates_of_a_fleet_s_engines_and_leaves_gaps_out(store: Store) -> None:
    """Two nodes: 120 tokens in 5 s are 24/s; one of them is away for the 15 s before, the other goes on after."""
    bin_us, end_us = BIN_S * SECOND, NOW - 15 * SECOND
    away = [*scrapes(end_us - 2 * bin_us, 3), *scrapes(end_us, 3)]
    for node, rows in (("node-7", scrapes(NOW, 12)), ("node-8", away)):
        told = [row | {"prompt_tokens": 100, "generated_tokens": 20} for row in rows]
        take(store, batch(1, node=node, engine_rows=told))
    assert [(row["bin_us"], row["tokens_per_s"]) for row in asked(store).history] == [
        (end_us - 3 * bin_us, pytest.approx(48)), (end_us - 2 * bin_us, pytest.approx(24)),
        (end_us - bin_us, pytest.approx(48)),
    ]  # fmt: skip


def test_a_row_across_bins_gives_each_its_part(store: Store) -> None:
    """A minute's row covers four bins alike; a longer one is a gap and gives none."""
    end_us = NOW - 15 * SECOND
    rows = [
        {"t_us": end_us - 5 * MINUTE, "dt_us": 5 * MINUTE, "prompt_tokens": 999, "generated_tokens": 0},
        {"t_us": end_us, "dt_us": MINUTE, "prompt_tokens": 500, "generated_tokens": 100},
    ]
    take(store, batch(1, engine_rows=rows))
    found = asked(store).history
    assert [row["tokens_per_s"] for row in found] == [pytest.approx(10.0)] * 4
    assert [row["bin_us"] for row in found] == [end_us - left * SECOND for left in (60, 45, 30, 15)]


# Cost


def test_all_questions_are_of_one_moment_of_the_store(store: Store) -> None:
    take(store, batch(1, rows=seconds(NOW - 60 * SECOND, 60)))
    with store.snapshot() as read:
        first = read("SELECT count(*) AS n FROM gpu_sample", [])["n"][0]
        take(store, batch(2, rows=seconds(NOW, 10)))
        assert read("SELECT count(*) AS n FROM gpu_sample", [])["n"][0] == first == 60
    assert store.query("SELECT count(*) AS n FROM gpu_sample")["n"][0] == 70


RAW = ("gpu_sample", "engine_sample", "engine_latency_sample", "gpu_minute")


def add_history(store: Store, first_us: int, rows: int) -> None:
    """Older rows of GPU and engine 1, straight into the tables, in the order of time as they come in life."""
    with store.transaction() as connection:
        for sql in (
            "INSERT INTO gpu_sample (gpu_id, t_us, dt_us, energy_mj, energy_method) "
            "SELECT 1, $1 + (i + 1) * 1000000, 1000000, 300000, 0 FROM range($2) AS r(i)",
            "INSERT INTO engine_sample (engine_id, t_us, dt_us, prompt_tokens, generated_tokens) "
            "SELECT 1, $1 + (i + 1) * 1000000, 1000000, 100, 20 FROM range($2) AS r(i)",
            "INSERT INTO engine_latency_sample SELECT 1, $1 + (i + 1) * 1000000, 1000000, 0, 1, 0, [2] "
            "FROM range($2) AS r(i)",
            "INSERT INTO gpu_minute SELECT 1, $1 + i * 1000000, 18000, 0, 0, 60, 0, 60, 0, 60, 60, 300, 300, 50, 50, "
            "0, 0, 60 FROM range($2) AS r(i)",
        ):
            connection.execute(sql, [first_us, rows])
    store._connection.execute("CHECKPOINT")


def scanned(store: Store, now_us: int, profile: Path) -> dict[str, int]:
    """Rows that all questions of one moment read of each raw table, by DuckDB's own counts."""
    found = dict.fromkeys(RAW, 0)
    with store.transaction() as connection:
        for sql, parameters in questions(LiveWindow(at(now_us), 60, 300)):
            connection.execute("SET enable_profiling = 'json'")
            connection.execute(f"SET profiling_output = '{profile}'")
            connection.sql(sql, params=parameters).pl()
            connection.execute("SET enable_profiling = 'no_output'")
            for table, rows in _scans(json.loads(profile.read_text())):
                for name in RAW:
                    found[name] += rows if table.split(".")[-1].strip('"') == name else 0
    return found


def _scans(node: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """(table, rows scanned) of each operator; DuckDB 2 names the counts otherwise than 1.5."""
    if "Table" in node.get("extra_info", {}):
        yield str(node["extra_info"]["Table"]), int(node.get("rows_scanned", node.get("operator_rows_scanned", 0)))
    for child in itertools.chain(node.get("children", []), node.get("operator", [])):
        yield from _scans(child)


def test_the_cost_does_not_grow_with_the_raw_tables(store: Store, tmp_path: Path) -> None:
    """After 150 and after 750 thousand older rows about as many are read: for each of its scans a row group at most
    more."""
    found = []
    for number, history in enumerate((150_000, 600_000)):
        now_us = NOW + number * HOUR
        add_history(store, NOW - 25 * DAY + number * 5 * DAY, history)
        add_history(store, now_us - 30 * MINUTE, 29 * 60)
        rows = scrapes(now_us, 12, ttft_buckets=[1, 0, 0, 0])
        take(store, batch(number + 1, rows=seconds(now_us - 60 * SECOND, 60), engine_rows=rows), clock_us=now_us)
        found.append(scanned(store, now_us, tmp_path / "profile.json"))
    row_group = 122_880
    scans = {"gpu_sample": 2, "engine_sample": 6, "engine_latency_sample": 1, "gpu_minute": 1}
    for table in RAW:
        before, after = (one[table] for one in found)
        assert 0 < after <= before + scans[table] * row_group, (table, found)
