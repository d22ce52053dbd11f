"""The best rate that a type of replica has sustained for an hour."""

from __future__ import annotations

from typing import Any

import pytest

from app.store.database import Store
from app.store.replica_rates import best_rates
from tests.batches import CARD, HOUR, MINUTE, T0, Clock, Row, at, batch, engine, gpu, put, uuid_of, writing
from tests.store.test_accounts import RTX, minute_rows, scrapes
from tests.store.test_rollup import AFTER, roll_up_all


def fill(store: Store, *batches: tuple[list[int] | None, list[Row]], node: str = "node-7", **said: Any) -> None:
    """Batches of one engine on these GPUs of the node, an H100 and two RTX 4090."""
    cards = [gpu(node, index, name=RTX if index else CARD) for index in range(3)]
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        for sequence, (places, rows) in enumerate(batches, 1):
            uuids = None if places is None else [uuid_of(node, index) for index in places]
            running = [engine(model="m", gpus=uuids)]
            samples = minute_rows(1, 100, first=sequence)
            put(taking, batch(sequence, node=node, gpus=cards, engines=running, rows=samples, engine_rows=rows, **said))
    roll_up_all(store)


def rates(store: Store, hours: int = 24, days: int = 1) -> list[tuple[Any, ...]]:
    names = ("gpu_name", "replica_gpus", "model", "simulated", "tokens_per_s", "hours")
    found = best_rates(store, at(T0 + hours * HOUR), days)
    return [tuple(row[name] for name in names) for row in found]


def test_the_best_hour_counts_by_busy_seconds(store: Store) -> None:
    """Hour 0: 20 busy minutes of 1,200 tokens: 20/s; hour 1: an hour of 600 a minute: 10/s, and it was busy longer."""
    fill(store, ([0], scrapes(20, 1_200) + scrapes(40, 0, first=20, running=0) + scrapes(60, 600, first=60)))
    assert rates(store) == [(CARD, 1, "m", False, pytest.approx(20), 2)]


def test_an_hour_that_was_hardly_busy_does_not_count(store: Store) -> None:
    """Nine busy minutes are less than 600 s, ten are enough."""
    fill(store, ([0], scrapes(9, 60_000) + scrapes(10, 600, first=60)))
    assert rates(store) == [(CARD, 1, "m", False, pytest.approx(10), 1)]


def test_types_are_told_apart_by_card_gpus_and_whether_they_are_simulated(store: Store) -> None:
    fill(store, ([1, 2], scrapes(60, 600)))
    fill(store, ([1, 2], scrapes(60, 60)), node="node-8")
    fill(store, ([0, 1], scrapes(60, 1_200)), node="node-9", simulated=True)
    assert rates(store) == [
        (RTX, 2, "m", False, pytest.approx(10), 2),
        (f"{RTX} + {CARD}", 2, "m", True, pytest.approx(20), 1),
    ]


def test_the_hour_of_a_move_and_time_on_unknown_gpus_do_not_count(store: Store) -> None:
    fill(
        store,
        ([0], scrapes(30, 6_000)),
        ([1], scrapes(60, 600, first=30)),
        (None, scrapes(60, 60_000, first=120)),
        ([1], scrapes(60, 1_200, first=180)),
    )
    # hour 0: from GPU 0 to GPU 1; hour 1: half an hour on GPU 1; hour 2 unknown; hour 3 on GPU 1
    assert rates(store) == [(RTX, 1, "m", False, pytest.approx(20), 2)]


def test_only_days_up_to_then(store: Store) -> None:
    fill(store, ([0], scrapes(60, 600) + scrapes(60, 1_200, first=24 * 60)))
    assert [row[4:] for row in rates(store, hours=24)] == [(pytest.approx(10), 1)]
    assert [row[4:] for row in rates(store, hours=25, days=1)] == [(pytest.approx(20), 1)]
    assert [row[4:] for row in rates(store, hours=25, days=2)] == [(pytest.approx(20), 2)]
    assert rates(store, hours=0) == []


def test_an_engine_that_does_not_tell_its_prompts_has_no_rate(store: Store) -> None:
    rows = [row | {"prompt_tokens": None, "dt_us": MINUTE} for row in scrapes(60, 600)]
    fill(store, ([0], rows))
    assert rates(store) == []
