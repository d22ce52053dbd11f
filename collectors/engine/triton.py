"""Triton Inference Server: its own nv_inference_* and the TensorRT-LLM backend's nv_trt_llm_*, several models a page.

The label of an engine is the model's version. A TensorRT-LLM deployment chains several models (tokenizer, ensemble);
only the one with the backend's metrics is an engine.
"""

from __future__ import annotations

from collectors.engine.table import EngineTable, Source, label

_FAILURE = "nv_inference_request_failure"
_REQUESTS = "nv_trt_llm_request_metrics"
_BLOCKS = "nv_trt_llm_kv_cache_block_metrics"

TABLE = EngineTable(
    kind="triton",
    name="Triton",
    prefixes=("nv_inference_", "nv_trt_llm_", "nv_llm_"),
    engine_label="version",
    model_labels=("model",),
    only_with=frozenset({_REQUESTS, "nv_llm_input_token_len_sum"}),
    counters={
        "prompt_tokens": (Source("nv_llm_input_token_len_sum"),),
        "generated_tokens": (Source("nv_llm_output_token_len_sum"),),
        # The page tells no reason: every request that succeeded.
        "finished_stop": (Source("nv_inference_request_success"),),
        "finished_aborted": (Source(_FAILURE, label(reason="CANCELED")),),
        # Older versions have no reason.
        "finished_failed": (Source(_FAILURE, label(reason=("BACKEND", "OTHER"))), Source(_FAILURE)),
        "rejected": (Source(_FAILURE, label(reason="REJECTED")),),
        "queue_us": (Source("nv_inference_queue_duration_us", unit="us"),),
        "inference_us": (Source("nv_inference_compute_infer_duration_us", unit="us"),),
    },
    gauges={
        "running": (Source(_REQUESTS, label(request_type="active")),),
        "waiting": (Source(_REQUESTS, label(request_type="waiting")), Source("nv_inference_pending_request_count")),
        "kv_usage_ppm": (
            Source(
                _BLOCKS,
                label(kv_cache_block_type="used"),
                unit="ratio",
                share_of=label(kv_cache_block_type="max"),
            ),
        ),
    },
    # Off by default, and only for models that stream: time to the first response, which holds the first token.
    histograms={"ttft": (Source("nv_inference_first_response_histogram_ms", unit="ms"),)},
)
