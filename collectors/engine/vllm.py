"""vLLM's /metrics, 0.8.5 (V0 and V1) to 0.32.

Renamed on the way: gpu_cache_usage_perc and gpu_prefix_cache_* (0.9.2), time_per_output_token_seconds (0.10.2); for a
few versions both names stand on the page. Cached prompt tokens are part of prompt_tokens_total in every version.
"""

from __future__ import annotations

from collectors.engine.table import EngineTable, Source, label

_BY_SOURCE = "vllm:prompt_tokens_by_source_total"
_SUCCESS = "vllm:request_success_total"
_OLD_QUERIES = "vllm:gpu_prefix_cache_queries_total"
_OLD_HITS = "vllm:gpu_prefix_cache_hits_total"


def _finished(*reasons: str, zero_without: bool = True) -> Source:
    # V0 shows a reason only once it has happened; V1 shows all that it knows.
    return Source(_SUCCESS, label(finished_reason=reasons), zero_without=zero_without)


TABLE = EngineTable(
    kind="vllm",
    name="vLLM",
    prefixes=("vllm:",),
    engine_label="engine",
    # `model` is what Triton's vLLM backend calls it.
    model_labels=("model_name", "model"),
    created="vllm:prompt_tokens_created",
    block_size=("vllm:cache_config_info", "block_size"),
    counters={
        "prompt_tokens": (Source("vllm:prompt_tokens_total"),),
        "cached_tokens": (
            Source(_BY_SOURCE, label(source=("local_cache_hit", "external_kv_transfer"))),
            Source("vllm:prompt_tokens_cached_total"),
        ),
        "transferred_tokens": (Source(_BY_SOURCE, label(source="external_kv_transfer")),),
        # Up to 0.8.5 the old names count blocks, later tokens; only their help tells which. Without help: unknown.
        "prefix_query_tokens": (
            Source("vllm:prefix_cache_queries_total"),
            Source(_OLD_QUERIES, help_word="tokens"),
            Source(_OLD_QUERIES, help_word="blocks", in_blocks=True),
        ),
        "prefix_hit_tokens": (
            Source("vllm:prefix_cache_hits_total"),
            Source(_OLD_HITS, help_word="tokens"),
            Source(_OLD_HITS, help_word="blocks", in_blocks=True),
        ),
        "generated_tokens": (Source("vllm:generation_tokens_total"),),
        "finished_stop": (_finished("stop", "repetition"),),
        "finished_length": (_finished("length"),),
        "finished_aborted": (_finished("abort"),),
        # Versions before 0.32 have no such reason: unknown, not 0.
        "finished_failed": (_finished("error", zero_without=False),),
        "rejected": (Source("vllm:admission_rejections_total"),),
        "preemptions": (Source("vllm:num_preemptions_total"),),
        "prefill_us": (Source("vllm:request_prefill_time_seconds_sum", unit="s"),),
        "decode_us": (Source("vllm:request_decode_time_seconds_sum", unit="s"),),
        "queue_us": (Source("vllm:request_queue_time_seconds_sum", unit="s"),),
        "inference_us": (Source("vllm:request_inference_time_seconds_sum", unit="s"),),
    },
    gauges={
        "running": (Source("vllm:num_requests_running"),),
        "waiting": (Source("vllm:num_requests_waiting"),),
        "kv_usage_ppm": (
            Source("vllm:kv_cache_usage_perc", unit="ratio"),
            Source("vllm:gpu_cache_usage_perc", unit="ratio"),
        ),
    },
    histograms={
        "ttft": (Source("vllm:time_to_first_token_seconds", unit="s"),),
        # Not request_time_per_output_token_seconds: that is one mean per request.
        "itl": (
            Source("vllm:inter_token_latency_seconds", unit="s"),
            Source("vllm:time_per_output_token_seconds", unit="s"),
        ),
        "e2e": (Source("vllm:e2e_request_latency_seconds", unit="s"),),
    },
)
