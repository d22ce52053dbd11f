"""Question: what do replicas do at which load, as they run here? Operating curves from live data, and beside them runs.

A curve is of the fleet that it was measured on: another fleet of the same card has none of it, only runs of its card.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app import units
from app.accounting.latency import Bucket
from app.config import Config
from app.reference.gpus import find_gpu, same_gpu
from app.split.blend import Superseded, blend
from app.split.demand import FleetOffer
from app.split.live_point import Curve, Idle, live_curve
from app.split.load_bin import LoadBin, ReplicaType, widened
from app.split.options import Fleet, Option
from app.split.point import OperatingPoint
from app.split.run_point import point_of_run, power_from_tdp
from app.store.database import Store
from app.store.load_bins import MOST_ENGINES, STEPS_PER_DOUBLING, STRETCH_MINUTES, LoadBins, load_bins
from app.store.moment import moment
from collectors.benchmark.run import BenchmarkRun, percentile_name
from collectors.samples import LATENCY_METRICS, LatencyMetric

# Old enough to hold the peaks of two weeks, new enough to be the engines of today.
WINDOW_DAYS = 14
_TYPE = ("fleet", "model", "gpu_name", "replica_gpus", "simulated")
_SUMS = (
    "minutes", "seconds", "queued_s", "failed", "prompt_tokens", "generated_tokens", "power_ws",
)  # fmt: skip
_MAYBE = ("running_s", "gauged_s", "timed_prompt_tokens", "timed_generated_tokens")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class LiveCurves:
    """The curves of a window up to the last full hour. left_out: minutes by type and reason, that made no point."""

    start: datetime
    end: datetime
    curves: tuple[Curve, ...] = ()
    left_out: tuple[Row, ...] = ()

    def of_offer(self, offer: FleetOffer) -> list[OperatingPoint]:
        """The points of the fleet of that name on that card; simulated ones only of replicas that have no others."""
        mine = [
            one for one in self.curves
            if one.points and one.kind.fleet == offer.name and same_gpu(offer.gpu, one.kind.gpu_name)
        ]  # fmt: skip
        real = {(one.kind.model, one.kind.gpus) for one in mine if not one.kind.simulated}
        return [
            point
            for one in mine
            if not one.kind.simulated or (one.kind.model, one.kind.gpus) not in real
            for point in one.points
        ]


def measure_curves(store: Store, config: Config, now: datetime) -> LiveCurves:
    """Of whole days, WINDOW_DAYS of them and what there is of today, while their minutes are kept."""
    end = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    oldest = end + timedelta(hours=1) - timedelta(days=config.store.minute_days)
    start = max(end.replace(hour=0) - timedelta(days=WINDOW_DAYS), oldest.replace(minute=0, second=0, microsecond=0))
    with moment(store) as reader:
        bins = load_bins(reader, start, end)
        return reader.once(("live curves", bins.stamp, start, end), lambda: _curves(bins, start, end))


def live_curves(store: Store, config: Config, runs: Sequence[BenchmarkRun], now: datetime) -> dict[str, Any]:
    """Each curve with its points, what was left out of it and why, and the runs that its points stand in for.

    {"generated_at", "from", "to", "basis", "boundary", "curves": [{"fleet", "card", "gpus", "model", "simulated",
    "points", "superseded", "left_out"}], "left_out": [{"fleet", ..., "reason", "minutes"}], "notes"}.
    """
    measured = measure_curves(store, config, now)
    return {
        "generated_at": now.isoformat(),
        "from": measured.start.isoformat(),
        "to": measured.end.isoformat(),
        "basis": "total",
        "boundary": "gpu",
        "curves": [_curve_as_json(one, runs) for one in measured.curves],
        "left_out": [
            {**_type_as_json(row), "reason": row["reason"], "minutes": round(row["minutes"])}
            for row in measured.left_out
        ],
        "notes": [
            f"A load is the mean of up to {STRETCH_MINUTES} minutes of one replica. Latencies are read off the merged "
            "buckets of all minutes of a load, and never fall with it: bins that do are one sample",
            f"Of a fleet's replicas of one model up to {MOST_ENGINES} are read",
        ],
    }


def blended_options(fleet: Fleet, runs: Iterable[BenchmarkRun], live: Sequence[OperatingPoint]) -> list[Option]:
    """What a fleet can be planned with: its live points and the runs of its card, without those superseded."""
    run_options = list(_numbered(fleet, runs))
    kept, _ = blend(live, [option.point for option in run_options])
    staying = {id(point) for point in kept}
    mine = [Option(fleet, point) for point in live] + run_options
    return [option for option in mine if id(option.point) in staying]


def _numbered(fleet: Fleet, runs: Iterable[BenchmarkRun]) -> Iterator[Option]:
    """An option per run; repeats of one shape are numbered in the order of their date."""
    seen: dict[tuple[Any, ...], int] = {}
    for run in sorted(runs, key=lambda run: (run.recorded_at is None, run.recorded_at, run.run_id)):
        shape = (run.model, run.gpu_name, run.gpu_count, run.offered_requests_per_s)
        seen[shape] = seen.get(shape, 0) + 1
        yield Option(fleet, _run_point(run), seen[shape])


def _run_point(run: BenchmarkRun) -> OperatingPoint:
    return point_of_run(run, *power_from_tdp(run, _tdp_w(run.gpu_name)))


def _tdp_w(card: str) -> float | None:
    spec = find_gpu(card)
    return spec.tdp_w if spec else None


def _curves(bins: LoadBins, start: datetime, end: datetime) -> LiveCurves:
    idle = {_kind(row): Idle(row["minutes"], row["seconds"], row["power_ws"]) for row in bins.idle}
    steps, latency = _by_type(bins.steps), _by_type(bins.latency)
    return LiveCurves(
        start,
        end,
        tuple(
            live_curve(kind, _bins(rows, latency.get(kind, [])), idle.get(kind, Idle()), _tdp_w(kind.gpu_name),
                       start, end)
            for kind, rows in steps.items()
        ),
        tuple(bins.left_out),
    )  # fmt: skip


def _kind(row: Row) -> ReplicaType:
    return ReplicaType(*(row[name] for name in _TYPE))


def _by_type(rows: Iterable[Row]) -> dict[ReplicaType, list[Row]]:
    found: dict[ReplicaType, list[Row]] = {}
    for row in rows:
        found.setdefault(_kind(row), []).append(row)
    return found


def _bins(rows: Sequence[Row], latencies: Iterable[Row]) -> list[LoadBin]:
    histograms: dict[tuple[int, bool], dict[LatencyMetric, list[Bucket]]] = {}
    for row in latencies:
        upper_s = math.inf if row["upper_us"] is None else units.seconds_of_us(row["upper_us"])
        bucket = Bucket(units.seconds_of_us(row["lower_us"]), upper_s, row["n"])
        of_step = histograms.setdefault((row["step"], row["is_throttled"]), {})
        of_step.setdefault(LATENCY_METRICS[row["metric"]], []).append(bucket)
    bins = [_bin(row, histograms.get((row["step"], row["is_throttled"]), {})) for row in rows]
    return widened(bins, [row["step"] for row in rows], STEPS_PER_DOUBLING)


def _bin(row: Row, latency: Mapping[LatencyMetric, Sequence[Bucket]]) -> LoadBin:
    return LoadBin(
        low=2 ** (row["step"] / STEPS_PER_DOUBLING),
        high=2 ** ((row["step"] + 1) / STEPS_PER_DOUBLING),
        is_throttled=row["is_throttled"],
        engines=row["engines"],
        finished=row["finished"],
        prefill_s=units.seconds_of_us(row["prefill_us"] or 0.0),
        decode_s=units.seconds_of_us(row["decode_us"] or 0.0),
        latency=latency,
        **{name: row[name] for name in _SUMS},
        **{name: row[name] or 0.0 for name in _MAYBE},
    )


def _type_as_json(row: Row) -> dict[str, Any]:
    return {
        "fleet": row["fleet"], "card": row["gpu_name"], "gpus": row["replica_gpus"], "model": row["model"],
        "simulated": row["simulated"],
    }  # fmt: skip


def _curve_as_json(one: Curve, runs: Sequence[BenchmarkRun]) -> dict[str, Any]:
    kind = one.kind
    mine = [_run_point(run) for run in runs if same_gpu(kind.gpu_name, run.gpu_name)]
    _, superseded = blend(one.points, mine)
    return {
        "fleet": kind.fleet,
        "card": kind.gpu_name,
        "gpus": kind.gpus,
        "model": kind.model,
        "simulated": kind.simulated,
        "points": [point_as_json(point) for point in one.points],
        "superseded": [_superseded_as_json(out) for out in superseded],
        "left_out": {reason: round(minutes) for reason, minutes in one.left_out.items()},
    }


def _superseded_as_json(out: Superseded) -> dict[str, Any]:
    return {"point_id": out.point.point_id, "source": out.point.source, "by": out.by.point_id, "reason": out.reason}


def point_as_json(point: OperatingPoint) -> dict[str, Any]:
    """A point; a quantile beyond the last bucket is null, and `beyond_ms` says what it is above of."""
    return {
        "point_id": point.point_id,
        "qps": point.qps,
        "tokens_per_s": point.tokens_per_s,
        "prompt_share": point.prompt_share,
        "n": point.n,
        "latency_ms": {
            metric: {
                percentile_name(percentile): None if math.isinf(value) else value
                for percentile, value in latency.quantiles_ms.items()
            }
            for metric, latency in point.latency.items()
        },
        "beyond_ms": dict(point.beyond_ms),
        "prefill_s_per_token": point.prefill_s_per_token,
        "decode_s_per_token": point.decode_s_per_token,
        "idle_w": point.idle_w,
        "loaded_w": point.loaded_w,
        "power_method": point.power_method,
        "flags": list(point.seen),
        "provenance": provenance(point),
    }


def provenance(point: OperatingPoint) -> dict[str, Any]:
    """What a point was measured on: a run of a file, or a live window."""
    if point.window is None:
        recorded_at = point.recorded_at and point.recorded_at.isoformat()
        return {
            "source": "run", "n": point.n, "recorded_at": recorded_at, "file": point.source_file,
            "index": point.source_index,
        }  # fmt: skip
    window = point.window
    return {
        "source": "live", "n": point.n, "from": window.start.isoformat(), "to": window.end.isoformat(),
        "minutes": window.minutes, "engines": window.engines,
        "load_tokens_per_s": [window.low_tokens_per_s, window.high_tokens_per_s],
    }  # fmt: skip
