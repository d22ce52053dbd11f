"""Stretches in which GPUs were there without a break."""

from __future__ import annotations

from typing import Any

import pytest

from app.store.database import Store
from app.store.stretches import provisioned_stretches
from tests.batches import MINUTE, SECOND, T0, Clock, Row, at, batch, gpu, put, writing
from tests.store.test_accounts import KNOWN, join_fleet, minute_rows
from tests.store.test_rollup import AFTER, roll_up_all


def fill(store: Store, *rows: Row) -> None:
    cards = [gpu(index=index) for index in range(1 + max(row.get("gpu", 0) for row in rows))]
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        put(taking, batch(1, gpus=cards, rows=rows))
    roll_up_all(store)
    join_fleet(store, "node-7", "spot")


def stretches(store: Store, first_min: float, last_min: float, fleet: str = "spot") -> list[tuple[Any, ...]]:
    """(GPU, first minute, end, provisioned minutes, has ended)."""
    start, end = (at(T0 + round(edge * MINUTE)) for edge in (first_min, last_min))
    return [
        (
            row["gpu"][-1],
            (row["start_us"] - T0) // MINUTE,
            (row["end_us"] - T0) // MINUTE,
            pytest.approx(row["provisioned_s"] / 60),
            row["has_ended"],
        )
        for row in provisioned_stretches(store, fleet, start, end, known_at=KNOWN)
    ]


def test_a_node_that_leaves_for_twenty_minutes_has_two_stretches(store: Store) -> None:
    """There from minute 10 to 190, and from 210 on to 300: whole hours in between are one with their minutes."""
    fill(store, *minute_rows(180, 100, first=10), *minute_rows(90, 100, first=210))
    assert stretches(store, 0, 600) == [("0", 10, 190, 180, True), ("0", 210, 300, 90, True)]


def test_one_that_has_not_ended_may_go_on(store: Store) -> None:
    fill(store, *minute_rows(180, 100))
    assert stretches(store, 0, 120) == [("0", 0, 120, 120, False)]
    assert stretches(store, 0, 180) == [("0", 0, 180, 180, False)]
    assert stretches(store, 0, 181) == [("0", 0, 180, 180, True)]


def test_one_that_began_before_is_followed_back(store: Store) -> None:
    fill(store, *minute_rows(180, 100, first=7))
    assert stretches(store, 150, 600) == [("0", 7, 187, 180, True)]
    assert stretches(store, 187, 600) == []


def test_it_is_as_long_as_the_gpu_was_there(store: Store) -> None:
    """It came 15 s into minute 0 and left 30 s into minute 2: 45 + 60 + 30 s."""
    ends = [(60, 45), (120, 60), (150, 30)]
    fill(store, *({"t_us": T0 + end * SECOND, "dt_us": length * SECOND} for end, length in ends))
    assert stretches(store, 0, 60) == [("0", 0, 3, 135 / 60, True)]


def test_each_gpu_has_its_own(store: Store) -> None:
    fill(store, *minute_rows(60, 100), *(row | {"gpu": 1} for row in minute_rows(30, 100, first=60)))
    assert stretches(store, 0, 600) == [("0", 0, 60, 60, True), ("1", 60, 90, 30, True)]


def test_a_stretch_ends_where_its_node_leaves_the_fleet(store: Store) -> None:
    fill(store, *minute_rows(240, 100))
    join_fleet(store, "node-7", "other", since_us=T0 + 97 * MINUTE)
    assert stretches(store, 0, 600) == [("0", 0, 97, 97, True)]
    assert stretches(store, 0, 600, "other") == [("0", 97, 240, 143, True)]
    assert stretches(store, 0, 600, "none such") == []
