"""SGLang's /metrics (server started with --enable-metrics).

Its tokenizer counts a request's tokens when the request ends; its scheduler's gauges come once per rank.
"""

from __future__ import annotations

from collectors.engine.table import EngineTable, Source

# All ranks of one data-parallel replica report the same; priority "" is the total of the priorities beside it.
_RANKS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid", "priority"})

TABLE = EngineTable(
    kind="sglang",
    name="SGLang",
    prefixes=("sglang:",),
    model_labels=("model_name",),
    counters={
        "prompt_tokens": (Source("sglang:prompt_tokens_total"),),
        "cached_tokens": (Source("sglang:cached_tokens_total"),),
        "generated_tokens": (Source("sglang:generation_tokens_total"),),
        # The page tells no reason: every request that ended. One aborted while it ran is in both.
        "finished_stop": (Source("sglang:num_requests_total"),),
        "finished_aborted": (Source("sglang:num_aborted_requests_total"),),
        "preemptions": (Source("sglang:num_retracted_requests_total", copies=_RANKS),),
        "queue_us": (Source("sglang:queue_time_seconds_sum", unit="s", copies=_RANKS),),
    },
    gauges={
        "running": (Source("sglang:num_running_reqs", copies=_RANKS),),
        "waiting": (Source("sglang:num_queue_reqs", copies=_RANKS),),
        "kv_usage_ppm": (Source("sglang:token_usage", unit="ratio", largest=True),),
    },
    histograms={
        "ttft": (Source("sglang:time_to_first_token_seconds", unit="s"),),
        # Not time_per_output_token_seconds of older versions: that is one mean per request.
        "itl": (Source("sglang:inter_token_latency_seconds", unit="s"),),
        "e2e": (Source("sglang:e2e_request_latency_seconds", unit="s"),),
    },
)
