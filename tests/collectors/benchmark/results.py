"""vLLM result objects for tests, as `benchmark_serving` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from collectors.benchmark.fields import GpuOverride
from collectors.benchmark.files import FileOutcome, FoundFile, read_file

# The first of the study's files, latencies cut short.
RESULT: dict[str, Any] = {
    "date": "20250610-151148", "backend": "vllm", "model_id": "nvidia/AceMath-7B-Instruct",
    "tokenizer_id": "nvidia/AceMath-7B-Instruct", "num_prompts": 200, "gpu_name": "NVIDIA-H100-PCIe", "gpu_count": "1",
    "request_rate": 16.0, "burstiness": 1.0, "max_concurrency": None, "duration": 19.004579995002132, "completed": 200,
    "total_input_tokens": 40991, "total_output_tokens": 43344, "request_throughput": 10.523779007617977,
    "request_goodput:": 10.523779007617977, "mean_ttft_ms": 23.85, "median_ttft_ms": 23.66, "std_ttft_ms": 3.69,
    "p50_ttft_ms": 23.66, "p99_ttft_ms": 31.64, "p100_ttft_ms": 33.88, "mean_tpot_ms": 11.66, "p99_tpot_ms": 12.30,
    "mean_itl_ms": 11.63, "p99_itl_ms": 13.03,
}  # fmt: skip


def result(**changes: Any) -> dict[str, Any]:
    """A good result object with some keys changed."""
    return RESULT | changes


def without(*keys: str) -> dict[str, Any]:
    """A good result object that lacks `keys`."""
    return {key: value for key, value in RESULT.items() if key not in keys}


def write_result(path: Path, *objects: object) -> Path:
    """A file with the JSON of each object, one after another as the study's files have them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(one) for one in objects), encoding="utf-8")
    return path


def outcome_of(path: Path, *, gpu: GpuOverride | None = None) -> FileOutcome:
    """What reading a file gives that the user named."""
    return read_file(FoundFile(path, path.name, named=True), gpu=gpu)
