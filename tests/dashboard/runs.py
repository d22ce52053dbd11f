"""Runs made up for page tests."""

from __future__ import annotations

from collectors.benchmark.run import BenchmarkRun, Latency


def run_without_prices() -> BenchmarkRun:
    """A run on a card that no table knows."""
    return BenchmarkRun(
        model="org/model",
        backend="vllm",
        gpu_name="Prototype X1",
        gpu_count=1,
        offered_requests_per_s=2.0,
        burstiness=1.0,
        max_concurrency=None,
        num_prompts=10,
        completed=10,
        duration_s=5.0,
        prompt_tokens=1000,
        generated_tokens=1000,
        latency={"ttft": Latency(10.0, 1.0, {50.0: 10.0, 99.0: 20.0})},
        recorded_at=None,
        source_file="made-up.json",
        source_index=0,
        source_line=1,
    )
