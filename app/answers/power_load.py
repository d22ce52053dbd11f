"""What replicas of each type draw at which load: measured power against tokens per second, binned."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from app import units
from app.accounting.comparison import LoadMoment, LoadPoint, power_against_load
from app.accounting.figure import Method
from app.answers.query import AccountQuery
from app.answers.summary import heading
from app.config import Config
from app.store.database import Store
from app.store.moment import moment
from app.store.replica_loads import LEAST_MEASURED, Step, replica_loads, replicas_seen

# Up to so many minutes of replicas are read as minutes; of more, hours do.
MOST_MINUTES = 100_000
_MINUTE = timedelta(minutes=1)


def power_load(store: Store, config: Config, query: AccountQuery, now: datetime) -> dict[str, Any]:
    """Replica types with their points of load: {"query", ..., "step", "boundary", "types": [...], "notes"}.

    A type is {"card", "gpus", "model", "simulated", "method", "points": [{"tokens_per_s", "power_w",
    "tokens_per_joule", "hours"}]}; hours: of replicas, that the point is the mean of.
    """
    with moment(store) as reader:
        step: Step = "minute"
        minutes = replicas_seen(reader, query.start, query.end) * ((query.end - query.start) // _MINUTE)
        if minutes > MOST_MINUTES or query.start < now - timedelta(days=config.store.minute_days):
            step = "hour"
        known_at = query.known_at or now
        rows = replica_loads(reader, query.start, query.end, step, known_at, fleet=query.fleet, model=query.model)
    return heading(query, now) | {
        "step": step,
        "boundary": "gpu",
        "types": list(_types(rows)),
        "notes": [
            f"A point is the mean of all {step}s of its type in one of 20 equally wide bins of load; {step}s without a "
            f"token have one of their own. A {step} counts when the replica had its GPUs for itself, and at least "
            f"{LEAST_MEASURED:.0%} of it was measured, of the engine and of each GPU"
        ],
    }


def _types(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for key, mine in groupby(rows, lambda row: (row["gpu_name"], row["replica_gpus"], row["model"], row["simulated"])):
        card, gpus, model, simulated = key
        method: Method = "simulated" if simulated else "measured"
        points = power_against_load(LoadMoment(row["tokens_per_s"], row["power_w"], row["seconds"]) for row in mine)
        yield {
            "card": card, "gpus": gpus, "model": model, "simulated": simulated, "method": method,
            "points": [_point(point) for point in points],
        }  # fmt: skip


def _point(point: LoadPoint) -> dict[str, Any]:
    return {
        "tokens_per_s": point.tokens_per_s,
        "power_w": point.power_w,
        "tokens_per_joule": point.tokens_per_joule,
        "hours": units.hours(point.seconds),
    }
