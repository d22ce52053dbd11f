"""What is kept of the store's sums is what the store says, whatever changes in between."""

from __future__ import annotations

import random
from collections.abc import Callable

import polars as pl
import pytest

from app.store import accounts
from app.store.accounts import engine_rows, latency_rows, use_rows
from app.store.database import Store
from app.store.kept import MOST_MADE, MOST_ROWS, Kept
from app.store.moment import moment
from app.store.reader import Reader
from app.store.replica_rates import best_rates
from tests.batches import HOUR, MINUTE, T0, Clock, Row, at, batch, engine, gpu, put, uuid_of, writing
from tests.store.test_accounts import KNOWN, RTX, join_fleet, minute_rows, scrapes
from tests.store.test_rollup import AFTER, roll_up_all

DAY = 24 * HOUR
BLOCK = (T0 // DAY * DAY, T0 // DAY * DAY + DAY)


def answers(store: Reader, low: int, high: int) -> list[list[Row]]:
    """Of three pieces that are not whole hours, by what pages ask for; sums in whole micro-units."""
    middle = (low + high) // 2 // MINUTE * MINUTE
    segments = [(0, low, middle), (1, middle, high), (1, high, high + HOUR)]
    found: list[list[Row]] = []
    for by in ("none", "gpu", "label:team"):
        found += [
            use_rows(store, segments, by, KNOWN),
            engine_rows(store, segments, by, KNOWN),
            latency_rows(store, segments, "ttft", by, KNOWN),
        ]
    found += [
        use_rows(store, segments, "none", KNOWN, fleet="f1"),
        engine_rows(store, segments, "none", KNOWN, model="m1"),
    ]
    return [[{name: _whole(value) for name, value in row.items()} for row in rows]
            for rows in (*found, best_rates(store, at(high), 2))]  # fmt: skip


def answers_by_piece(store: Store, low: int, high: int) -> list[list[Row]]:
    """The same by the statements that sum piece by piece, as of many GPUs: they read no blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "MOST_GROUPS", -1)
        return answers(store, low, high)


def _whole(value: object) -> object:
    return round(value * 1e6) if isinstance(value, float) else value


def _samples(rng: random.Random, node: str, sequence: int) -> Callable[[Store], None]:
    """A batch of some minutes of the day, late ones too, whose engines run wherever they like."""
    first, count = rng.randrange(0, 1200), rng.randrange(20, 200)
    places = [rng.choice([None, [0], [1], [0, 1]]) for _ in range(2)]
    running = [
        engine(url=f"http://h:{number}/metrics", model=f"m{number}", labels={"team": f"t{rng.randrange(2)}"},
               gpus=None if place is None else [uuid_of(node, index) for index in place])
        for number, place in enumerate(places)
    ]  # fmt: skip
    rows = [row | {"gpu": index} for index in (0, 1) for row in minute_rows(count, rng.randrange(50, 400), first=first)]
    done = [row | {"engine": number} for number in (0, 1) for row in scrapes(count, rng.randrange(900), first=first)]
    sent = batch(sequence, node=node, gpus=[gpu(node), gpu(node, 1, name=RTX)], engines=running, rows=rows,
                 engine_rows=done)  # fmt: skip

    def take(store: Store) -> None:
        with writing(store, Clock(AFTER), raw_days=3000) as taking:
            put(taking, sent)

    return take


@pytest.mark.parametrize("seed", [0, 4, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 30))])
def test_a_moment_says_what_the_store_does(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    for sequence in range(1, 5):
        node = rng.choice(["n-0", "n-1"])
        _samples(rng, node, sequence)(store)
        if rng.random() < 0.8:
            roll_up_all(store)
        join_fleet(store, node, f"f{rng.randrange(3)}", since_us=T0 + rng.randrange(0, DAY))
        low = T0 + rng.randrange(0, 600) * MINUTE
        high = low + rng.randrange(10, 900) * MINUTE
        wanted = answers_by_piece(store, low, high)
        for _ in range(2):
            with moment(store) as reader:
                assert answers(reader, low, high) == wanted


def test_what_is_kept_is_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _samples(random.Random(1), "n-0", 1)(store)
    roll_up_all(store)
    segments = [(0, T0, T0 + 12 * HOUR)]
    with moment(store) as reader:
        first = use_rows(reader, segments, "none", KNOWN)
    with moment(store) as reader:
        monkeypatch.setattr(reader, "_query", _refuse_use(reader._query))
        assert use_rows(reader, segments, "none", KNOWN) == first


def _refuse_use(query: Callable[..., pl.DataFrame]) -> Callable[..., pl.DataFrame]:
    def asked(sql: str, parameters: object) -> pl.DataFrame:
        assert "gpu_use" not in sql
        return query(sql, parameters)

    return asked


def test_a_moment_that_began_before_a_change_neither_gets_nor_leaves_what_came_after() -> None:
    kept, rows = Kept(), pl.DataFrame({"n": [1]})
    with kept.versions() as before:
        pass
    with kept.changing((T0, T0 + 1)):
        pass
    with kept.versions() as after:
        pass
    kept.put("what", BLOCK, after, rows)
    assert kept.get("what", BLOCK, before) is None
    assert kept.get("what", BLOCK, after) is rows
    kept.put("what", BLOCK, before, rows)
    assert kept.get("what", BLOCK, after) is None


def test_hours_of_other_blocks_change_nothing() -> None:
    kept, rows = Kept(), pl.DataFrame({"n": [1]})
    with kept.versions() as versions:
        pass
    kept.put("what", BLOCK, versions, rows)
    for span in ((BLOCK[1], BLOCK[1] + HOUR), (BLOCK[0] - HOUR, BLOCK[0])):
        with kept.changing(span):
            pass
    with kept.versions() as now:
        pass
    assert kept.get("what", BLOCK, now) is rows


def test_what_was_longest_not_asked_for_goes_first() -> None:
    kept, half = Kept(), pl.DataFrame({"n": [0] * (MOST_ROWS // 2 - 1)})
    for name in ("a", "b"):
        kept.put(name, BLOCK, {}, half)
    assert kept.get("a", BLOCK, {}) is half
    kept.put("c", BLOCK, {}, half)
    assert [kept.get(name, BLOCK, {}) is not None for name in ("a", "b", "c")] == [True, False, True]


def test_what_was_made_is_made_once_while_it_is_among_the_last() -> None:
    kept, made = Kept(), []
    for what in (*range(MOST_MADE), 0, MOST_MADE, 0, 1):
        kept.once(what, lambda what=what: made.append(what))  # type: ignore[misc]
    assert made == [*range(MOST_MADE), MOST_MADE, 1]
