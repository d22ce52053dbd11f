"""A benchmark run as an operating point: what its arrivals say of it, and its power by TDP."""

from __future__ import annotations

from app import units
from app.split.point import Flag, OperatingPoint
from collectors.benchmark.run import BenchmarkRun

IDLE_SHARE_OF_TDP = 0.2  # design section 5: idle power where none was measured
STEADY_TIMES_E2E = 3.0
SATURATED_BELOW = 0.9
TDP_ESTIMATE = "tdp_estimate (idle 20% of TDP, default)"


def point_of_run(run: BenchmarkRun, idle_w: float | None, loaded_w: float | None) -> OperatingPoint:
    """The replica of a run that draws idle_w and loaded_w."""
    return OperatingPoint(
        point_id=run.run_id,
        source="run",
        model=run.model,
        gpu_name=run.gpu_name,
        gpus=run.gpu_count,
        qps=run.offered_requests_per_s,
        tokens_per_s=run.total_tokens / run.duration_s,
        prompt_share=run.prompt_tokens / run.total_tokens if run.total_tokens else None,
        n=run.completed,
        idle_w=idle_w,
        loaded_w=loaded_w,
        power_method=TDP_ESTIMATE,
        latency=run.latency,
        seen=_seen(run),
        recorded_at=run.recorded_at,
        source_file=run.source_file,
        source_index=run.source_index,
    )


def _seen(run: BenchmarkRun) -> tuple[Flag, ...]:
    if is_burst(run):
        return ("burst",)
    return ("saturated",) if is_saturated(run) else ()


def power_from_tdp(run: BenchmarkRun, tdp_w: float | None) -> tuple[float | None, float | None]:
    """(idle, loaded) W of the run's replica from its cards' TDP: an estimate, 20% of it when idle."""
    loaded = None if tdp_w is None else tdp_w * run.gpu_count
    return (None if loaded is None else IDLE_SHARE_OF_TDP * loaded), loaded


def is_burst(run: BenchmarkRun) -> bool:
    """Arrivals lasted less than 3 x the mean end-to-end time: no steady state was reached."""
    mean_e2e_ms = run.mean_e2e_ms
    if mean_e2e_ms is None:
        return run.offered_requests_per_s is None
    return run.arrival_s < STEADY_TIMES_E2E * units.seconds(mean_e2e_ms)


def is_saturated(run: BenchmarkRun) -> bool:
    """A steady run that achieved less than 0.9 of what was offered."""
    if run.offered_requests_per_s is None or is_burst(run):
        return False
    return run.completed / run.duration_s < SATURATED_BELOW * run.offered_requests_per_s
