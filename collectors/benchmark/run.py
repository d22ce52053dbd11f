"""A benchmark run: what one load test measured on one replica."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Literal

LatencyMetric = Literal["ttft", "tpot", "itl", "e2e"]
# 2^53: past it a float, and so JSON, no longer counts in ones.
MAX_COUNT = 2**53
LATENCY_METRICS: tuple[LatencyMetric, ...] = ("ttft", "tpot", "itl", "e2e")


@dataclass(frozen=True)
class Latency:
    """One latency metric of a run, in milliseconds. None where the file did not say.

    quantiles_ms: percentile (0 < p <= 100) -> milliseconds; 100 is the maximum seen.
    """

    mean_ms: float | None = None
    std_ms: float | None = None
    quantiles_ms: dict[float, float] = field(default_factory=dict)

    def at_least(self, percentile: float) -> tuple[float, float] | None:
        """(percentile, ms) measured at `percentile`, else at the next higher one; None when neither exists."""
        higher = [p for p in self.quantiles_ms if p >= percentile]
        return (min(higher), self.quantiles_ms[min(higher)]) if higher else None


@dataclass(frozen=True)
class BenchmarkRun:
    """Facts of one run, as measured by the load generator, or summed up from its own figures (docs/benchmarks.md).

    offered_requests_per_s: target arrival rate; None means all at once, or as many as max_concurrency lets in.
    completed:              requests that finished, the sample size behind every latency.
    recorded_at:            the file's own date. Where it names no zone, it is read as UTC.
    source_index:           0-based position of the run in its file; source_line: 1-based line of its JSON object.
    """

    model: str
    backend: str | None
    gpu_name: str
    gpu_count: int
    offered_requests_per_s: float | None
    burstiness: float | None
    max_concurrency: int | None
    num_prompts: int
    completed: int
    duration_s: float
    prompt_tokens: int
    generated_tokens: int
    latency: dict[LatencyMetric, Latency]
    recorded_at: datetime | None
    source_file: str
    source_index: int
    source_line: int

    def __post_init__(self) -> None:
        """Refuses what no load test can have measured. Raises ValueError that names the field."""
        checks = {
            "model": bool(self.model.strip()),
            "gpu_name": bool(self.gpu_name.strip()) and self.gpu_name.isprintable(),
            "gpu_count": 1 <= self.gpu_count <= MAX_COUNT,
            "max_concurrency": self.max_concurrency is None or 1 <= self.max_concurrency <= MAX_COUNT,
            "duration_s": math.isfinite(self.duration_s) and self.duration_s > 0,
            "offered_requests_per_s": self.offered_requests_per_s is None
            or (math.isfinite(self.offered_requests_per_s) and self.offered_requests_per_s > 0),
            "burstiness": self.burstiness is None or (math.isfinite(self.burstiness) and self.burstiness > 0),
            "num_prompts": 1 <= self.num_prompts <= MAX_COUNT,
            "completed": 0 <= self.completed <= self.num_prompts,
            "prompt_tokens": 0 <= self.prompt_tokens <= MAX_COUNT,
            "generated_tokens": 0 <= self.generated_tokens <= MAX_COUNT,
            "source_index": 0 <= self.source_index <= MAX_COUNT,
            "source_line": 1 <= self.source_line <= MAX_COUNT,
            "recorded_at": self.recorded_at is None or self.recorded_at.tzinfo is not None,
            "latency": all(_is_sane(latency) for latency in self.latency.values()),
        }
        for name, holds in checks.items():
            if not holds:
                raise ValueError(f"`{name}` cannot be {getattr(self, name)!r}")

    @cached_property
    def run_id(self) -> str:
        """16 hex digits over the measured facts, without the source: the same run read from two files is one run."""
        facts = asdict(self)
        for provenance in ("source_file", "source_index", "source_line"):
            del facts[provenance]
        facts["recorded_at"] = self.recorded_at and self.recorded_at.astimezone(UTC).isoformat()
        text = json.dumps(facts, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.generated_tokens

    @property
    def arrival_s(self) -> float:
        """Seconds over which requests arrived at the offered rate; 0 when they all came at once."""
        return self.num_prompts / self.offered_requests_per_s if self.offered_requests_per_s else 0.0

    @property
    def mean_e2e_ms(self) -> float | None:
        """Mean end-to-end time of a request; where the file has none, TTFT + TPOT for the tokens after the first."""
        measured = self.latency.get("e2e", Latency()).mean_ms
        if measured is not None:
            return measured
        ttft = self.latency.get("ttft", Latency()).mean_ms
        tpot = self.latency.get("tpot", Latency()).mean_ms
        if ttft is None or tpot is None or self.completed == 0:
            return None
        return ttft + tpot * max(self.generated_tokens / self.completed - 1, 0)


def _is_sane(latency: Latency) -> bool:
    values = [latency.mean_ms, latency.std_ms, *latency.quantiles_ms.values()]
    return all(value is None or (math.isfinite(value) and value >= 0) for value in values) and all(
        0 < percentile <= 100 for percentile in latency.quantiles_ms
    )


def percentile_name(percentile: float) -> str:
    """E.g. p99, p99.9: every digit of the percentile, never an exponent."""
    return f"p{format(Decimal(repr(percentile)).normalize(), 'f')}"
