"""Batches of engines up to a moment, for tests of what is shown of the last minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collectors.samples import Batch
from tests.batches import SECOND, URL, Row, batch, engine, gpu, seconds, uuid_of

FAST, SLOW = [2, 0, 0, 0], [0, 0, 2, 0]


def replicas_up_to(end_us: int, count: int = 4, *, slow: Sequence[int] = (), idle: int = 0, **given: Any) -> Batch:
    """Five minutes of a node with a GPU of 300 W and an engine of 120 tokens/s on each, and `idle` GPUs of 50 W more.

    A fast replica's TTFT is up to 10 ms, that of a slow one 50 to 100 ms.
    """
    gpu_rows: list[Row] = []
    scrapes: list[Row] = []
    for number in range(count + idle):
        energy_mj = 300_000 if number < count else 50_000
        gpu_rows += [
            {"gpu": number, **row} for row in seconds(end_us - 70 * SECOND, 70, energy_mj=energy_mj, utilisation_pct=50)
        ]
    for number in range(count):
        told = {
            "engine": number, "prompt_tokens": 500, "generated_tokens": 100, "finished_stop": 2, "running": 3,
            "waiting": 1, "ttft_us": 9, "ttft_buckets": SLOW if number in slow else FAST,
        }  # fmt: skip
        scrapes += [{"t_us": end_us - back * 5 * SECOND, **told} for back in reversed(range(60))]
    known = {
        "gpus": [gpu(index=number) for number in range(count + idle)],
        "engines": [
            engine(url=URL.replace("8000", f"{8000 + number}"), gpus=[uuid_of("node-7", number)])
            for number in range(count)
        ],
        "sent_at_us": end_us,
    }
    return batch(given.pop("sequence", 1), rows=gpu_rows, engine_rows=scrapes, **{**known, **given})
