"""The study's operating points of a replica type as curves over the offered rate."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from statistics import fmean

import numpy as np

from app.errors import UnknownName
from app.reference.gpus import same_gpu
from app.reference.tables import data_folder
from app.simulator.arrays import Floats, interpolated
from app.simulator.latency import LogNormal
from app.units import seconds
from collectors.benchmark import facts_csv
from collectors.benchmark.run import BenchmarkRun, LatencyMetric


@dataclass(frozen=True, eq=False)
class Curve:
    """What a replica type does at a rate of requests, between the rates of the study and level beyond them.

    served_per_s: finished requests, 0 at no offer. prompt_tokens, generated_tokens: mean of a request.
    """

    offered_per_s: Floats
    served_per_s: Floats
    ttft_p50_s: Floats
    ttft_p99_s: Floats
    itl_p50_s: Floats
    itl_p99_s: Floats
    prompt_tokens: float
    generated_tokens: float

    @property
    def best_per_s(self) -> float:
        return float(self.served_per_s.max())

    @property
    def prefill_s(self) -> float:
        """TTFT with the least waiting in it: what a prompt takes by itself."""
        return float(self.ttft_p50_s.min())

    def served(self, offered_per_s: Floats) -> Floats:
        return interpolated(offered_per_s, np.array([0.0, *self.offered_per_s]), np.array([0.0, *self.served_per_s]))

    def ttft(self, offered_per_s: Floats) -> LogNormal:
        return LogNormal.through(self._at(offered_per_s, self.ttft_p50_s), self._at(offered_per_s, self.ttft_p99_s))

    def itl(self, offered_per_s: Floats) -> LogNormal:
        return LogNormal.through(self._at(offered_per_s, self.itl_p50_s), self._at(offered_per_s, self.itl_p99_s))

    def _at(self, offered_per_s: Floats, values: Floats) -> Floats:
        return interpolated(offered_per_s, self.offered_per_s, values)


@cache
def study_curve(model: str, gpu_name: str, gpu_count: int) -> Curve:
    """The curve of the study's runs of that model on so many of those cards. Raises UnknownName where it has none."""
    by_rate: dict[float, list[BenchmarkRun]] = defaultdict(list)
    for run in _study():
        is_type = run.model == model and run.gpu_count == gpu_count and same_gpu(run.gpu_name, gpu_name)
        if is_type and run.offered_requests_per_s is not None:
            by_rate[run.offered_requests_per_s].append(run)
    if not by_rate:
        raise UnknownName(f"the study has no run of {model} on {gpu_count} x {gpu_name}")
    rates = sorted(by_rate)
    runs = [run for rate in rates for run in by_rate[rate]]
    completed = sum(run.completed for run in runs)

    def quantile(metric: LatencyMetric, percentile: float) -> Floats:
        return np.array(
            [fmean(seconds(run.latency[metric].quantiles_ms[percentile]) for run in by_rate[rate]) for rate in rates]
        )

    return Curve(
        offered_per_s=np.array(rates),
        served_per_s=np.array([fmean(run.completed / run.duration_s for run in by_rate[rate]) for rate in rates]),
        ttft_p50_s=quantile("ttft", 50.0),
        ttft_p99_s=quantile("ttft", 99.0),
        itl_p50_s=quantile("itl", 50.0),
        itl_p99_s=quantile("itl", 99.0),
        prompt_tokens=sum(run.prompt_tokens for run in runs) / completed,
        generated_tokens=sum(run.generated_tokens for run in runs) / completed,
    )


@cache
def _study() -> tuple[BenchmarkRun, ...]:
    return tuple(facts_csv.read((data_folder() / "aibc2025_runs.csv").read_text(encoding="utf-8")))
