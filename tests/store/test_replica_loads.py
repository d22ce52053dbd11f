"""Power against load comes from minutes and hours in which both were measured of a replica that shares no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from app.store.database import Store
from app.store.replica_loads import LOADS, Step, replica_loads, replicas_seen
from tests.batches import (
    CARD,
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
    uuid_of,
    writing,
)
from tests.store.test_rollup import AFTER, roll_up_all

PAIR = [uuid_of("node-7", 0), uuid_of("node-7", 1)]


def minutes(first: int, watts: Sequence[Sequence[int | None]]) -> list[Row]:
    """Per GPU its mean power of each minute from `first` on, in one row a minute; None: not measured."""
    return [
        {"gpu": index, "t_us": T0 + (first + number + 1) * MINUTE, "dt_us": MINUTE,
         "energy_mj": None if one is None else one * 60_000}
        for index, powers in enumerate(watts) for number, one in enumerate(powers)
    ]  # fmt: skip


def scrapes(first: int, tokens: Sequence[int | None], number: int = 0) -> list[Row]:
    """Per minute from `first` on its tokens, one in six of them generated."""
    return [
        {"engine": number, "t_us": T0 + (first + place + 1) * MINUTE, "dt_us": MINUTE,
         "prompt_tokens": None if made is None else made - made // 6,
         "generated_tokens": None if made is None else made // 6}
        for place, made in enumerate(tokens)
    ]  # fmt: skip


def take(store: Store, rows: list[Row], engine_rows: list[Row], **given: Any) -> None:
    known = {"gpus": [gpu(index=0), gpu(index=1)], "engines": [engine(gpus=PAIR)]}
    with writing(store, Clock(AFTER)) as taking:
        put(taking, batch(1, rows=rows, engine_rows=engine_rows, **{**known, **given}))
    roll_up_all(store)


def loads(store: Store, step: Step = "minute", first: int = T0, end: int = T0 + HOUR, **asked: Any) -> list[Row]:
    return replica_loads(store, at(first), at(end), step, at(AFTER), **asked)


def points(rows: list[Row]) -> list[tuple[float, float, float]]:
    return [(row["tokens_per_s"], row["power_w"], row["seconds"]) for row in rows]


def test_a_replica_s_power_is_that_of_all_its_gpus(store: Store) -> None:
    # 300 + 200 W at 6,000 tokens / 60 s = 100/s; 80 + 70 W without a token
    take(store, minutes(0, [[300, 80], [200, 70]]), scrapes(0, [6000, 0]))
    rows = loads(store)
    assert points(rows) == [(0.0, 150.0, 60.0), (100.0, 500.0, 60.0)]
    kind = {"gpu_name": CARD, "replica_gpus": 2, "model": MODEL, "simulated": False}
    assert all(row.items() >= kind.items() for row in rows)


def test_equal_loads_are_one_row_and_near_ones_too(store: Store) -> None:
    # 400 steps up to 400 tokens/s: 100 twice and 100.5 share one, 102 has its own. 300.5 / 3 = 100.167 tokens/s,
    # (500 + 500 + 560) / 3 = 520 W
    powers = [[300, 300, 360, 400, 900], [200, 200, 200, 200, 300]]
    take(store, minutes(0, powers), scrapes(0, [6000, 6000, 6030, 6120, 24_000]))
    assert LOADS == 400
    shared, *others = points(loads(store))
    assert shared == pytest.approx((300.5 / 3, 520.0, 180.0))
    assert others == [(102.0, 600.0, 60.0), (400.0, 1200.0, 60.0)]


@pytest.mark.parametrize(
    ("rows", "engine_rows"),
    [
        pytest.param(minutes(0, [[300], []]), scrapes(0, [6000]), id="a GPU of it is not there"),
        pytest.param(minutes(0, [[300], [None]]), scrapes(0, [6000]), id="a GPU of it is not measured"),
        pytest.param(minutes(0, [[300], [200]]), scrapes(0, [None]), id="tokens are not told"),
        pytest.param(minutes(0, [[300], [200]]), [], id="the engine is not scraped"),
        pytest.param(
            [{**row, "dt_us": 50 * SECOND} for row in minutes(0, [[300], [200]])], scrapes(0, [6000]),
            id="less than nine tenths of the GPUs' minute are measured",
        ),
        pytest.param(
            minutes(0, [[300], [200]]), [{**row, "dt_us": 50 * SECOND} for row in scrapes(0, [6000])],
            id="less than nine tenths of the engine's minute are measured",
        ),
        pytest.param(
            [{**row, "energy_method": "bridged"} for row in minutes(0, [[300], [200]])], scrapes(0, [6000]),
            id="the energy is one across a gap",
        ),
    ],
)  # fmt: skip
def test_what_is_not_measured_makes_no_point(store: Store, rows: list[Row], engine_rows: list[Row]) -> None:
    take(store, rows, engine_rows, engines=[engine(gpus=PAIR)])
    assert loads(store) == []


def test_engines_that_share_a_gpu_have_no_power_of_their_own(store: Store) -> None:
    sharing = [engine(gpus=PAIR[:1]), engine(url="http://h:8001/metrics", gpus=PAIR[:1])]
    take(store, minutes(0, [[300], [50]]), scrapes(0, [6000]) + scrapes(0, [600], 1), engines=sharing)
    assert loads(store) == []


def test_types_are_told_apart(store: Store) -> None:
    apart = [engine(gpus=PAIR[:1]), engine(url="http://h:8001/metrics", gpus=PAIR[1:], model="other")]
    take(store, minutes(0, [[300], [200]]), scrapes(0, [6000]) + scrapes(0, [600], 1), engines=apart)
    assert [(row["model"], row["replica_gpus"], row["power_w"]) for row in loads(store)] == [
        (MODEL, 1, 300.0), ("other", 1, 200.0),
    ]  # fmt: skip
    assert [row["model"] for row in loads(store, model="other")] == ["other"]
    assert loads(store, model="another") == []


def test_hours_are_means_of_hours(store: Store) -> None:
    # half an hour 300 + 200 W at 100 tokens/s, half an hour 100 + 100 W without any: 350 W at 50/s
    watts = [[300] * 30 + [100] * 30, [200] * 30 + [100] * 30]
    take(store, minutes(0, watts), scrapes(0, [6000] * 30 + [0] * 30))
    (hour,) = points(loads(store, "hour"))
    assert hour == pytest.approx((50.0, 350.0, 3600.0))
    assert points(loads(store, "minute")) == [(0.0, 200.0, 1800.0), (100.0, 500.0, 1800.0)]


def test_only_buckets_that_begin_in_the_range_count(store: Store) -> None:
    take(store, minutes(0, [[300, 310, 320], [200] * 3]), scrapes(0, [6000] * 3))
    rows = loads(store, first=T0 + MINUTE, end=T0 + 2 * MINUTE)
    assert points(rows) == [(100.0, 510.0, 60.0)]
    assert loads(store, first=T0 + 3 * MINUTE) == []


def test_the_fleet_is_that_of_the_time(store: Store) -> None:
    take(store, minutes(0, [[300, 310], [200] * 2]), scrapes(0, [6000] * 2))
    with store.transaction() as connection:
        for fleet, since in (("old", 0), ("new", T0 + MINUTE)):
            connection.execute(
                "INSERT INTO node_fleet SELECT node_id, $1, $2, $2, 'test' FROM node", [fleet, at(since)]
            )
    assert [row["power_w"] for row in loads(store, fleet="old")] == [500.0]
    assert [row["power_w"] for row in loads(store, fleet="new")] == [510.0]
    assert loads(store, fleet="never") == []


def test_replicas_are_counted_by_their_hours(store: Store) -> None:
    take(store, minutes(0, [[300], [200]]), scrapes(0, [6000]))
    assert replicas_seen(store, at(T0), at(T0 + HOUR)) == 1
    assert replicas_seen(store, at(T0 + HOUR), at(T0 + 2 * HOUR)) == 0
