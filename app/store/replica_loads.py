"""What replicas drew at which load: of minutes or hours in which both were measured, thinned in the store."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from app.store.gpu_rollup import HOUR_US
from app.store.ingest import MINUTE_US
from app.store.reader import Reader
from app.store.spans import FLEET_SPANS, REPLICA_SPANS

Step = Literal["minute", "hour"]
_STEP_US = {"minute": MINUTE_US, "hour": HOUR_US}
# So much of a minute or hour must be measured, of the engine and of each GPU, for the two to speak of the same time.
LEAST_MEASURED = 0.9
# Loads of a type are told apart in so many steps up to its highest; many more than a chart has points.
LOADS = 400


def replica_loads(
    store: Reader,
    start: datetime,
    end: datetime,
    step: Step,
    known_at: datetime,
    *,
    fleet: str | None = None,
    model: str | None = None,
) -> list[dict[str, Any]]:
    """Mean tokens_per_s (prompt + generated) and power_w of the GPUs of one replica, and the seconds behind them.

    A row per replica type (gpu_name, replica_gpus, model, simulated) and load; buckets of `step` that begin in
    [start, end). Only measured joules; only replicas that have their GPUs for themselves.
    """
    given = {"start": start, "end": end, "fleet": fleet, "model": model}
    parameters = {"known_at": known_at} | {name: value for name, value in given.items() if value is not None}
    rows = store.query(_loads(step, of_fleet=fleet is not None, of_model=model is not None), parameters)
    return list(rows.iter_rows(named=True))


def replicas_seen(store: Reader, start: datetime, end: datetime) -> int:
    """How many engines were scraped in the hours that begin in [start, end)."""
    # one row
    counted = "SELECT count(DISTINCT engine_id) AS n FROM engine_hour WHERE hour_us >= $1 AND hour_us < $2"
    return int(store.query(counted, [_us(start), _us(end)])["n"][0])


def _us(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000


def _loads(step: Step, *, of_fleet: bool, of_model: bool) -> str:
    bucket, step_us = f"{step}_us", _STEP_US[step]
    least_s = LEAST_MEASURED * step_us / 1e6
    in_range = f"{bucket} >= epoch_us($start::TIMESTAMPTZ) AND {bucket} < epoch_us($end::TIMESTAMPTZ)"
    of_time = f"{bucket} >= fleet_span.from_us AND {bucket} < fleet_span.to_us"
    in_fleet = f"JOIN fleet_span USING (node_id) WHERE fleet = $fleet AND {of_time}"
    # grain: one row per replica type and load
    return f"""
    WITH {FLEET_SPANS}, {REPLICA_SPANS},
    powered AS (
        SELECT
            engine_id,
            {bucket},
            sum(known_j / covered_s) AS power_w
        FROM gpu_use_{step}
        WHERE {in_range} AND engine_id IS NOT NULL AND sharers = 1
        GROUP BY engine_id, {bucket}
        HAVING count(*) = any_value(replica_gpus) AND min(covered_s) >= {least_s}
    ),
    worked AS (
        SELECT engine_id, {bucket}, (prompt_tokens + generated_tokens) / seen_s AS tokens_per_s, seen_s
        FROM engine_{step}
        WHERE {in_range} AND seen_s >= {least_s} AND prompt_tokens IS NOT NULL AND generated_tokens IS NOT NULL
    ),
    replica AS (
        SELECT gpu_name, replica_gpus, model, simulated, tokens_per_s, power_w, seen_s,
               max(tokens_per_s) OVER (PARTITION BY gpu_name, replica_gpus, model, simulated) AS top
        FROM worked
        JOIN powered USING (engine_id, {bucket})
        JOIN replica_span AS kind
          ON kind.engine_id = worked.engine_id AND {bucket} >= kind.from_us AND {bucket} + {step_us} <= kind.to_us
        JOIN (SELECT engine_id, node_id, model FROM engine {"WHERE model = $model" if of_model else ""}) AS engine
          ON engine.engine_id = worked.engine_id
        JOIN (SELECT node_id, simulated FROM node) AS node USING (node_id)
        {in_fleet if of_fleet else ""}
    )
    SELECT
        gpu_name,
        replica_gpus,
        model,
        simulated,
        sum(tokens_per_s * seen_s) / sum(seen_s) AS tokens_per_s,
        sum(power_w * seen_s) / sum(seen_s) AS power_w,
        sum(seen_s) AS seconds
    FROM replica
    GROUP BY gpu_name, replica_gpus, model, simulated,
             CASE WHEN tokens_per_s > 0 THEN least(floor(tokens_per_s / top * {LOADS}), {LOADS} - 1) END
    ORDER BY ALL NULLS LAST
    """
