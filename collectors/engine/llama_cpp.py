"""llama.cpp's server (--metrics): one model, no labels, no histograms, no start time.

prompt_tokens_total counts the prompt tokens that were computed: what its cache saved is not in it and is not told.
The server prints six digits, so a large counter moves in steps; no token is lost by it.
"""

from __future__ import annotations

from collectors.engine.table import EngineTable, Source

TABLE = EngineTable(
    kind="llama_cpp",
    name="llama.cpp",
    prefixes=("llamacpp:",),
    counters={
        "prompt_tokens": (Source("llamacpp:prompt_tokens_total"),),
        "generated_tokens": (Source("llamacpp:tokens_predicted_total"),),
        "prefill_us": (Source("llamacpp:prompt_seconds_total", unit="s"),),
        "decode_us": (Source("llamacpp:tokens_predicted_seconds_total", unit="s"),),
    },
    gauges={
        "running": (Source("llamacpp:requests_processing"),),
        "waiting": (Source("llamacpp:requests_deferred"),),
        # Gone since May 2025.
        "kv_usage_ppm": (Source("llamacpp:kv_cache_usage_ratio", unit="ratio"),),
    },
)
