"""Live points and benchmark runs of one fleet as one set: where two say the same thing, the better sample stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app.split.options import same_model
from app.split.point import OperatingPoint

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Superseded:
    """A point that another one, of about the same load, stands in for."""

    point: OperatingPoint
    by: OperatingPoint
    reason: str


def blend(
    live: Sequence[OperatingPoint], runs: Sequence[OperatingPoint]
) -> tuple[list[OperatingPoint], list[Superseded]]:
    """All points but those superseded, in the order given, live ones first.

    A run within a live point's bin of load, of the same model and number of GPUs, measures the same: the larger sample
    stays, of two alike the newer. A run without a steady state (`burst`) yields to any live point, and a simulated
    point to any run.
    """
    out: dict[int, Superseded] = {}
    for run in runs:
        for point in live:
            if not _measures_the_same(point, run) or id(point) in out:
                continue
            better, worse, reason = _better(point, run)
            out[id(worse)] = Superseded(worse, better, reason)
            if worse is run:
                break
    return [point for point in (*live, *runs) if id(point) not in out], list(out.values())


def _measures_the_same(live: OperatingPoint, run: OperatingPoint) -> bool:
    window = live.window
    return (
        window is not None
        and live.gpus == run.gpus
        and (same_model(live.model, run.model) or same_model(run.model, live.model))
        and window.low_tokens_per_s <= run.tokens_per_s < window.high_tokens_per_s
    )


def _better(live: OperatingPoint, run: OperatingPoint) -> tuple[OperatingPoint, OperatingPoint, str]:
    """(the one that stays, the other, why)."""
    if "simulated" in live.seen:
        return run, live, "the replicas of the live point are simulated"
    if "burst" in run.seen:
        return live, run, "the run reached no steady state"
    first, second = (live, run) if _sample(live) >= _sample(run) else (run, live)
    if first.n == second.n:
        return first, second, f"as large a sample ({first.n:,} requests), and newer"
    return first, second, f"a larger sample at the same load: {first.n:,} requests against {second.n:,}"


def _sample(point: OperatingPoint) -> tuple[int, datetime]:
    return point.n, point.recorded_at or _LONG_AGO
