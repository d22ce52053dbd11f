"""/metrics of Hugging Face's Text Generation Inference: no model, no start time, tokens as sums of histograms."""

from __future__ import annotations

from collectors.engine.table import EngineTable, Source, label


def _failed(*errors: str) -> Source:
    # An error is shown once it has happened.
    return Source("tgi_request_failure", label(err=errors), zero_without=True)


TABLE = EngineTable(
    kind="tgi",
    name="Text Generation Inference",
    prefixes=("tgi_",),
    counters={
        "prompt_tokens": (Source("tgi_request_input_length_sum"),),
        "generated_tokens": (Source("tgi_request_generated_tokens_sum"),),
        # The page tells no reason: every request that succeeded.
        "finished_stop": (Source("tgi_request_success"),),
        "finished_aborted": (_failed("dropped"),),
        "finished_failed": (_failed("generation", "incomplete_generation"),),
        "rejected": (_failed("overloaded", "validation"),),
        "queue_us": (Source("tgi_request_queue_duration_sum", unit="s"),),
        # Its prefill and decode durations are per batch, not per request: not used.
        "inference_us": (Source("tgi_request_inference_duration_sum", unit="s"),),
    },
    gauges={
        "running": (Source("tgi_batch_current_size"),),
        "waiting": (Source("tgi_queue_size"),),
    },
    # No time to first token; tgi_request_mean_time_per_token_duration is one mean per request, its prefill included.
    histograms={"e2e": (Source("tgi_request_duration", unit="s"),)},
)
