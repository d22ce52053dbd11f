"""GuideLLM reports for tests, as its 0.6 writes them; what other versions name or place otherwise is in the tests."""

from __future__ import annotations

from typing import Any

_ZEROS = dict.fromkeys(("p001", "p01", "p05", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p999"), 0.0)


def summary(count: int, mean: float, most: float, **percentiles: float) -> dict[str, Any]:
    """A distribution: percentiles that are not named are the mean."""
    return {
        "mean": mean, "median": mean, "mode": mean, "variance": 0.0, "std_dev": mean / 4, "min": 0.0, "max": most,
        "count": count, "total_sum": mean * count,
        "percentiles": dict.fromkeys(_ZEROS, mean) | percentiles, "pdf": None,
    }  # fmt: skip


NOTHING: dict[str, Any] = summary(0, 0.0, 0.0)


def by_status(successful: dict[str, Any], *, others: dict[str, Any] | None = None) -> dict[str, Any]:
    """The distributions of each status; those of the others are large, so that a mix-up shows."""
    other = summary(9, 9e6, 9e6) if others is None else others
    return {"successful": successful, "incomplete": other, "errored": other, "total": other}


STRATEGIES: dict[str, dict[str, Any]] = {
    "poisson": {"type_": "poisson", "worker_count": 2, "max_concurrency": 512, "rate": 2.5, "random_seed": 42},
    "constant": {"type_": "constant", "worker_count": 2, "max_concurrency": None, "rate": 4.0},
    "concurrent": {"type_": "concurrent", "worker_count": 8, "max_concurrency": 8, "streams": 8},
    "synchronous": {"type_": "synchronous", "worker_count": 1, "max_concurrency": 1},
    "throughput": {"type_": "throughput", "worker_count": 10, "max_concurrency": 256, "rampup_duration": 0.0},
}

METRICS: dict[str, Any] = {
    "request_totals": {"successful": 40, "incomplete": 7, "errored": 3, "total": 50},
    "request_latency": by_status(summary(40, 2.0, 3.5, p50=1.9, p95=3.1, p99=3.4, p999=3.5)),
    "prompt_token_count": by_status(summary(40, 512.0, 600.0)),
    "output_token_count": by_status(summary(40, 128.25, 256.0)),
    "time_to_first_token_ms": by_status(summary(40, 80.0, 200.0, p001=40.0, p01=41.0, p50=75.0, p99=190.0, p999=199.0)),
    "time_per_output_token_ms": by_status(summary(5130, 15.6, 30.0)),
    "inter_token_latency_ms": by_status(summary(5090, 15.1, 22.0, p99=21.0)),
}


def benchmark(strategy: str = "poisson", **changes: Any) -> dict[str, Any]:
    """A benchmark of a report, with some keys changed."""
    return {
        "type_": "generative_benchmark",
        "config": {
            "id_": "b1", "run_id": "r1", "run_index": 0, "strategy": STRATEGIES[strategy],
            "profile": {"type_": "sweep"},
            "backend": {"type_": "openai_http", "target": "http://replica:8000", "model": "Qwen/Qwen3-8B",
                        "api_key": "planted-key"},
        },
        "scheduler_state": {"start_time": 1_760_000_000.0},
        "scheduler_metrics": {"requests_made": {"successful": 60, "incomplete": 7, "errored": 3, "total": 70}},
        "metrics": METRICS,
        "requests": {"successful": [], "incomplete": [], "errored": [], "total": None},
        "start_time": 1_760_000_000.5, "end_time": 1_760_000_020.5, "duration": 20.0,
    } | changes  # fmt: skip


def report(*benchmarks: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"version": 1, "guidellm_version": "0.6.0", "python_version": "3.12.3", "platform": "Linux"},
        "args": {"target": "http://replica:8000", "profile": "sweep"},
        "benchmarks": list(benchmarks),
    }


def metrics(**changes: Any) -> dict[str, Any]:
    """The metrics of a benchmark, some of them changed; None takes one away."""
    return {name: value for name, value in (METRICS | changes).items() if value is not None}


def older(strategy: str = "poisson") -> dict[str, Any]:
    """The same benchmark as 0.3 writes it: other places for strategy, model and request totals, no `metadata`."""
    kept = {name: value for name, value in METRICS.items() if name != "request_totals"}
    return {
        "type_": "generative_benchmark", "id_": "b1", "run_id": "r1",
        "args": {"profile": {"type_": "sweep"}, "strategy_index": 1, "strategy": STRATEGIES[strategy]},
        "run_stats": {"requests_made": {"successful": 60, "incomplete": 7, "errored": 3, "total": 70}},
        "worker": {"type_": "generative_requests_worker", "backend_type": "openai_http",
                   "backend_target": "http://replica:8000", "backend_model": "Qwen/Qwen3-8B"},
        "metrics": kept, "request_totals": METRICS["request_totals"], "request_samples": None,
        "requests": {"successful": [], "incomplete": [], "errored": []},
        "start_time": 1_760_000_000.5, "end_time": 1_760_000_020.5, "duration": 20.0,
    }  # fmt: skip


def prerelease(strategy: str = "poisson") -> dict[str, Any]:
    """The same benchmark as the pre-releases of 0.4 write it."""
    current = older(strategy)
    del current["args"], current["worker"]
    return current | {
        "scheduler": {"strategy": STRATEGIES[strategy], "constraints": {}, "state": {}},
        "benchmarker": {"profile": {}, "backend": {"model": "Qwen/Qwen3-8B", "type": "openai_http"}},
    }
