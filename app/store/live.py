"""Raw samples of the last minutes, summed per engine and GPU: the rows behind the Live page.

Nodes push every few seconds and not at one moment. So each engine has a window of its own, which ends with its newest
row, and the energy of a GPU is that of the windows of the engines on it. Rows that bridge a gap (more than a minute)
are left out: what happened in them is not of the moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.store.database import Store
from app.store.ingest import LONGEST_INTERVAL_US, MINUTE_US
from collectors.samples import LATENCY_METRICS

SECOND_US = 1_000_000
# A replica whose newest sample is older than this is silent.
FRESH_S = 60
GPU_REMEMBERED_S = 3600
SILENT_SHOWN_S, DOWN_SHOWN_S = 3600, 86_400
BIN_S, HISTORY_S, SETTLE_S = 15, 900, 15
# `engine` was replaced by `other` at its URL: that page was read this much later and did not show it, or it is what
# was noted before the page told its model.
REPLACED_S = 30
REPLACED = f"""
    other.node_id = engine.node_id AND other.url = engine.url AND other.engine_id <> engine.engine_id
    AND (other.last_seen > engine.last_seen + to_seconds({REPLACED_S})
         OR (engine.model IS NULL AND other.model IS NOT NULL AND other.last_seen >= engine.last_seen))
"""

Row = dict[str, Any]


@dataclass(frozen=True)
class LiveWindow:
    """at: the moment that is asked for; what became known later (a node, a fleet, an engine's GPUs) does not count.

    window_s: for rates and power. long_s: for latencies and comparisons.
    """

    at: datetime
    window_s: int
    long_s: int

    @property
    def at_us(self) -> int:
        return round(self.at.timestamp() * 1e6)


@dataclass(frozen=True)
class LiveRows:
    """engines: one row each, sums None without fresh rows. ttft: engine -> (lower, upper, n). gpus: one row each.

    history: one row per fleet and bin of BIN_S seconds, by the bin's start.
    """

    engines: list[Row]
    ttft: dict[int, list[tuple[int, int | None, int]]]
    gpus: list[Row]
    history: list[Row]


# grain: one row per engine with a fresh row: the end of its window. $1 fresh from, $2 the moment
_NEWEST = f"""
    newest AS (
        SELECT engine_id, max(t_us) AS end_us FROM engine_sample
        WHERE t_us > $1 AND t_us <= $2 AND dt_us <= {LONGEST_INTERVAL_US} GROUP BY engine_id
    )
"""
# grain: one row per node: the fleet that it belongs to, by what was known at the moment
_FLEETS = """
    fleets AS (
        SELECT node_id, arg_max_null(fleet, (valid_from, known_at)) AS fleet
        FROM node_fleet WHERE known_at <= {at} AND valid_from <= {at} GROUP BY node_id
    )
"""
# grain: one row per engine: the GPUs that it runs on, by what was known at the moment
_GPUS_OF_ENGINES = """
    placed AS (
        SELECT engine_id, arg_max_null(uuids, (valid_from, known_at)) AS uuids
        FROM engine_gpus WHERE known_at <= {at} GROUP BY engine_id
    )
"""
_FINISHED = "finished_stop, finished_length"
_FAILED = "finished_failed, finished_aborted, rejected"

# grain: one row per engine that is there or was a while ago, without those that another model has replaced.
# $3 oldest row that may count, $4 window, $5 long window, $6 the moment, $7 $8 shown since, silent and down
_ENGINES = f"""
    WITH {_NEWEST}, {_FLEETS.format(at="$6")}, {_GPUS_OF_ENGINES.format(at="$6")},
    rows AS (
        SELECT
            sample.*,
            end_us,
            t_us > end_us - $4 AS recent,
            prompt_tokens + generated_tokens AS tokens,
            list_sum([{_FINISHED}]) AS finished,
            list_sum([{_FAILED}]) AS failed,
            list_sum([{_FINISHED}, {_FAILED}]) AS ended
        FROM engine_sample AS sample JOIN newest USING (engine_id)
        WHERE t_us > $3 AND t_us <= end_us AND t_us > end_us - $5 AND dt_us <= {LONGEST_INTERVAL_US}
    ),
    sums AS (
        SELECT
            engine_id,
            any_value(end_us) AS end_us,
            min(t_us - dt_us) FILTER (recent) AS start_us,
            sum(tokens) FILTER (recent)::BIGINT AS tokens,
            sum(dt_us) FILTER (recent AND tokens IS NOT NULL) / 1e6 AS tokens_s,
            sum(generated_tokens) FILTER (recent)::BIGINT AS generated_tokens,
            sum(dt_us) FILTER (recent AND generated_tokens IS NOT NULL) / 1e6 AS generated_s,
            sum(finished) FILTER (recent)::BIGINT AS finished,
            sum(dt_us) FILTER (recent AND finished IS NOT NULL) / 1e6 AS finished_s,
            sum(failed) FILTER (recent)::BIGINT AS failed,
            sum(dt_us) FILTER (recent AND failed IS NOT NULL) / 1e6 AS failed_s,
            arg_max(running, t_us) AS running,
            arg_max(waiting, t_us) AS waiting,
            arg_max(kv_usage_ppm, t_us) AS kv_usage_ppm,
            bool_or(ttft_us IS NOT NULL) AS tells_ttft,
            sum(ended)::BIGINT AS long_ended,
            sum(dt_us) FILTER (ended IS NOT NULL) / 1e6 AS long_ended_s,
            sum(generated_tokens) FILTER (running IS NOT NULL) / nullif(
                sum(running * dt_us) FILTER (generated_tokens IS NOT NULL) / 1e6, 0
            ) AS long_tokens_per_request_s
        FROM rows GROUP BY engine_id
    )
    SELECT
        engine.engine_id, node.name AS node, coalesce(node.simulated, false) AS simulated, fleet, url, label, model,
        kind, version, engine.status, engine.last_seen, state.last_seen AS node_seen, uuids, sums.* EXCLUDE (engine_id)
    FROM engine
    JOIN node USING (node_id)
    LEFT JOIN node_state AS state USING (node_id)
    LEFT JOIN fleets USING (node_id)
    LEFT JOIN placed USING (engine_id)
    LEFT JOIN sums USING (engine_id)
    WHERE engine.first_seen <= $6
      AND (sums.end_us IS NOT NULL OR engine.last_seen > CASE WHEN engine.status = 'ok' THEN $7 ELSE $8 END)
      AND (sums.end_us IS NOT NULL OR NOT EXISTS (FROM engine AS other WHERE other.first_seen <= $6 AND {REPLACED}))
    ORDER BY node.name, url, label, model
"""

# grain: one row per engine and latency bucket, of first tokens. $3 oldest row, $4 long window
_TTFT = f"""
    WITH {_NEWEST}
    SELECT engine_id, lower_us, upper_us, sum(n)::BIGINT AS n
    FROM engine_latency_scrape JOIN newest USING (engine_id)
    WHERE metric = {LATENCY_METRICS.index("ttft")}
      AND t_us > $3 AND t_us <= end_us AND t_us > end_us - $4 AND dt_us <= {LONGEST_INTERVAL_US}
    GROUP BY engine_id, lower_us, upper_us
"""

# grain: one row per GPU that was seen in the last hour. A row's energy counts by its part in the window: that of the
# GPU's engines, else the newest seconds. $3 oldest row, $4 window, $5 the moment, $6 remembered since
_GPUS = f"""
    WITH {_NEWEST}, {_FLEETS.format(at="$5")}, {_GPUS_OF_ENGINES.format(at="$5")},
    engine_windows AS (
        SELECT engine_id, min(t_us - dt_us) AS start_us, any_value(end_us) AS end_us
        FROM engine_sample JOIN newest USING (engine_id)
        WHERE t_us > $3 AND t_us <= end_us AND t_us > end_us - $4 AND dt_us <= {LONGEST_INTERVAL_US}
        GROUP BY engine_id
    ),
    busy AS (
        SELECT uuid, min(start_us) AS start_us, max(end_us) AS end_us
        FROM (SELECT unnest(uuids) AS uuid, start_us, end_us FROM engine_windows JOIN placed USING (engine_id))
        GROUP BY uuid
    ),
    raw AS (
        SELECT gpu_id, t_us, dt_us, energy_mj, energy_method, thermal_slowdown OR hardware_slowdown AS slowed
        FROM gpu_sample WHERE t_us > $3 AND t_us <= $2
    ),
    own AS (
        SELECT gpu_id, last_us, min(t_us - dt_us) AS first_us
        FROM raw JOIN (SELECT gpu_id, max(t_us) AS last_us FROM raw WHERE t_us > $1 GROUP BY gpu_id) USING (gpu_id)
        WHERE t_us > last_us - $4 GROUP BY gpu_id, last_us
    ),
    windows AS (
        SELECT gpu_id, coalesce(start_us, first_us) AS start_us, coalesce(end_us, last_us) AS end_us, last_us
        FROM own JOIN gpu USING (gpu_id) LEFT JOIN busy USING (uuid)
    ),
    parts AS (
        SELECT *, least(t_us, end_us) - greatest(t_us - dt_us, start_us) AS part_us
        FROM raw JOIN windows USING (gpu_id) WHERE t_us > start_us AND t_us - dt_us < end_us
    ),
    sums AS (
        SELECT
            gpu_id,
            sum(energy_mj * (part_us / dt_us)) FILTER (energy_method IS NOT NULL) / 1e3 AS energy_j,
            sum(part_us) FILTER (energy_mj IS NOT NULL AND energy_method IS NOT NULL) / 1e6 AS covered_s,
            sum(part_us) FILTER (slowed) / 1e6 AS slowed_s
        FROM parts GROUP BY gpu_id
    ),
    minutes AS (
        SELECT gpu_id, max(minute_us) + {MINUTE_US} AS last_us
        FROM gpu_minute WHERE minute_us > $6 AND minute_us <= $2 GROUP BY gpu_id
    )
    SELECT
        uuid, gpu.name, gpu_index, node.name AS node, coalesce(node.simulated, false) AS simulated, fleet, gpu.status,
        energy_j, covered_s, slowed_s, (end_us - start_us) / 1e6 AS window_s,
        coalesce(windows.last_us, minutes.last_us) AS last_us
    FROM gpu
    JOIN node USING (node_id)
    LEFT JOIN fleets USING (node_id)
    LEFT JOIN windows USING (gpu_id)
    LEFT JOIN sums USING (gpu_id)
    LEFT JOIN minutes USING (gpu_id)
    WHERE gpu.first_seen <= $5 AND coalesce(windows.last_us, minutes.last_us) IS NOT NULL
    ORDER BY node.name, gpu_index
"""

# grain: one row per fleet and bin: the sum of its engines' rates over the seconds of the bin that they cover.
# $1 first bin, $2 end of the last, $3 bin, $4 the moment
_HISTORY = f"""
    WITH {_FLEETS.format(at="$4")},
    cut AS (
        SELECT
            engine_id, t_us, dt_us, prompt_tokens + generated_tokens AS tokens,
            unnest(range((t_us - dt_us) // $3, (t_us - 1) // $3 + 1)) * $3 AS bin_us
        FROM engine_sample
        WHERE t_us > $1 AND t_us <= $2 + {LONGEST_INTERVAL_US} AND dt_us <= {LONGEST_INTERVAL_US}
          AND prompt_tokens IS NOT NULL AND generated_tokens IS NOT NULL
    ),
    parts AS (SELECT *, least(t_us, bin_us + $3) - greatest(t_us - dt_us, bin_us) AS part_us FROM cut),
    rates AS (
        SELECT engine_id, bin_us, sum(tokens * (part_us / dt_us)) / sum(part_us) * 1e6 AS tokens_per_s
        FROM parts WHERE bin_us >= $1 AND bin_us < $2 GROUP BY engine_id, bin_us
    )
    SELECT fleet, bin_us, sum(tokens_per_s) AS tokens_per_s
    FROM rates JOIN engine USING (engine_id) LEFT JOIN fleets USING (node_id)
    GROUP BY fleet, bin_us ORDER BY fleet NULLS LAST, bin_us
"""


def live_rows(store: Store, window: LiveWindow) -> LiveRows:
    """What the raw samples of the last minutes say, all of one moment."""
    with store.snapshot() as read:
        engines, ttft, gpus, history = (read(sql, parameters) for sql, parameters in questions(window))
    buckets: dict[int, list[tuple[int, int | None, int]]] = {}
    for engine_id, lower_us, upper_us, n in ttft.iter_rows():
        buckets.setdefault(engine_id, []).append((lower_us, upper_us, n))
    return LiveRows(
        list(engines.iter_rows(named=True)), buckets, list(gpus.iter_rows(named=True)),
        list(history.iter_rows(named=True)),
    )  # fmt: skip


def questions(window: LiveWindow) -> list[tuple[str, list[Any]]]:
    """The statements for engines, TTFT, GPUs and history, with their parameters: each reads a bounded span of time."""
    fresh = [window.at_us - FRESH_S * SECOND_US, window.at_us]
    short_us, long_us = window.window_s * SECOND_US, window.long_s * SECOND_US
    shown = [window.at - timedelta(seconds=seconds) for seconds in (SILENT_SHOWN_S, DOWN_SHOWN_S)]
    remembered_us = window.at_us - GPU_REMEMBERED_S * SECOND_US
    either_us = _oldest_us(window, max(short_us, long_us))
    return [
        (_ENGINES, [*fresh, either_us, short_us, long_us, window.at, *shown]),
        (_TTFT, [*fresh, _oldest_us(window, long_us), long_us]),
        (_GPUS, [*fresh, _oldest_us(window, short_us), short_us, window.at, remembered_us]),
        (_HISTORY, [*history_bounds_us(window.at_us), BIN_S * SECOND_US, window.at]),
    ]


def _oldest_us(window: LiveWindow, span_us: int) -> int:
    """Rows up to this time lie in no window of that span: a window may end up to FRESH_S before the moment."""
    return window.at_us - FRESH_S * SECOND_US - span_us - LONGEST_INTERVAL_US


def history_bounds_us(at_us: int) -> tuple[int, int]:
    """[first, end) of the bins shown at a moment: whole ones, of which the pushes have had time to arrive."""
    bin_us = BIN_S * SECOND_US
    end_us = (at_us - SETTLE_S * SECOND_US) // bin_us * bin_us
    return end_us - HISTORY_S * SECOND_US, end_us
