"""What GPUs used and engines did in periods, by fleet and model: from minutes while they are kept, else from hours.

Fleets and the GPUs of engines are those of the time, by the knowledge up to `known_at`. An engine counts as resident on
its GPUs in each hour in which it was scraped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from app.accounting.line import Period
from app.store.database import Store
from app.store.engine_ingest import ENGINE_COUNTS
from app.store.gpu_rollup import HOUR_US
from app.store.ingest import MINUTE_US
from collectors.samples import LATENCY_METRICS

Step = Literal["minute", "hour"]
_STEP_US = {"minute": MINUTE_US, "hour": HOUR_US}

# one row per period
_PERIODS = "period AS (SELECT unnest($positions) AS position, unnest($starts) AS start_us, unnest($ends) AS end_us)"

# one row per node and span of time in one fleet
_FLEETS = """
    fleet_span AS (
        SELECT
            node_id,
            fleet,
            epoch_us(valid_from) AS from_us,
            coalesce(lead(epoch_us(valid_from)) OVER later, 9223372036854775807) AS to_us
        FROM (
            SELECT DISTINCT ON (node_id, valid_from) node_id, fleet, valid_from
            FROM node_fleet WHERE known_at <= $known_at ORDER BY node_id, valid_from, known_at DESC
        )
        WINDOW later AS (PARTITION BY node_id ORDER BY valid_from)
    )"""

# one row per engine and span of time on the same GPUs; uuids NULL: not known
_SPANS = """
    gpus_span AS (
        SELECT
            engine_id,
            uuids,
            epoch_us(valid_from) AS from_us,
            coalesce(lead(epoch_us(valid_from)) OVER later, 9223372036854775807) AS to_us
        FROM (
            SELECT DISTINCT ON (engine_id, valid_from) engine_id, uuids, valid_from
            FROM engine_gpus WHERE known_at <= $known_at ORDER BY engine_id, valid_from, known_at DESC
        )
        WINDOW later AS (PARTITION BY engine_id ORDER BY valid_from)
    )"""


def _in_period(bucket: str) -> str:
    """Whether a bucket begins in the period; periods are whole minutes, and whole hours where hours are read."""
    return f"{bucket} >= period.start_us AND {bucket} < period.end_us"


def _in_span(span: str, bucket: str, step: Step) -> str:
    """Whether the GPUs of `span` hold in the bucket: from the bucket of their change on, so that no two spans share."""
    from_us, to_us = (f"{span}.{edge} // {_STEP_US[step]} * {_STEP_US[step]}" for edge in ("from_us", "to_us"))
    return f"{bucket} >= {from_us} AND {bucket} < {to_us}"


def _gpu_use(step: Step) -> str:
    """One row per period, fleet, model and GPU; a GPU with several resident engines in equal parts among them."""
    bucket = f"gpu_{step}.{step}_us"
    return f"""
    WITH {_PERIODS}, {_FLEETS}, {_SPANS},
    resident AS (
        SELECT gpu_id, engine_hour.engine_id, engine.model, engine_hour.hour_us, from_us, to_us
        FROM engine_hour
        JOIN gpus_span USING (engine_id)
        JOIN engine USING (engine_id)
        JOIN gpu ON list_contains(uuids, gpu.uuid)
        WHERE engine_hour.hour_us >= $first // {HOUR_US} * {HOUR_US} AND engine_hour.hour_us < $last
          AND from_us < engine_hour.hour_us + {HOUR_US} AND to_us > engine_hour.hour_us
    ),
    used AS (
        SELECT
            period.position, gpu_{step}.*, resident.model, fleet_span.fleet,
            count(*) OVER (PARTITION BY period.position, gpu_{step}.gpu_id, {bucket}) AS sharers
        FROM gpu_{step}
        JOIN period ON {_in_period(bucket)}
        JOIN gpu USING (gpu_id)
        LEFT JOIN fleet_span
          ON fleet_span.node_id = gpu.node_id AND {bucket} >= fleet_span.from_us AND {bucket} < fleet_span.to_us
        LEFT JOIN resident
          ON resident.gpu_id = gpu_{step}.gpu_id AND resident.hour_us = {bucket} // {HOUR_US} * {HOUR_US}
         AND {_in_span("resident", bucket, step)}
        WHERE {bucket} >= $first AND {bucket} < $last
    )
    SELECT
        position,
        fleet,
        model,
        gpu.name,
        node.simulated,
        max(sharers) > 1 AS shared,
        sum((counter_j + integral_j) / sharers) AS measured_j,
        sum(interpolated_j / sharers) AS interpolated_j,
        sum(covered_s / sharers) AS covered_s,
        sum(bridged_s / sharers) AS bridged_s,
        sum(provisioned_s / sharers) AS provisioned_s
    FROM used
    JOIN gpu USING (gpu_id)
    JOIN node USING (node_id)
    GROUP BY position, fleet, model, gpu_id, gpu.name, node.simulated
    ORDER BY position, fleet NULLS LAST, model NULLS LAST, gpu_id
    """


def _engine_use(step: Step) -> str:
    """One row per period, fleet and model; `unplaced` counts engines with tokens while their GPUs were not known."""
    bucket = f"{step}_us"
    failed = "finished_failed, finished_aborted, rejected"
    counts = ", ".join(f"sum({name})::BIGINT AS {name}" for name in ENGINE_COUNTS)
    return f"""
    WITH {_PERIODS}, {_FLEETS}, {_SPANS},
    used AS (
        SELECT period.position, engine_{step}.*, engine.model, fleet_span.fleet, uuids, node.simulated
        FROM engine_{step}
        JOIN period ON {_in_period(bucket)}
        JOIN engine USING (engine_id)
        JOIN node USING (node_id)
        LEFT JOIN fleet_span
          ON fleet_span.node_id = engine.node_id AND {bucket} >= fleet_span.from_us AND {bucket} < fleet_span.to_us
        LEFT JOIN gpus_span
          ON gpus_span.engine_id = engine.engine_id AND {_in_span("gpus_span", bucket, step)}
        WHERE {bucket} >= $first AND {bucket} < $last
    )
    SELECT
        position,
        fleet,
        model,
        {counts},
        sum(gap_s) AS gap_s,
        sum(busy_s) AS busy_s,
        sum(list_sum([{failed}]))::BIGINT AS failed,
        sum(list_sum([finished_stop, finished_length]))::BIGINT AS finished,
        count(DISTINCT engine_id) FILTER (uuids IS NULL AND generated_tokens > 0) AS unplaced,
        bool_or(simulated) AS simulated
    FROM used
    GROUP BY position, fleet, model
    ORDER BY position, fleet NULLS LAST, model NULLS LAST
    """


def _latency(step: Step) -> str:
    """One row per period, fleet, model and occupied bucket of one metric."""
    bucket = f"{step}_us"
    return f"""
    WITH {_PERIODS}, {_FLEETS}
    SELECT period.position, fleet_span.fleet, engine.model, lower_us, upper_us, sum(n)::BIGINT AS n
    FROM engine_latency_{step} AS latency
    JOIN period ON {_in_period(bucket)}
    JOIN engine USING (engine_id)
    LEFT JOIN fleet_span
      ON fleet_span.node_id = engine.node_id AND {bucket} >= fleet_span.from_us AND {bucket} < fleet_span.to_us
    WHERE metric = $metric AND {bucket} >= $first AND {bucket} < $last
    GROUP BY ALL
    ORDER BY ALL
    """


@dataclass(frozen=True)
class Usage:
    """Rows of the three questions, each with its period's position, fleet and model."""

    gpus: list[dict[str, Any]]
    engines: list[dict[str, Any]]
    ttft: list[dict[str, Any]]


def usage(store: Store, periods: Sequence[Period], *, known_at: datetime, oldest_minute_us: int) -> Usage:
    """What was used and done in the periods, all of one moment of the store.

    oldest_minute_us: minutes before this may be gone; periods that begin earlier are read from hours.
    """
    if not periods:
        return Usage([], [], [])
    starts, ends = [_us(period.start) for period in periods], [_us(period.end) for period in periods]
    step: Step = "minute" if min(starts) >= oldest_minute_us else "hour"
    given = {
        "positions": list(range(len(periods))), "starts": starts, "ends": ends, "known_at": known_at,
        "first": min(starts), "last": max(ends),
    }  # fmt: skip
    with store.snapshot() as query:
        gpus, engines = query(_gpu_use(step), given), query(_engine_use(step), given)
        ttft = query(_latency(step), given | {"metric": LATENCY_METRICS.index("ttft")})
    return Usage(*(list(table.iter_rows(named=True)) for table in (gpus, engines, ttft)))


def _us(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000
