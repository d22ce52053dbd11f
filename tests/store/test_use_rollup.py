"""What engines make of GPUs adds up to what was measured of the GPUs, whoever shares them and whatever comes when."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.store import rollup, schema, use_rollup
from app.store.database import Store
from app.store.migrations import MIGRATIONS
from app.store.retention import delete_expired
from app.store.rollup import waiting_minutes
from app.store.writer import SampleWriter
from collectors.samples import Batch, Engine
from tests.batches import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    T0,
    Clock,
    Row,
    batch,
    count,
    engine,
    gpu,
    put,
    uuid_of,
    writing,
)
from tests.store.test_rollup import AFTER, _operators, roll_up_all
from tests.store.use_by_hand import World, by_hour, recomputed

SUMS = (
    "provisioned_s", "used_s", "known_j", "interpolated_j", "estimated_j", "unknown_s", "idle_j", "covered_s",
    "bridged_s", "throttled_s",
)  # fmt: skip
CARDS, ENGINES = 2, 3
Placement = tuple[int, ...] | None
Key = tuple[int, int | None, int]

# grain: as the table; the GPU by its index, the engine by its number on its node from 0 on
_USE = """
    SELECT use.*, gpu_index, engine_id - (SELECT min(engine_id) FROM engine WHERE node_id = node.node_id) AS number
    FROM gpu_use_{bucket} AS use JOIN gpu USING (gpu_id) JOIN node USING (node_id) WHERE node.name = $1
"""


def use(store: Store, bucket: str = "minute", node: str = "node-7") -> dict[Key, dict[str, Any]]:
    """(GPU's index, engine's number, bucket start) -> its row; none appears twice."""
    rows = store.query(_USE.format(bucket=bucket), [node])
    found = {(row["gpu_index"], row["number"], row[f"{bucket}_us"]): row for row in rows.iter_rows(named=True)}
    assert len(found) == rows.height
    return found


def engines_at(placements: Mapping[int, Placement], node: str = "node-7") -> list[Engine]:
    return [
        engine(
            url=f"http://h:{8000 + number}/metrics",
            model=f"m{number}",
            gpus=None if cards is None else [uuid_of(node, index) for index in cards],
        )
        for number, cards in placements.items()
    ]


def take(store: Store, *batches: Batch) -> None:
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        for one in batches:
            put(taking, one)


def figures(row: Mapping[str, Any], *names: str) -> list[float]:
    return [round(row[name], 9) for name in names]


# Whole worlds, by chance


def _gpu_rows(rng: random.Random, first_us: int, end_us: int) -> Iterator[Row]:
    """Samples, gaps with and without an energy, and holes of which nothing is known."""
    t_us = first_us
    while t_us < end_us:
        kind = rng.choice(["row"] * 6 + ["silent"] * 2 + ["gap", "hole"])
        if kind == "hole":
            t_us += rng.randrange(1, 90 * MINUTE)
            continue
        dt_us = rng.choice([MINUTE, rng.randrange(1, MINUTE), rng.randrange(20 * SECOND, MINUTE)])
        if kind == "gap":
            dt_us = rng.randrange(1, 100 * MINUTE)
        energy = None if kind == "silent" or rng.random() < 0.1 else rng.randrange(60_000_000)
        method = "bridged" if kind == "gap" else rng.choice(["counter", "integral_instant"])
        t_us += dt_us
        throttled = rng.random() < 0.1
        yield {"t_us": t_us, "dt_us": dt_us, "energy_mj": energy, "energy_method": method,
               "thermal_slowdown": throttled}  # fmt: skip


def _engine_rows(rng: random.Random, first_us: int, end_us: int) -> Iterator[Row]:
    t_us = first_us
    while t_us < end_us:
        if rng.random() < 0.15:
            t_us += rng.randrange(1, 100 * MINUTE)
            continue
        dt_us = rng.choice([rng.randrange(1, 2 * SECOND), rng.randrange(1, MINUTE), rng.randrange(1, 40 * MINUTE)])
        t_us += dt_us
        busy = rng.random() < 0.5
        yield {
            "t_us": t_us,
            "dt_us": dt_us,
            "running": rng.choice([None, 0, 2 if busy else 0]),
            "prompt_tokens": rng.choice([None, 0, rng.randrange(10_000) if busy else 0]),
            "generated_tokens": rng.choice([None, rng.randrange(10_000) if busy else 0]),
        }


placements = st.lists(
    st.one_of(st.none(), st.sets(st.integers(0, CARDS - 1), min_size=1).map(lambda cards: tuple(sorted(cards)))),
    min_size=ENGINES,
    max_size=ENGINES,
)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, SampleWriter]]:
    """A store for all examples: each is a node of its own."""
    store = Store.open(tmp_path_factory.mktemp("use") / "s.duckdb")
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        yield store, taking
    store.close()


worlds = given(
    seed=st.integers(0, 2**32),
    placed=st.lists(placements, min_size=1, max_size=4),
    hours=st.sampled_from([1, 3, 26]),
    late=st.booleans(),
)


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@worlds
def test_parts_are_those_of_a_recomputation_from_samples(
    lasting: tuple[Store, SampleWriter], seed: int, placed: list[list[Placement]], hours: int, late: bool
) -> None:
    """Gaps, restarts, shared GPUs, moves, late data, rolled up at any time between: parts to 1e-9, whole as the GPU."""
    assert_world_is_recomputed(*lasting, seed, placed, hours, late)


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@worlds
def test_parts_of_many_worlds_are_those_of_a_recomputation_from_samples(
    lasting: tuple[Store, SampleWriter], seed: int, placed: list[list[Placement]], hours: int, late: bool
) -> None:
    assert_world_is_recomputed(*lasting, seed, placed, hours, late)


def assert_world_is_recomputed(
    store: Store, taking: SampleWriter, seed: int, placed: list[list[Placement]], hours: int, late: bool
) -> None:
    rng = random.Random(seed)
    node = f"n{uuid.uuid4().hex}"
    first_us = T0 + rng.randrange(HOUR)
    end_us = first_us + hours * HOUR
    gpus = {index: list(_gpu_rows(rng, first_us, end_us)) for index in range(CARDS)}
    engines = {number: list(_engine_rows(rng, first_us, end_us)) for number in range(ENGINES)}
    cuts = [first_us + (end_us - first_us) * part // len(placed) for part in range(len(placed))] + [AFTER]
    order = list(range(len(placed)))
    if late:
        rng.shuffle(order)
    moves: dict[int, dict[int, Placement]] = {number: {} for number in range(ENGINES)}
    last: dict[int, Placement] = {}
    now_us = 0
    for sequence, part in enumerate(order, 1):
        low, high = cuts[part], cuts[part + 1]
        sent = _a_batch(sequence, node, _between(gpus, low, high), _between(engines, low, high), placed[part])
        if sent is None:
            continue
        put(taking, sent)
        _note_moves(moves, last, placed[part], _between(engines, low, high), sent.node.sent_at_us)
        if rng.random() < 0.6:
            now_us = max(now_us, sent.node.sent_at_us + rng.choice([76 * SECOND, HOUR]))
            roll_up_all(store, now_us)
    roll_up_all(store)
    parts = recomputed(World(gpus, engines, moves))
    assert_equals(use(store, node=node), parts)
    assert_equals(use(store, "hour", node), by_hour(parts))
    assert_sums_to_gpus(store)
    assert waiting_minutes(store) == count(store, "open_use_hour") == 0


def _between(rows: Mapping[int, list[Row]], low: int, high: int) -> dict[int, list[Row]]:
    return {number: [row for row in found if low <= row["t_us"] < high] for number, found in rows.items()}


def _a_batch(
    sequence: int,
    node: str,
    gpus: Mapping[int, list[Row]],
    engines: Mapping[int, list[Row]],
    placed: list[Placement],
) -> Batch | None:
    samples = [{**row, "gpu": index} for index, rows in gpus.items() for row in rows]
    scrapes = [{**row, "engine": number} for number, rows in engines.items() for row in rows]
    if not samples and not scrapes:
        return None
    cards = [gpu(node, index) for index in range(CARDS)]
    running = engines_at(dict(enumerate(placed)), node)
    return batch(sequence, node=node, gpus=cards, engines=running, rows=samples, engine_rows=scrapes)


def _note_moves(
    moves: dict[int, dict[int, Placement]],
    last: dict[int, Placement],
    placed: list[Placement],
    engines: Mapping[int, list[Row]],
    sent_at_us: int,
) -> None:
    """What the hub is told: an engine's GPUs since its first row of the batch, when they are others than before."""
    for number, cards in enumerate(placed):
        if number not in last or last[number] != cards:
            starts = [row["t_us"] - row["dt_us"] for row in engines[number]]
            moves[number][min(starts, default=sent_at_us)] = cards
            last[number] = cards


def assert_equals(found: Mapping[Key, Mapping[str, Any]], wanted: Mapping[Key, Mapping[str, Any]]) -> None:
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        got = {name: found[key][name] for name in SUMS}
        assert got == pytest.approx({name: float(values[name]) for name in SUMS}, rel=1e-9, abs=1e-9), key


# grain: one row per GPU and bucket: a sum of its own, and of its parts
_PARTS = """
    SELECT first({whole}) AS whole, sum(part.{part}) AS parts
    FROM gpu_{bucket} AS whole LEFT JOIN gpu_use_{bucket} AS part USING (gpu_id, {bucket}_us)
    GROUP BY gpu_id, {bucket}_us
"""


def assert_sums_to_gpus(store: Store) -> None:
    """Law 9: the parts of each GPU's minute and hour are that minute and hour."""
    wholes = {"known_j": "whole.counter_j + whole.integral_j"}
    for bucket in ("minute", "hour"):
        for part in ("provisioned_s", "known_j", "interpolated_j", "covered_s", "bridged_s", "throttled_s"):
            rows = store.query(_PARTS.format(bucket=bucket, part=part, whole=wholes.get(part, f"whole.{part}")))
            assert rows["parts"].to_list() == pytest.approx(rows["whole"].to_list(), rel=1e-9, abs=1e-9), part


# By hand

STEADY = {"energy_method": "counter", "dt_us": MINUTE}
NO_TOKENS = {"running": 1, "prompt_tokens": 0, "generated_tokens": 0}


def minutes_of(first: int, watts: list[float | None], **values: Any) -> list[Row]:
    """A row a minute from minute `first` of the hour on; None: no energy."""
    return [
        {**STEADY, "t_us": T0 + (first + number + 1) * MINUTE,
         "energy_mj": None if power is None else round(power * 60_000), **values}
        for number, power in enumerate(watts)
    ]  # fmt: skip


def worked(from_s: float, to_s: float, tokens: int, number: int = 0) -> Row:
    """A scrape that covers these seconds of the hour."""
    end, length = T0 + round(to_s * SECOND), round((to_s - from_s) * SECOND)
    return {"engine": number, "t_us": end, "dt_us": length, "generated_tokens": tokens, "running": 1 if tokens else 0}


def a_day_of(store: Store, *, engines: Mapping[int, Placement], gpu_rows: list[Row], engine_rows: list[Row]) -> None:
    indexes = {row.get("gpu", 0) for row in gpu_rows} | {card for cards in engines.values() for card in cards or ()}
    cards = [gpu(index=index) for index in range(max(indexes) + 1)]
    take(store, batch(1, gpus=cards, engines=engines_at(engines), rows=gpu_rows, engine_rows=engine_rows))
    roll_up_all(store)


def test_two_engines_on_one_gpu_use_it_in_the_union_of_their_seconds(store: Store) -> None:
    """Engine 0 works in seconds 0-20, engine 1 in 10-30: 30 of 60 s are used, not 40.

    Tokens 300 and 100: used 22.5 and 7.5 s; the 30 idle seconds are shared equally, so are provisioned 37.5 and 22.5.
    18 kJ in a minute before, all idle, are 300 W: of this minute's 24 kJ 9 kJ are idle, 15 kJ go 3 : 1.
    """
    rows = [worked(60, 80, 300), worked(60, 70, 0, 1), worked(70, 90, 100, 1)]
    rows += [worked(0, 60, 0), worked(0, 60, 0, 1)]
    a_day_of(store, engines={0: (0,), 1: (0,)}, gpu_rows=minutes_of(0, [300, 400]), engine_rows=rows)
    found = use(store)
    assert store.query("SELECT busy_mask FROM engine_minute ORDER BY engine_id, minute_us")["busy_mask"].to_list() == [
        0, 2**20 - 1, 0, 2**30 - 2**10,
    ]  # fmt: skip
    names = ("used_s", "provisioned_s", "idle_j", "known_j", "covered_s")
    assert figures(found[0, 0, T0 + MINUTE], *names) == [22.5, 37.5, 4_500, 4_500 + 11_250, 37.5]
    assert figures(found[0, 1, T0 + MINUTE], *names) == [7.5, 22.5, 4_500, 4_500 + 3_750, 22.5]
    assert {(row["sharers"], row["split_by"], row["replica_gpus"]) for row in found.values()} == {(2, 1, 1)}
    hour = use(store, "hour")
    assert figures(hour[0, 0, T0], *names) == [22.5, 67.5, 13_500, 24_750, 67.5]


def test_engines_that_tell_no_tokens_share_used_time_equally(store: Store) -> None:
    rows = [{**worked(0, 30, 0, number), **NO_TOKENS} for number in (0, 1)]
    a_day_of(store, engines={0: (0,), 1: (0,)}, gpu_rows=minutes_of(0, [300]), engine_rows=rows)
    found = use(store)
    assert [figures(row, "used_s", "provisioned_s") for row in found.values()] == [[15.0, 30.0]] * 2
    assert {row["split_by"] for row in found.values()} == {2}


def test_one_engine_uses_its_gpus_for_exactly_its_busy_seconds(store: Store) -> None:
    """A tensor-parallel engine over four GPUs: all alike, though its 2.3 s are no whole seconds."""
    samples = [row | {"gpu": index} for index in range(4) for row in minutes_of(0, [300])]
    a_day_of(store, engines={0: (0, 1, 2, 3)}, gpu_rows=samples, engine_rows=[worked(10, 12.3, 9), worked(12.3, 50, 0)])
    found = use(store)
    assert [figures(row, "used_s", "provisioned_s") for row in found.values()] == [[2.3, 60.0]] * 4
    assert {(row["sharers"], row["split_by"], row["replica_gpus"]) for row in found.values()} == {(1, 0, 4)}


def test_a_gpu_is_never_used_for_longer_than_it_was_there(store: Store) -> None:
    """It came 40 s late: of 60 s in which its engine worked it was there for 20."""
    late = [{"t_us": T0 + MINUTE, "dt_us": 20 * SECOND, "energy_mj": 6_000_000}]
    a_day_of(store, engines={0: (0,)}, gpu_rows=late, engine_rows=[worked(0, 60, 9)])
    (row,) = use(store).values()
    assert figures(row, "used_s", "provisioned_s", "idle_j", "known_j") == [20.0, 20.0, 0.0, 6_000.0]


def test_a_gpu_without_an_engine_is_a_row_of_its_own(store: Store) -> None:
    """Also one whose engine was not scraped in that hour, or told no GPUs."""
    a_day_of(
        store,
        engines={0: (0,), 1: None},
        gpu_rows=minutes_of(0, [100]) + minutes_of(60, [100]),
        engine_rows=[worked(0, 60, 9), worked(0, 60, 9, 1)],
    )
    assert {key: figures(row, "used_s", "idle_j") for key, row in use(store).items()} == {
        (0, 0, T0): [60.0, 0.0], (0, None, T0 + HOUR): [0.0, 6_000.0],
    }  # fmt: skip
    assert use(store)[0, None, T0 + HOUR]["sharers"] == 0


def test_missing_energy_is_filled_in_with_the_mean_power_of_the_same_state(store: Store) -> None:
    """Used minutes at 500 and 300 W, idle ones at 80 W: a used minute without an energy has 400 x 60 = 24 kJ, an idle
    one 80 x 60 = 4.8 kJ."""
    watts = [500, None, 300, 80, None]
    a_day_of(
        store, engines={0: (0,)}, gpu_rows=minutes_of(0, watts), engine_rows=[worked(0, 180, 9), worked(180, 300, 0)]
    )
    rows = [row for _, row in sorted(use(store).items())]
    assert [figures(row, "known_j", "estimated_j", "idle_j") for row in rows] == [
        [30_000, 0, 0], [0, 24_000, 0], [18_000, 0, 0], [4_800, 0, 4_800], [0, 4_800, 4_800],
    ]  # fmt: skip
    assert {row["unknown_s"] for row in rows} == {0}


def test_an_hour_that_knows_no_power_has_that_of_the_day_before_it(store: Store) -> None:
    """An idle minute at 80 W 23 hours before fills in; one 24 hours before is too long ago."""
    rows = minutes_of(0, [80]) + minutes_of(23 * 60, [None]) + minutes_of(24 * 60, [None])
    a_day_of(store, engines={}, gpu_rows=rows, engine_rows=[])
    found = [figures(row, "estimated_j", "unknown_s", "idle_j") for _, row in sorted(use(store).items())]
    assert found == [[0, 0, 4_800], [4_800, 0, 4_800], [0, 60, 0]]


def test_idle_energy_of_a_mixed_minute(store: Store) -> None:
    """Half used, half idle at 100 W known: 3 of 18 kJ; where no idle power is known, by time: 9 of 18 kJ."""
    mixed = [worked(0, 30, 9), worked(30, 120, 0), worked(3 * 3600, 3 * 3600 + 30, 9)]
    rows = minutes_of(0, [300, 100]) + minutes_of(3 * 60, [300])
    a_day_of(store, engines={0: (0,)}, gpu_rows=rows, engine_rows=mixed)
    found = {key[2] - T0: figures(row, "known_j", "idle_j") for key, row in use(store).items()}
    # The last hour has no idle minute, the 24 hours that end with it have: 100 W
    assert found == {0: [18_000, 3_000], MINUTE: [6_000, 6_000], 3 * HOUR: [18_000, 3_000]}
    with store.transaction() as connection:
        connection.execute("DELETE FROM gpu_minute WHERE minute_us = $1", [T0 + MINUTE])
        connection.execute("INSERT INTO dirty_use_minute SELECT 1, minute_us FROM gpu_minute")
    roll_up_all(store)
    assert [figures(use(store)[0, 0, T0 + hour * HOUR], "known_j", "idle_j") for hour in (0, 3)] == [
        [18_000, 9_000]
    ] * 2


def test_idle_energy_is_never_more_than_there_was(store: Store) -> None:
    rows = [worked(0, 30, 9), worked(30, 120, 0)]
    a_day_of(store, engines={0: (0,)}, gpu_rows=minutes_of(0, [10, 300]), engine_rows=rows)
    assert figures(use(store)[0, 0, T0], "known_j", "idle_j") == [600, 600]


def test_an_engine_that_moves_leaves_its_gpu_in_that_minute(store: Store) -> None:
    samples = [row | {"gpu": index} for index in range(2) for row in minutes_of(0, [300] * 4)]
    cards = [gpu(), gpu(index=1)]
    first = batch(1, gpus=cards, engines=engines_at({0: (0,)}), rows=samples, engine_rows=[worked(0, 130, 9)])
    then = batch(2, gpus=cards, engines=engines_at({0: (1,)}), rows=[], engine_rows=[worked(130, 240, 9)])
    take(store, first, then)
    roll_up_all(store)
    # It moved at 02:10: from minute 2 on it is on GPU 1, with all of that minute's work.
    assert {key for key in use(store) if key[1] == 0} == {
        (0, 0, T0), (0, 0, T0 + MINUTE), (1, 0, T0 + 2 * MINUTE), (1, 0, T0 + 3 * MINUTE),
    }  # fmt: skip
    assert [figures(row, "used_s") for key, row in use(store).items() if key[1] == 0] == [[60.0]] * 4
    hours = use(store, "hour")
    assert {key: round(row["used_s"], 9) for key, row in hours.items()} == {
        (0, 0, T0): 120, (0, None, T0): 0, (1, 0, T0): 120, (1, None, T0): 0,
    }  # fmt: skip


def test_an_engine_was_on_its_former_gpu_in_the_hour_in_which_it_moved(store: Store) -> None:
    """It moves at 02:00, not scraped in that hour. A scrape of minute 3 that comes late tells that it was there, and
    so on its former GPU before."""
    samples = [row | {"gpu": index} for index in range(2) for row in minutes_of(0, [300] * 4)]
    cards = [gpu(), gpu(index=1)]
    take(
        store,
        batch(1, gpus=cards, engines=engines_at({0: (0,)}), rows=samples, engine_rows=[worked(-60, 0, 9)]),
        batch(2, gpus=cards, engines=engines_at({0: (1,)}), rows=[], sent_at_us=T0 + 2 * MINUTE),
    )
    roll_up_all(store)
    assert {key[1] for key in use(store)} == {None}
    take(store, batch(3, gpus=cards, engines=engines_at({0: (1,)}), rows=[], engine_rows=[worked(180, 240, 9)]))
    roll_up_all(store)
    assert {key for key in use(store) if key[1] == 0} == {
        (0, 0, T0), (0, 0, T0 + MINUTE), (1, 0, T0 + 2 * MINUTE), (1, 0, T0 + 3 * MINUTE),
    }  # fmt: skip


def test_what_comes_late_of_an_engines_gpus_changes_all_that_came_after(store: Store) -> None:
    """A batch of minute 1 that comes two hours late says that the engine ran elsewhere, and nothing says that it came
    back: the GPU that it was thought to be on was free since, in the next hour too."""
    cards = [gpu(), gpu(index=1)]
    rows = minutes_of(0, [300] * 3) + minutes_of(60, [300])
    samples = [row | {"gpu": index} for index in range(2) for row in rows]
    scraped = [worked(0, 180, 9), worked(3600, 3660, 9)]
    take(store, batch(1, gpus=cards, engines=engines_at({0: (0,)}), rows=samples, engine_rows=scraped))
    roll_up_all(store)
    assert {key[:2] for key in use(store)} == {(0, 0), (1, None)}
    late = [worked(60, 110, 9)]
    take(store, batch(2, gpus=cards, engines=engines_at({0: (1,)}), rows=[], engine_rows=late))
    roll_up_all(store)
    assert {key for key in use(store) if key[1] == 0} == {
        (0, 0, T0), (1, 0, T0 + MINUTE), (1, 0, T0 + 2 * MINUTE), (1, 0, T0 + HOUR),
    }  # fmt: skip
    assert_sums_to_gpus(store)


# In time


def test_minutes_are_built_as_they_come_and_once_more_when_the_hour_is_over(store: Store) -> None:
    """Minute 0 has no energy: at first it is not known, with minute 1 still not, at the end of the hour it is."""
    take(store, batch(1, rows=minutes_of(0, [None])))
    roll_up_all(store, T0 + 76 * SECOND)
    take(store, batch(2, rows=minutes_of(1, [100])))
    roll_up_all(store, T0 + 136 * SECOND)
    assert [figures(row, "unknown_s", "estimated_j") for row in use(store).values()] == [[60, 0], [0, 0]]
    assert [figures(row, "unknown_s", "known_j") for row in use(store, "hour").values()] == [[60, 6_000]]
    assert count(store, "open_use_hour") == 1
    assert roll_up_all(store, T0 + HOUR + 15 * SECOND) == 0
    assert roll_up_all(store, T0 + HOUR + 16 * SECOND) == 1
    assert [figures(row, "unknown_s", "estimated_j") for row in use(store).values()] == [[0, 6_000], [0, 0]]
    assert [figures(row, "unknown_s", "estimated_j") for row in use(store, "hour").values()] == [[0, 6_000]]
    assert count(store, "open_use_hour") == 0


def test_late_data_changes_later_hours_that_rest_on_it(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(0, [None]) + minutes_of(120, [None])))
    roll_up_all(store)
    assert [figures(row, "unknown_s") for row in use(store).values()] == [[60], [60]]
    take(store, batch(2, rows=minutes_of(1, [80])))
    # a minute, its hour's use, and that of the hour that rests on it
    assert roll_up_all(store) == 1 + 1 + 1
    found = {key[2] - T0: figures(row, "estimated_j", "unknown_s") for key, row in use(store).items()}
    assert found == {0: [4_800, 0], MINUTE: [0, 0], 2 * HOUR: [4_800, 0]}
    assert figures(use(store, "hour")[0, None, T0 + 2 * HOUR], "estimated_j", "unknown_s") == [4_800, 0]


def test_an_hour_whose_samples_wait_is_left_to_come(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog builds the use of each hour once, when all its minutes are there."""
    monkeypatch.setattr("app.store.rollup.MAX_PAIRS", 50)
    take(store, batch(1, rows=minutes_of(0, [100] * 180)))
    # 180 minutes and three hours
    assert roll_up_all(store) == 183


def test_building_again_changes_nothing(store: Store) -> None:
    rows = [worked(0, 90, 300), worked(70, 200, 100, 1)]
    a_day_of(store, engines={0: (0,), 1: (0,)}, gpu_rows=minutes_of(0, [300, None, 100]), engine_rows=rows)
    before = [use(store, bucket) for bucket in ("minute", "hour")]
    with store.transaction() as connection:
        connection.execute("INSERT INTO dirty_use_minute SELECT 1, minute_us FROM gpu_minute")
    assert roll_up_all(store) == 1
    assert [use(store, bucket) for bucket in ("minute", "hour")] == before


def test_a_build_that_fails_leaves_all_as_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    take(store, batch(1, rows=minutes_of(0, [100])))
    roll_up_all(store)
    before = use(store), use(store, "hour")
    take(store, batch(2, rows=minutes_of(1, [100])))
    with monkeypatch.context() as patched:
        patched.setattr(use_rollup, "_BUILD_HOURS", "SELECT error('disk: ' || $1 || $2)")
        with pytest.raises(Exception, match="disk"):
            roll_up_all(store)
    assert (use(store), use(store, "hour"), waiting_minutes(store)) == (*before, 1)
    roll_up_all(store)
    assert [figures(row, "known_j") for row in use(store, "hour").values()] == [[12_000]]


def test_minutes_of_use_go_with_the_others_and_hours_stay(store: Store) -> None:
    take(store, batch(1, rows=[*minutes_of(0, [100]), *minutes_of(3 * 24 * 60, [100])]))
    roll_up_all(store)
    delete_expired(store, T0 + 3 * DAY + HOUR, raw_days=1, minute_days=2)
    tables = ("gpu_use_minute", "gpu_use_hour", "gpu_power_hour")
    assert [count(store, table) for table in tables] == [1, 2, 1]
    # What is out of date of an hour whose minutes are gone stays as it is.
    before = use(store, "hour")
    with store.transaction() as connection:
        connection.execute("INSERT INTO dirty_use_minute VALUES (1, $1)", [T0])
    roll_up_all(store, oldest_minute_us=T0 + DAY)
    assert (use(store, "hour"), count(store, "dirty_use_minute")) == (before, 0)


def test_a_store_of_the_schema_before_gets_the_use_of_its_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.duckdb"
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", MIGRATIONS[:3])
        patched.setattr(schema, "SCHEMA_VERSION", 3)
        Store.open(path).close()
    store = Store.open(path)
    rows = minutes_of(0, [100])
    with store.transaction() as connection:  # as if it had been there before
        connection.execute("DELETE FROM dirty_use_minute")
    take(store, batch(1, engines=engines_at({0: (0,)}), rows=rows, engine_rows=[worked(0, 30, 9)]))
    with store.transaction() as connection:
        for statement in MIGRATIONS[3][-2:]:
            connection.execute(statement)
    roll_up_all(store)
    assert [figures(row, "used_s", "known_j") for row in use(store, "hour").values()] == [[30.0, 6_000.0]]
    store.close()


# Cost

_HISTORIES = {
    "gpu_minute": "gpu_id, minute_us, counter_j, integral_j, interpolated_j, covered_s, bridged_s, provisioned_s, "
    "throttled_s, busy_s, powered_s, check_counter_j, check_integral_j, samples",
    "gpu_use_minute": "gpu_id, minute_us, provisioned_s, used_s, known_j, interpolated_j, estimated_j, unknown_s, "
    "idle_j, covered_s, bridged_s, throttled_s, sharers, split_by",
    "engine_minute": "engine_id, minute_us, seen_s, gap_s, busy_s, gauged_s, scrapes",
}


def _add_history(store: Store, first_us: int, rows: int) -> None:
    """Minutes of other GPUs and engines, and raw samples."""
    with store.transaction() as connection:
        for table, columns in _HISTORIES.items():
            values = ", ".join(["99", "$1 + i * 60000000"] + ["1"] * (columns.count(",") - 1))
            connection.execute(
                f"INSERT INTO {table} ({columns}) SELECT {values} FROM range($2) AS r(i)", [first_us, rows]
            )
        connection.execute(
            "INSERT INTO gpu_sample (gpu_id, t_us, dt_us) SELECT 1, $1 + i * 1000000, 1 FROM range($2) AS r(i)",
            [first_us, rows],
        )
    store._connection.execute("CHECKPOINT")


class _Profiled:
    """A connection that keeps DuckDB's counts of each statement."""

    def __init__(self, connection: Any, folder: Path) -> None:
        self._connection, self._folder = connection, folder
        self.scanned = 0

    def execute(self, sql: str, parameters: Any = None) -> None:
        path = self._folder / "profile.json"
        self._connection.execute("SET enable_profiling = 'json'")
        self._connection.execute(f"SET profiling_output = '{path}'")
        self._connection.execute(sql, parameters or [])
        self._connection.execute("SET enable_profiling = 'no_output'")
        self.scanned += sum(one["scanned"] for one in _operators(json.loads(path.read_text())))


def test_the_cost_of_a_build_does_not_grow_with_the_store(store: Store, tmp_path: Path) -> None:
    """An hour's build reads what is about that hour, row groups at most, however much history and raw there is."""
    scanned = []
    for sequence, history in ((1, 150_000), (2, 600_000)):
        _add_history(store, T0 - (2_000 - 500 * sequence) * DAY, history)
        moment = sequence * 60
        scrape = worked(moment * 60, moment * 60 + 60, 9)
        running = engines_at({0: (0,)})
        take(store, batch(sequence, engines=running, rows=minutes_of(moment, [100]), engine_rows=[scrape]))
        while not count(store, "dirty_use_minute"):
            for subject in rollup.SUBJECTS:
                rollup._roll_up(store, subject, AFTER, 0, 0)
        due = store.query("SELECT DISTINCT gpu_id, minute_us AS hour_us FROM dirty_use_minute")
        with store.transaction() as connection:
            connection.register("due", due)
            connection.execute(use_rollup._HOURS, [AFTER, 0])
            profiled = _Profiled(connection, tmp_path)
            use_rollup._rebuild(profiled, due["hour_us"][0], due["hour_us"][0] + HOUR, AFTER)  # type: ignore[arg-type]
        scanned.append(profiled.scanned)
        roll_up_all(store)
    row_group = 122_880
    assert 0 < scanned[1] <= scanned[0] + 2 * row_group < 8 * row_group
