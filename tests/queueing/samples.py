"""What an agent would measure of a replica: rows of the wire, from the truth of its requests and runs.

Counts are what vLLM counts, where it counts them: prompt tokens and the time to the first token when that token comes;
each token at the end of its step; ends, and times in queue, prefill and decode, when a request ends.
Sensors have no noise, and the energy counter counts whole millijoules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.simulator.arrays import Bools, Floats, Ints
from app.simulator.latency import E2E_BOUNDS_S, ITL_BOUNDS_S, TTFT_BOUNDS_S
from tests.queueing.arrivals import SECOND_NS
from tests.queueing.engine import Served
from tests.queueing.pieces import Intervals, at, cut, step_histograms, whole, work

US_NS = 1000
# Columns that do not differ: nothing is cached, fails or is turned away.
ALWAYS = {
    "cached_tokens": 0, "transferred_tokens": 0, "prefix_query_tokens": None, "prefix_hit_tokens": None,
    "finished_length": 0, "finished_aborted": 0, "finished_failed": 0, "rejected": 0, "preemptions": 0,
}  # fmt: skip
GPU_ALWAYS: dict[str, Any] = {
    "energy_method": "counter", "power_cap": False, "thermal_slowdown": False, "hardware_slowdown": False,
    "temperature_c": 60, "sm_clock_mhz": 1700, "memory_clock_mhz": 2600, "memory_utilisation_pct": None,
}  # fmt: skip


def engine_columns(served: Served, intervals: Intervals) -> dict[str, Ints | Bools]:
    """Columns of EngineSamples but for those in ALWAYS, `engine` and the times: a row an interval."""
    requests, first_ns, ended_ns = served.requests, served.first_ns, served.finished_ns
    pieces = cut(served.runs, intervals)
    steps = step_histograms(pieces, intervals.count, _ns(ITL_BOUNDS_S))
    decoding_ns = np.bincount(pieces.interval, pieces.elapsed_ns * pieces.decoding / US_NS, minlength=intervals.count)

    def sums_us(moments_ns: Ints, values_ns: Ints) -> Ints:
        return intervals.sums(moments_ns, values_ns // US_NS)

    return {
        "prompt_tokens": intervals.sums(first_ns, requests.prompt_tokens),
        "generated_tokens": intervals.sums(first_ns) + steps.sum(axis=1),
        "finished_stop": intervals.sums(ended_ns),
        **_gauges(served, intervals),
        "prefill_us": sums_us(ended_ns, first_ns - served.scheduled_ns),
        "decode_us": sums_us(ended_ns, ended_ns - first_ns),
        "queue_us": sums_us(ended_ns, served.scheduled_ns - requests.arrival_ns),
        "inference_us": sums_us(ended_ns, ended_ns - served.scheduled_ns),
        "ttft_us": sums_us(first_ns, served.ttft_ns),
        "itl_us": whole(decoding_ns),
        "e2e_us": sums_us(ended_ns, served.e2e_ns),
        "ttft_buckets": intervals.histograms(first_ns, served.ttft_ns, _ns(TTFT_BOUNDS_S)),
        "itl_buckets": steps,
        "e2e_buckets": intervals.histograms(ended_ns, served.e2e_ns, _ns(E2E_BOUNDS_S)),
    }


def _gauges(served: Served, intervals: Intervals) -> dict[str, Ints]:
    """Of the intervals' ends. Prompts that are only partly read do not count in kv_usage_ppm."""
    ends_ns = intervals.ends_ns
    arrived, scheduled, ended = (
        np.searchsorted(np.sort(moments_ns), ends_ns, side="right")
        for moments_ns in (served.requests.arrival_ns, served.scheduled_ns, served.finished_ns)
    )
    context: Ints | int = 0
    if len(served.runs.steps):
        state = at(served.runs, ends_ns)
        grown = served.runs.context[state.run] + state.done * served.runs.decoding[state.run]
        context = np.where(state.within, grown, 0)
    usage_ppm = whole(np.minimum(1e6 * (context + np.zeros(intervals.count)) / served.kind.kv_tokens, 1e6))
    return {"running": scheduled - ended, "waiting": arrived - scheduled, "kv_usage_ppm": usage_ppm}


def energy_mj(served: Served, moments_ns: Ints) -> Floats:
    """What all GPUs of the replica took from the beginning up to each moment."""
    done = work(served.runs, moments_ns)
    firsts = np.searchsorted(served.first_ns, moments_ns, side="right")
    return served.kind.energy_mj(
        moments_ns / SECOND_NS, done.stepping_ns / SECOND_NS, done.read, done.decoded + firsts
    )  # fmt: skip


def gpu_columns(served: Served, intervals: Intervals) -> dict[str, Ints | Bools]:
    """Columns of GpuSamples of any one GPU of the replica but for those in GPU_ALWAYS, `gpu` and the times."""
    kind = served.kind
    counter_mj = np.floor(energy_mj(served, intervals.ends_ns) / kind.gpus).astype(np.int64)
    rows_mj = np.diff(counter_mj, prepend=0)
    power_mw = whole(rows_mj * (SECOND_NS / intervals.every_ns))
    stepping = np.diff(work(served.runs, intervals.ends_ns).stepping_ns, prepend=0) / intervals.every_ns
    return {
        "energy_mj": rows_mj,
        "integral_mj": rows_mj,
        "power_instant_mw": power_mw,
        "power_average_mw": power_mw,
        "utilisation_pct": whole(100 * stepping),
        "memory_used_bytes": np.full(intervals.count, kind.memory_bytes * 9 // 10),
    }


def _ns(bounds_s: tuple[float, ...]) -> Ints:
    return whole(np.array(bounds_s) * SECOND_NS)
