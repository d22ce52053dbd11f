"""Metrics pages as vLLM shows them, built: names, labels and buckets of each version, without the lines nobody reads.

A test that only needs an engine which has done something takes `vllm_page`; what it counts is in `Work`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client.utils import floatToGoString

Version = Literal["0.8.5-v0", "0.8.5", "0.9.1", "0.10.2", "0.12.0", "0.32.0"]
VERSIONS: tuple[Version, ...] = ("0.8.5-v0", "0.8.5", "0.9.1", "0.10.2", "0.12.0", "0.32.0")
MODEL = "tiny-llama"
TTFT_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
ITL_BOUNDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
E2E_BOUNDS = (
    0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
)  # fmt: skip
_OLD = frozenset({"0.8.5-v0", "0.8.5", "0.9.1", "0.10.2"})
_REASONS = {"0.32.0": ("stop", "length", "abort", "error", "repetition")}


@dataclass
class Work:
    """What an engine has done since its process began. finished: reason -> requests; times and latencies in seconds."""

    label: str = "0"
    model: str = MODEL
    prompt_tokens: int = 0
    cached_tokens: int = 0
    transferred_tokens: int = 0
    generated_tokens: int = 0
    queried_tokens: int | None = None  # as many as prompt tokens
    finished: dict[str, int] = field(default_factory=dict)
    rejected: int = 0
    preemptions: int = 0
    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    queue_s: float = 0.0
    ttft: list[float] = field(default_factory=list)
    itl: list[float] = field(default_factory=list)
    e2e: list[float] = field(default_factory=list)

    @property
    def is_idle(self) -> bool:
        return not (self.prompt_tokens or self.running or self.waiting)


def vllm_page(
    version: Version = "0.32.0", *engines: Work, started_s: float | None = 1_796_151_035.65, block_size: int = 16
) -> str:
    """The page of a server of `version`. started_s None: several API servers, which show no start."""
    if version == "0.8.5-v0":
        started_s = None
    lines = [] if started_s is None else [f"process_start_time_seconds {floatToGoString(started_s)}"]
    lines.append('python_info{implementation="CPython",major="3"} 1.0')
    for work in engines:
        if version != "0.8.5-v0" or not work.is_idle:
            lines += _engine(version, work, None if started_s is None else started_s + 50, block_size)
    lines += _settings(version, engines, block_size)
    if version == "0.32.0":
        rejected = sum(work.rejected for work in engines)
        model = engines[0].model if engines else MODEL
        lines.append(
            f'vllm:admission_rejections_total{{model_name="{model}",reason="max_num_queued_reqs"}} {rejected}.0'
        )
    return "\n".join([*lines, ""])


def _engine(version: Version, work: Work, created_s: float | None, block_size: int) -> list[str]:
    own = {"model_name": work.model} if version == "0.8.5-v0" else {"engine": work.label, "model_name": work.model}
    page = _Page(own, created_s)
    page.gauge("num_requests_running", work.running)
    page.gauge("num_requests_waiting", work.waiting)
    if version in _OLD:
        page.gauge("gpu_cache_usage_perc", work.kv_usage)
    if version in ("0.10.2", "0.12.0", "0.32.0"):
        page.gauge("kv_cache_usage_perc", work.kv_usage)
    _prefix_cache(page, version, work, block_size)
    page.counter("num_preemptions", work.preemptions)
    page.counter("prompt_tokens", work.prompt_tokens)
    if version == "0.32.0":
        _by_source(page, work)
    page.counter("generation_tokens", work.generated_tokens)
    for reason in _reasons(version, work):
        page.counter("request_success", work.finished.get(reason, 0), finished_reason=reason)
    _latencies(page, version, work)
    return page.lines


def _prefix_cache(page: _Page, version: Version, work: Work, block_size: int) -> None:
    if version == "0.8.5-v0":
        return
    queried = work.prompt_tokens if work.queried_tokens is None else work.queried_tokens
    # 0.8.5 counts blocks, and its help says so.
    size, unit = (block_size, "blocks") if version == "0.8.5" else (1, "tokens")
    for name, value in (("queries", queried), ("hits", work.cached_tokens)):
        if version in _OLD:
            page.counter(f"gpu_prefix_cache_{name}", value // size, about=f"{name} of the cache, a number of {unit}.")
        if version in ("0.10.2", "0.12.0", "0.32.0"):
            page.counter(f"prefix_cache_{name}", value)


def _by_source(page: _Page, work: Work) -> None:
    local = work.cached_tokens - work.transferred_tokens
    computed = work.prompt_tokens - work.cached_tokens
    sources = {"local_compute": computed, "local_cache_hit": local, "external_kv_transfer": work.transferred_tokens}
    for source, value in sources.items():
        page.counter("prompt_tokens_by_source", value, source=source)
    page.counter("prompt_tokens_cached", work.cached_tokens)
    page.counter("estimated_flops_per_gpu", 0)


def _reasons(version: Version, work: Work) -> Iterable[str]:
    # V0 shows a reason once it has happened.
    return work.finished if version == "0.8.5-v0" else _REASONS.get(version, ("stop", "length", "abort"))


def _latencies(page: _Page, version: Version, work: Work) -> None:
    page.histogram("iteration_tokens_total", (1, 8, 16), [1.0] * 3)
    page.histogram("time_to_first_token_seconds", TTFT_BOUNDS, work.ttft)
    if version in _OLD:
        page.histogram("time_per_output_token_seconds", ITL_BOUNDS, work.itl)
    if version in ("0.10.2", "0.12.0", "0.32.0"):
        page.histogram("inter_token_latency_seconds", ITL_BOUNDS, work.itl)
    if version in ("0.12.0", "0.32.0"):
        page.histogram("request_time_per_output_token_seconds", ITL_BOUNDS, [0.5])
    page.histogram("e2e_request_latency_seconds", E2E_BOUNDS, work.e2e)
    for name, value in (("queue", work.queue_s), ("prefill", work.prefill_s), ("decode", work.decode_s)):
        page.histogram(f"request_{name}_time_seconds", E2E_BOUNDS, [value] if value else [])
    page.histogram("request_inference_time_seconds", E2E_BOUNDS, [work.prefill_s + work.decode_s])


def _settings(version: Version, engines: Sequence[Work], block_size: int) -> list[str]:
    if version in ("0.8.5-v0", "0.8.5"):
        return [f'vllm:cache_config_info{{block_size="{block_size}",cache_dtype="auto"}} 1.0']
    return [
        f'vllm:cache_config_info{{block_size="{block_size}",cache_dtype="auto",engine="{work.label}"}} 1.0'
        for work in engines
    ]


class _Page:
    """Lines of one engine: its labels on each, and a `_created` beside each counter and histogram."""

    def __init__(self, own: dict[str, str], created_s: float | None) -> None:
        self.lines: list[str] = []
        self._own = own
        self._created_s = created_s

    def gauge(self, name: str, value: float) -> None:
        self._add(name, value, {})

    def counter(self, name: str, value: int, *, about: str = "", **labels: str) -> None:
        if about:
            self.lines.append(f"# HELP vllm:{name}_total {about}")
        self.lines.append(f"# TYPE vllm:{name}_total counter")
        self._add(f"{name}_total", value, labels)
        self._add_created(name, labels)

    def histogram(self, name: str, bounds: Sequence[float], observed: Sequence[float]) -> None:
        self.lines.append(f"# TYPE vllm:{name} histogram")
        for bound in bounds:
            self._add(f"{name}_bucket", sum(one <= bound for one in observed), {"le": repr(float(bound))})
        self._add(f"{name}_bucket", len(observed), {"le": "+Inf"})
        self._add(f"{name}_count", len(observed), {})
        self._add(f"{name}_sum", sum(observed), {})
        self._add_created(name, {})

    def _add_created(self, name: str, labels: dict[str, str]) -> None:
        if self._created_s is not None:
            self._add(f"{name}_created", self._created_s, labels)

    def _add(self, name: str, value: float, labels: dict[str, str]) -> None:
        written = ",".join(f'{key}="{text}"' for key, text in sorted({**self._own, **labels}.items()))
        self.lines.append(f"vllm:{name}{{{written}}} {floatToGoString(value)}")
