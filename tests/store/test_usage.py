"""What GPUs used and engines did, by period: every measured second and token in one line, whatever moved when."""

from __future__ import annotations

import random
import uuid
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.accounting.line import Period
from app.store.database import Store
from app.store.usage import Usage, usage
from tests.batches import MINUTE, SECOND, T0, Clock, at, batch, engine, gpu, put, uuid_of, writing
from tests.store.test_rollup import AFTER, roll_up_all

START = datetime.fromtimestamp(T0 / SECOND, UTC)


def ask(store: Store, *edges_min: int, oldest_minute_us: int = 0) -> Usage:
    """The periods between these minutes after T0."""
    moments = [START + timedelta(minutes=edge) for edge in edges_min]
    periods = [Period(low, high, str(low)) for low, high in pairwise(moments)]
    return usage(store, periods, known_at=at(AFTER), oldest_minute_us=oldest_minute_us)


placements = st.lists(st.sampled_from([None, (0,), (1,), (0, 1)]), min_size=1, max_size=4)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=placements, second=placements, seed=st.integers(0, 2**16))
def test_every_gpu_second_belongs_to_one_line_whoever_runs_on_it(
    tmp_path: Path, first: list[Any], second: list[Any], seed: int
) -> None:
    """Two engines move over two GPUs every ten minutes: shared, alone, unknown; parts sum to what was measured."""
    rng = random.Random(seed)
    store = Store.open(tmp_path / f"{uuid.uuid4().hex}.duckdb")
    cards = [gpu(), gpu(index=1)]
    total_j: dict[int, float] = defaultdict(float)
    tokens = 0
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        for step in range(max(len(first), len(second))):
            t_us = T0 + (step + 1) * 10 * MINUTE
            engines, rows = [], []
            for number, moves in enumerate((first, second)):
                place = moves[step % len(moves)]
                uuids = None if place is None else [uuid_of("node-7", index) for index in place]
                engines.append(engine(url=f"http://h:{8000 + number}/metrics", model=f"m{number}", gpus=uuids))
                made = rng.randrange(1000)
                tokens += made
                rows.append({"engine": number, "t_us": t_us, "dt_us": 10 * MINUTE, "generated_tokens": made})
            samples = []
            for minute in range(10):
                for index in range(2):
                    energy = rng.randrange(10**7)
                    total_j[index] += energy / 1e3
                    moment = t_us - (9 - minute) * MINUTE
                    samples.append({"gpu": index, "t_us": moment, "dt_us": MINUTE, "energy_mj": energy})
            put(taking, batch(step + 1, gpus=cards, engines=engines, rows=samples, engine_rows=rows))
    roll_up_all(store)
    for oldest in (0, AFTER):  # from minutes, from hours
        found = ask(store, 0, 60, 120, oldest_minute_us=oldest)
        assert sum(row["measured_j"] for row in found.gpus) == pytest.approx(sum(total_j.values()), rel=1e-9)
        assert sum(row["generated_tokens"] for row in found.engines) == tokens
    store.close()


def test_a_period_may_begin_at_any_minute(store: Store) -> None:
    rows = [{"t_us": T0 + n * MINUTE, "dt_us": MINUTE, "energy_mj": n * 1000} for n in range(1, 121)]
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        put(taking, batch(1, rows=rows))
    roll_up_all(store)
    found = ask(store, 15, 75, 90)
    # minutes 15 to 74 hold the rows 16 to 75, 75 to 89 the rows 76 to 90
    assert [row["measured_j"] for row in found.gpus] == pytest.approx([sum(range(16, 76)), sum(range(76, 91))])
