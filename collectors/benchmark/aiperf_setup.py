"""What AIPerf and GenAI-Perf were told to do: the `input_config` of their results, which changed its shape three times.

AIPerf calls it unstable. Shapes, newest first, from ai-dynamo/aiperf (config/phases.py; docs of the profile exports)
and triton-inference-server/perf_analyzer (genai_perf/config/input; json_exporter.py):
phases with `models`; `endpoint.model_names` with `loadgen`; `perf_analyzer.stimulus`; flat options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collectors.benchmark.fields import Fields

_ONE_MODEL = "one model"


@dataclass(frozen=True)
class Setup:
    """streaming: None where the file does not say. requests_per_s: None where a fixed number was kept in flight."""

    model: str
    backend: str | None
    streaming: bool | None
    requests_per_s: float | None
    burstiness: float | None
    max_concurrency: int | None


def setup_of(config: Fields) -> Setup:
    """Raises FieldError where there is no one model, or a load that is neither a rate nor a number in flight."""
    if config.has("phases"):
        return _of_phases(config)
    endpoint = config.get("endpoint")
    if isinstance(endpoint, dict) and "model_names" in endpoint:
        return _of_loadgen(config)
    if config.has("perf_analyzer"):
        return _of_stimulus(config)
    return _of_options(config)


def _of_phases(config: Fields) -> Setup:
    measured = [phase for phase in config.items("phases", "a list of phases") if not _is_warmup(phase)]
    if len(measured) != 1:
        raise config.refusal("phases", "one phase beside the warm-up")
    [phase] = measured
    kind = phase.get("type")
    if kind == "concurrency":
        rate, burstiness = None, None
        phase.count("concurrency", minimum=1)
    elif kind in ("poisson", "gamma", "constant"):
        rate = phase.positive("rate", "requests/s > 0, the same throughout")
        burstiness = _burstiness(phase, kind, "smoothness")
    else:
        raise phase.refusal("type", "concurrency, poisson, gamma or constant")
    endpoint = config.inside("endpoint")
    return Setup(
        model=_model_of_phases(config),
        backend=endpoint.optional_text("type"),
        streaming=_streaming(endpoint),
        requests_per_s=rate,
        burstiness=burstiness,
        max_concurrency=phase.optional_count("concurrency"),
    )


def _is_warmup(phase: Fields) -> bool:
    return "warmup" in (phase.get("kind"), phase.get("name")) or phase.get("exclude_from_results") is True


def _model_of_phases(config: Fields) -> str:
    """`models` is a list of names or of objects with a name, or holds that list under `items`."""
    holder, key = (config.inside("models"), "items") if isinstance(config.get("models"), dict) else (config, "models")
    items = holder.get(key)
    if isinstance(items, list) and len(items) == 1 and isinstance(items[0], dict):
        return holder.items(key, _ONE_MODEL)[0].text("name")
    return _one_model(holder, key)


def _of_loadgen(config: Fields) -> Setup:
    endpoint, loadgen = config.inside("endpoint"), config.inside("loadgen")
    if config.inside("input").get("fixed_schedule") is True:
        raise config.inside("input").refusal("fixed_schedule", "a load by request rate or by concurrency")
    model = _one_model(endpoint, "model_names")
    return _by_options(loadgen, model, endpoint.optional_text("type"), _streaming(endpoint))


def _of_stimulus(config: Fields) -> Setup:
    endpoint = config.inside("endpoint")
    stimulus = config.inside("perf_analyzer").inside("stimulus")
    model = _one_model(config, _model_key(config))
    return _by_options(stimulus, model, endpoint.optional_text("type"), _streaming(endpoint))


def _of_options(config: Fields) -> Setup:
    model = _one_model(config, _model_key(config))
    return _by_options(config, model, config.optional_text("endpoint_type"), _streaming(config))


def _model_key(config: Fields) -> str:
    return "model" if config.has("model") else "model_names"


def _by_options(load: Fields, model: str, backend: str | None, streaming: bool | None) -> Setup:
    rate = load.optional_positive("request_rate")
    max_concurrency = load.optional_count("concurrency")
    if rate is None and max_concurrency is None:
        raise load.refusal("concurrency", "a whole number >= 1, or a request_rate")
    pattern = load.get("arrival_pattern") or load.get("request_rate_mode")
    burstiness = None if rate is None else _burstiness(load, pattern, "arrival_smoothness")
    return Setup(model, backend, streaming, rate, burstiness, max_concurrency)


def _burstiness(load: Fields, pattern: Any, smoothness: str) -> float | None:
    """AIPerf's smoothness is vLLM's burstiness; constant arrivals have no finite one."""
    if pattern == "poisson":
        return 1.0
    return load.optional_positive(smoothness) if pattern == "gamma" else None


def _one_model(holder: Fields, key: str) -> str:
    """The one model's name: of several, the file does not say which request went to which."""
    value = holder.get(key)
    if isinstance(value, list) and len(value) == 1:
        return Fields({key: value[0]}, holder.path).text(key)
    if isinstance(value, str):
        return holder.text(key)
    raise holder.refusal(key, _ONE_MODEL)


def _streaming(endpoint: Fields) -> bool | None:
    value = endpoint.get("streaming")
    if value is not None and not isinstance(value, bool):
        raise endpoint.refusal("streaming", "true or false")
    return value
