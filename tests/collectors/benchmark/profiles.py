"""AIPerf and GenAI-Perf results for tests: the same load test as each of them writes it."""

from __future__ import annotations

from typing import Any


def metric(unit: str, avg: float, **statistics: float | None) -> dict[str, Any]:
    return {"unit": unit, "avg": avg} | statistics


CONFIG: dict[str, Any] = {
    "endpoint": {"model_names": ["Qwen/Qwen3-8B"], "type": "chat", "streaming": True, "url": "replica:8000"},
    "loadgen": {"request_rate": 2.5, "arrival_pattern": "poisson", "concurrency": 64, "request_count": 43},
    "cli_command": "aiperf profile --api-key planted-key",
}
PHASES_CONFIG: dict[str, Any] = {
    "models": {"items": [{"name": "Qwen/Qwen3-8B"}], "strategy": "round_robin"},
    "endpoint": {"type": "chat", "streaming": True, "urls": ["http://replica:8000"]},
    "phases": [
        {"name": "warmup", "kind": "warmup", "type": "concurrency", "concurrency": 4, "requests": 8},
        {"name": "profiling", "kind": "profiling", "type": "poisson", "rate": 2.5, "concurrency": 64, "requests": 43},
    ],
}
STIMULUS_CONFIG: dict[str, Any] = {
    "model_names": ["Qwen/Qwen3-8B"],
    "endpoint": {"type": "chat", "streaming": True, "backend": "vllm"},
    "perf_analyzer": {"path": "perf_analyzer", "stimulus": {"concurrency": 8}},
}
OPTIONS_CONFIG: dict[str, Any] = {
    "model": ["Qwen/Qwen3-8B"], "endpoint": "v1/chat/completions", "endpoint_type": "chat", "service_kind": "openai",
    "streaming": True, "concurrency": 8, "request_rate": None, "u": "replica:8000",
}  # fmt: skip

_TTFT = metric("ms", 80.0, p1=40.0, p50=75.0, p99=190.0, min=38.0, max=200.0, std=20.0)
_ITL = metric("ms", 15.0, p50=14.9, p99=21.0, min=9.0, max=22.0, std=1.5)
_E2E = metric("ms", 2000.0, p50=1900.0, p99=3400.0, min=500.0, max=3500.0, std=500.0)

# 40 requests of 512 and 128.25 tokens in 20 s, and three that failed.
AIPERF: dict[str, Any] = {
    "schema_version": "1.1", "aiperf_version": "0.5.0", "benchmark_id": "b1",
    "request_throughput": metric("requests/sec", 2.0), "request_count": metric("requests", 40.0),
    "request_latency": _E2E, "time_to_first_token": _TTFT, "inter_token_latency": _ITL,
    "time_to_second_token": metric("ms", 14.0),
    "inter_chunk_latency": metric("ms", 14.5, p50=14.0, p99=60.0, max=90.0, std=6.0),
    "output_sequence_length": metric("tokens", 128.25), "input_sequence_length": metric("tokens", 512.0),
    "total_isl": metric("tokens", 20_480.0), "total_osl": metric("tokens", 5130.0),
    "total_output_tokens": metric("tokens", 4000.0),
    "benchmark_duration": metric("sec", 20.0), "error_request_count": metric("requests", 3.0),
    "error_summary": [{"error_details": {"code": 500, "type": "ServerError", "message": "?"}, "count": 3}],
    "was_cancelled": False, "start_time": "2025-10-09T08:53:20.500000", "end_time": "2025-10-09T08:53:41",
    "input_config": CONFIG,
}  # fmt: skip

GENAI_PERF: dict[str, Any] = {
    "request_throughput": metric("requests/sec", 2.0), "request_latency": _E2E, "request_count": metric("count", 40.0),
    "time_to_first_token": _TTFT, "inter_token_latency": _ITL,
    "output_token_throughput": metric("tokens/sec", 256.5),
    "output_sequence_length": metric("tokens", 128.25, p50=128.0), "input_sequence_length": metric("tokens", 512.0),
    "input_config": STIMULUS_CONFIG,
}  # fmt: skip


def without(result: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in keys}
