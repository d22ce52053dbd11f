"""Rollups and ingest go on beside each other: neither waits for the other, and nothing is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from app.store import rollup
from app.store.database import Store
from app.store.rollup import roll_up, waiting_minutes
from tests.batches import MINUTE, SECOND, T0, Clock, batch, put, seconds, writing
from tests.store.test_rollup import AFTER, buckets, roll_up_all


def test_samples_that_arrive_during_a_rollup_are_taken_at_once_and_rolled_up_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late batch belongs to a minute that is being rebuilt: its mark must outlive that rebuild."""
    rebuild = rollup._rebuild
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        put(taking, batch(1, rows=seconds(T0, 30)))
        late = [batch(2, rows=seconds(T0 + 30 * SECOND, 10))]

        def rebuild_while_samples_arrive(*given: Any) -> None:
            rebuild(*given)
            if late:
                put(taking, late.pop())  # would wait for ever if the rollup held ingest up

        with monkeypatch.context() as patched:
            patched.setattr(rollup, "_rebuild", rebuild_while_samples_arrive)
            assert roll_up(store, AFTER, oldest_raw_us=0, oldest_minute_us=0) > 0
        assert buckets(store, "gpu_minute")[T0]["covered_s"] == pytest.approx(30)
        assert waiting_minutes(store) > 0
        roll_up_all(store)
    assert buckets(store, "gpu_minute")[T0]["covered_s"] == pytest.approx(40)
    assert waiting_minutes(store) == 0


def test_two_rollups_do_not_run_at_once(store: Store) -> None:
    """They wait for each other, so that none deletes what the other is building."""
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        put(taking, batch(1, rows=seconds(T0, 60)))
    with store.transaction(beside_ingest=True):
        assert not store._rollup_lock.acquire(blocking=False)
        with store.transaction() as connection:
            connection.execute("INSERT INTO dirty_minute VALUES (1, $1)", [T0 + MINUTE])
    roll_up_all(store)
    assert waiting_minutes(store) == 0
