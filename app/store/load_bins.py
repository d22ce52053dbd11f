"""What replicas did at which load: sums and latency buckets of minutes, by replica type and step of load.

A load is the mean of up to five minutes that follow each other: of one minute alone it would be as much the chance of
its arrivals as the rate at which they come. Steps of load have the same width relative to their load, whatever the
highest one is; so what is summed of a day stays as it is, and only the newest hours are read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from app import units
from app.facts.fields import LAST_MOMENT
from app.store.gpu_rollup import HOUR_US
from app.store.ingest import MINUTE_US
from app.store.kept import Block
from app.store.names import stamp
from app.store.reader import Reader
from app.store.replica_loads import LEAST_MEASURED
from app.store.retention import DAY_US
from app.store.spans import FLEET_SPANS, REPLICA_SPANS

# So many steps of load lie between a load and its double: each is 2.2% wide.
STEPS_PER_DOUBLING = 32
STRETCH_MINUTES = 5
# After its start, or after minutes in which nobody saw it, an engine warms up: caches fill, kernels are compiled.
START_UP_MINUTES = 5
# A GPU that was slowed down for a tenth of a minute makes it a throttled one.
LEAST_THROTTLED = 0.1
# Of so many replicas of one fleet and model, hundreds of thousands of requests a day say all there is to know.
MOST_ENGINES = 64
# On average so many requests waited: the replica was behind.
LEAST_WAITING = 1.0

_TYPE = ("fleet", "model", "gpu_name", "replica_gpus", "simulated")
_KINDS = ", ".join(_TYPE)
_STEP = ("step", "is_throttled")
_SUMS = (
    "minutes", "seconds", "queued_s", "finished", "failed", "prompt_tokens", "generated_tokens", "running_s",
    "gauged_s", "prefill_us", "decode_us", "timed_prompt_tokens", "timed_generated_tokens", "power_ws",
)  # fmt: skip
_START_US, _STRETCH_US = START_UP_MINUTES * MINUTE_US, STRETCH_MINUTES * MINUTE_US
_LEAST_S = LEAST_MEASURED * MINUTE_US / 1e6
_THROTTLED_S = LEAST_THROTTLED * MINUTE_US / 1e6

# overload: an engine's minutes in which requests waited all along, at their most more than it ends in a stretch. Chance
# makes no such queue. edge: stretches that one begins or ends in, and the next, where those end that waited.
# grain: one row per replica type and one of: step of load (kind `step`), step, metric and latency bucket (`latency`),
# nothing more (`idle`), reason to leave minutes out (`left_out`). Minutes of [$start, $end), whole stretches, of up to
# $most engines of each fleet and model. Engines of no fleet, model or GPUs have a type with NULLs, and only `left_out`.
_READ = f"""
    WITH {FLEET_SPANS}, {REPLICA_SPANS},
    asked AS MATERIALIZED (
        SELECT engine_id, engine.node_id, model, started_us
        FROM engine
        JOIN fleet_span ON fleet_span.node_id = engine.node_id AND from_us <= $start AND to_us > $start
        SEMI JOIN (SELECT engine_id FROM engine_hour WHERE hour_us >= $start AND hour_us < $end) AS seen
          ON seen.engine_id = engine.engine_id
        QUALIFY row_number() OVER (PARTITION BY fleet, model ORDER BY hash(engine_id)) <= $most
    ),
    counted AS (
        SELECT *, minute_us - max(fresh_us) OVER (PARTITION BY engine_id ORDER BY minute_us) < {_START_US} AS is_fresh
        FROM (
            SELECT
                *,
                CASE WHEN lag(minute_us) OVER before IS DISTINCT FROM minute_us - {MINUTE_US}
                       OR lag(gap_s) OVER before > 0 THEN minute_us END AS fresh_us
            FROM engine_minute
            WHERE minute_us >= $start - {_START_US + MINUTE_US} AND minute_us < $end
              AND engine_id IN (SELECT engine_id FROM asked)
            WINDOW before AS (PARTITION BY engine_id ORDER BY minute_us)
        )
        QUALIFY minute_us >= $start
    ),
    powered AS (
        SELECT
            engine_id,
            minute_us,
            count(*) AS gpus,
            max(sharers) AS sharers,
            min(covered_s) AS covered_s,
            max(throttled_s) AS throttled_s,
            sum(known_j / nullif(covered_s, 0)) AS power_w
        FROM gpu_use_minute
        WHERE minute_us >= $start AND minute_us < $end AND engine_id IN (SELECT engine_id FROM asked)
        GROUP BY engine_id, minute_us
    ),
    overload AS (
        SELECT engine_id, min(minute_us) AS from_us, max(minute_us) + {MINUTE_US} AS to_us
        FROM (
            SELECT
                engine_id,
                minute_us,
                mean_waiting,
                finished_stop + finished_length AS finished,
                count(*) FILTER (mean_waiting >= {LEAST_WAITING} IS NOT TRUE) OVER (
                    PARTITION BY engine_id ORDER BY minute_us
                ) AS before
            FROM counted
        )
        WHERE mean_waiting >= {LEAST_WAITING}
        GROUP BY engine_id, before
        HAVING max(mean_waiting) >= {STRETCH_MINUTES} * avg(finished)
    ),
    edge AS (
        SELECT DISTINCT engine_id, stretch
        FROM (
            SELECT *, unnest(range(from_us // {_STRETCH_US}, to_us // {_STRETCH_US} + 2)) AS stretch FROM overload
        )
        WHERE stretch * {_STRETCH_US} < from_us OR (stretch + 1) * {_STRETCH_US} > to_us
    ),
    minute AS MATERIALIZED (
        SELECT
            counted.engine_id,
            minute_us,
            minute_us // {_STRETCH_US} AS stretch,
            fleet,
            model,
            gpu_name,
            kind.replica_gpus,
            node.simulated,
            coalesce(throttled_s, 0) >= {_THROTTLED_S} AS is_throttled,
            busy_s = 0 AS is_idle,
            CASE
                WHEN fleet IS NULL OR model IS NULL OR gpu_name IS NULL THEN 'not_placed'
                WHEN counted.prompt_tokens IS NULL OR counted.generated_tokens IS NULL THEN 'no_tokens_told'
                WHEN sharers > 1 THEN 'shared_gpu'
                WHEN seen_s < {_LEAST_S} OR gap_s > 0 OR coalesce(covered_s, 0) < {_LEAST_S}
                  OR gpus <> kind.replica_gpus THEN 'gap'
                WHEN is_fresh OR minute_us + {MINUTE_US} > started_us AND minute_us < started_us + {_START_US}
                  THEN 'start_up'
                WHEN edge.stretch IS NOT NULL THEN 'overload_edge'
            END AS reason,
            seen_s AS seconds,
            finished_stop + finished_length AS finished,
            coalesce(finished_failed, 0) + coalesce(finished_aborted, 0) AS failed,
            prompt_tokens,
            generated_tokens,
            mean_running * gauged_s AS running_s,
            mean_waiting * gauged_s AS waiting_s,
            CASE WHEN mean_running IS NOT NULL THEN gauged_s END AS gauged_s,
            prefill_us,
            decode_us,
            CASE WHEN prefill_us IS NOT NULL THEN prompt_tokens END AS timed_prompt_tokens,
            CASE WHEN decode_us IS NOT NULL THEN generated_tokens END AS timed_generated_tokens,
            power_w * seen_s AS power_ws
        FROM counted
        LEFT JOIN powered USING (engine_id, minute_us)
        LEFT JOIN edge ON edge.engine_id = counted.engine_id AND edge.stretch = counted.minute_us // {_STRETCH_US}
        JOIN asked AS engine USING (engine_id)
        JOIN (SELECT node_id, coalesce(simulated, false) AS simulated FROM node) AS node USING (node_id)
        JOIN fleet_span ON fleet_span.node_id = engine.node_id
         AND minute_us >= fleet_span.from_us AND minute_us < fleet_span.to_us
        LEFT JOIN replica_span AS kind ON kind.engine_id = counted.engine_id
         AND minute_us >= kind.from_us AND minute_us < kind.to_us
    ),
    stretch AS MATERIALIZED (
        SELECT
            engine_id,
            stretch,
            {_KINDS},
            is_throttled,
            floor({STEPS_PER_DOUBLING} * log2(nullif(sum(prompt_tokens + generated_tokens), 0) / sum(seconds)))::INTEGER
                AS step,
            count(*) AS minutes,
            CASE WHEN sum(waiting_s) >= {LEAST_WAITING} * sum(gauged_s) THEN sum(seconds) ELSE 0 END AS queued_s,
            {", ".join(f"sum({name}) AS {name}" for name in _SUMS if name not in ("minutes", "queued_s"))}
        FROM minute WHERE reason IS NULL GROUP BY ALL
    )
    SELECT
        'step' AS kind, {_KINDS}, {", ".join(_STEP)}, count(DISTINCT engine_id) AS engines,
        {", ".join(f"sum({name})::DOUBLE AS {name}" for name in _SUMS)}
    FROM stretch WHERE step IS NOT NULL GROUP BY ALL
    UNION ALL BY NAME
    SELECT
        'idle' AS kind, {_KINDS}, count(*)::DOUBLE AS minutes, sum(seconds) AS seconds, sum(power_ws) AS power_ws
    FROM minute WHERE reason IS NULL AND is_idle AND NOT is_throttled GROUP BY ALL
    UNION ALL BY NAME
    SELECT 'left_out' AS kind, {_KINDS}, reason, count(*)::DOUBLE AS minutes
    FROM minute WHERE reason IS NOT NULL GROUP BY ALL
    UNION ALL BY NAME
    SELECT 'latency' AS kind, {_KINDS}, {", ".join(_STEP)}, metric, lower_us, upper_us, sum(n)::BIGINT AS n
    FROM (
        SELECT engine_id, minute_us, {_KINDS}, {", ".join(_STEP)}
        FROM (SELECT engine_id, minute_us, stretch, is_throttled FROM minute WHERE reason IS NULL)
        JOIN stretch USING (engine_id, stretch, is_throttled)
        WHERE step IS NOT NULL
    )
    JOIN (
        FROM engine_latency_minute
        WHERE minute_us >= $start AND minute_us < $end AND engine_id IN (SELECT engine_id FROM asked)
    ) USING (engine_id, minute_us)
    GROUP BY ALL
"""
_COLUMNS = pl.Schema(
    {
        "kind": pl.String, "fleet": pl.String, "model": pl.String, "gpu_name": pl.String, "replica_gpus": pl.Int64,
        "simulated": pl.Boolean, "step": pl.Int32, "is_throttled": pl.Boolean, "engines": pl.Int64,
        **dict.fromkeys(_SUMS, pl.Float64),
        "reason": pl.String, "metric": pl.UInt8, "lower_us": pl.Int64, "upper_us": pl.Int64, "n": pl.Int64,
    }
)  # fmt: skip

Row = dict[str, Any]


@dataclass(frozen=True)
class LoadBins:
    """Each row has its type: fleet, model, gpu_name, replica_gpus, simulated.

    steps: sums by step and is_throttled; of load tokens_per_s (prompt + generated) between 2^(step/32) and
    2^((step+1)/32). engines: on the day with most of them. failed: with aborted ones. running_s: running requests x
    seconds, over gauged_s. queued_s: seconds of stretches in which requests waited. timed_*: tokens of those that tell
    prefill and decode times. power_ws: energy at the mean power of each minute.
    latency: n by step, is_throttled, metric (position in samples.LATENCY_METRICS), lower_us and upper_us (None:
    unbounded). idle: minutes, seconds and power_ws of minutes without a token or a running request.
    left_out: minutes by reason: not_placed, no_tokens_told, shared_gpu, gap, start_up, overload_edge. stamp: it changes
    with any row.
    """

    steps: list[Row]
    latency: list[Row]
    idle: list[Row]
    left_out: list[Row]
    stamp: int = field(default=0, compare=False)


def load_bins(store: Reader, start: datetime, end: datetime) -> LoadBins:
    """Of the minutes in [start, end), cut to whole hours, by the latest knowledge of fleets and GPUs.

    Of a fleet's replicas of one model up to MOST_ENGINES are read, the same ones for each question about a day.
    """
    first_us, end_us = (units.us_of_moment(moment) // HOUR_US * HOUR_US for moment in (start, end))
    rows = pl.concat([_COLUMNS.to_frame(), *_read(store, first_us, end_us)])
    stamp = hash((int(rows.hash_rows().sum() or 0), rows.height))
    return store.once(("load bins", stamp), lambda: _summed(rows, stamp))


def _summed(rows: pl.DataFrame, stamp: int) -> LoadBins:
    kinds = {str(kind): part for (kind,), part in rows.partition_by("kind", as_dict=True).items()}
    empty = rows.clear()
    sums = [pl.sum(name) if name not in _MAYBE else _known(name) for name in _SUMS]
    return LoadBins(
        steps=_listed(kinds.get("step", empty), _STEP, pl.max("engines"), *sums),
        latency=_listed(kinds.get("latency", empty), (*_STEP, "metric", "lower_us", "upper_us"), pl.sum("n")),
        idle=_listed(kinds.get("idle", empty), (), *(pl.sum(name) for name in ("minutes", "seconds", "power_ws"))),
        left_out=_listed(kinds.get("left_out", empty), ("reason",), pl.sum("minutes")),
        stamp=stamp,
    )


_MAYBE = ("finished", "running_s", "gauged_s", "prefill_us", "decode_us", "timed_prompt_tokens",
          "timed_generated_tokens")  # fmt: skip


def _known(name: str) -> pl.Expr:
    """The sum of what was told, None where nothing was."""
    return pl.when(pl.col(name).is_not_null().any()).then(pl.sum(name)).alias(name)


def _listed(rows: pl.DataFrame, keys: Sequence[str], *sums: pl.Expr) -> list[Row]:
    keyed = [*_TYPE, *keys]
    return list(rows.group_by(keyed).agg(*sums).sort(keyed, nulls_last=True).iter_rows(named=True))


def _read(store: Reader, first_us: int, end_us: int) -> list[pl.DataFrame]:
    """Whole days by what is kept of them; the hours before and after them hour by hour."""
    from_day, to_day = -(-first_us // DAY_US) * DAY_US, end_us // DAY_US * DAY_US
    if from_day > to_day:
        from_day = to_day = end_us
    spans = (
        _blocks(first_us, from_day, HOUR_US),
        _blocks(from_day, to_day, DAY_US),
        _blocks(to_day, end_us, HOUR_US),
    )

    def read(blocks: Sequence[Block]) -> pl.DataFrame:
        return pl.concat([_of_block(store, block) for block in blocks])

    what = ("load bins", stamp(store))
    return [store.blocks(what, blocks, "start_us", read).select(_COLUMNS.names()) for blocks in spans if blocks]


def _blocks(start_us: int, end_us: int, length_us: int) -> list[Block]:
    return [(us, us + length_us) for us in range(start_us, end_us, length_us)]


def _of_block(store: Reader, block: Block) -> pl.DataFrame:
    given = {"start": block[0], "end": block[1], "most": MOST_ENGINES, "known_at": LAST_MOMENT}
    rows = store.query(_READ, given).select(pl.col(name).cast(dtype) for name, dtype in _COLUMNS.items())
    return rows.with_columns(pl.lit(block[0], pl.Int64).alias("start_us"))
